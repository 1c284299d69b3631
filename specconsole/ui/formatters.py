"""Values to what stands on the screen. Everything that came from a host passes `safe` on its way to a cell."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence

from textual.content import Content

_CONTROL_PICTURES: dict[int, int] = {code: 0x2400 + code for code in range(0x20)} | {
    0x09: 0x20,
    0x0A: 0x20,
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    # Bidirectional controls and line separators: they reorder or break what stands beside them.
    **dict.fromkeys((0x061C, 0x200E, 0x200F, 0x2028, 0x2029), 0xFFFD),
    **dict.fromkeys(range(0x202A, 0x202F), 0xFFFD),
    **dict.fromkeys(range(0x2066, 0x206A), 0xFFFD),
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
}


def safe(text: str) -> str:
    """One line of text that can't drive a terminal: controls become their pictures, tabs and line ends spaces."""
    if text.isprintable() and text.isascii():
        return text
    return text.translate(_CONTROL_PICTURES)


def safe_lines(text: str) -> str:
    """Safe text that may have several lines."""
    return "\n".join(safe(line) for line in text.split("\n"))


def styled(text: str, style: str = "") -> Content:
    """Text from anywhere with one style (theme variables allowed: `$error`); never read as markup."""
    return Content.styled(safe(text), style) if style else Content(safe(text))


def row(*parts: str | tuple[str, str] | Content) -> Content:
    """Joins pieces: plain strings, (text, style) pairs, ready Content."""
    return Content.assemble(
        *(
            part if isinstance(part, Content) else safe(part) if isinstance(part, str) else (safe(part[0]), part[1])
            for part in parts
        )
    )


def fit(content: Content, width: int) -> Content:
    """Exactly `width` cells: cut with an ellipsis, or padded on the right."""
    if width <= 0:
        return Content("")
    if content.cell_length > width:
        content = content.truncate(width, ellipsis=True)
    return content.pad_right(max(0, width - content.cell_length))


def wrapped(text: str, width: int, style: str = "") -> list[Content]:
    """A text in as many lines as it takes; those after the first are set in a little."""
    lines = textwrap.wrap(safe(text), max(20, width), subsequent_indent="  ") or [""]
    return [styled(line, style) for line in lines]


def spread(left: Content, right: Content, width: int) -> Content:
    """`left` and `right` at the two ends of a line; the right end wins where both don't fit."""
    right = right.truncate(width, ellipsis=True) if right.cell_length > width else right
    room = width - right.cell_length
    return fit(left, room) + right if room > 0 else right


def joined_whole(words: Sequence[str], width: int) -> str:
    """As many words as fit whole, the first ones first, with ` · ` between: half a figure is a wrong one."""
    text = ""
    for word in words:
        longer = f"{text} · {word}" if text else word
        if len(longer) > width:
            break
        text = longer
    return text


def bar(ratio: float | None, width: int) -> str:
    """A bar of eighths of a cell; dots where the ratio is unknown."""
    if ratio is None:
        return "·" * width
    eighths = round(min(1.0, max(0.0, ratio)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "") + "░" * (width - full - (1 if rest else 0))


def line_bar(ratio: float | None, width: int) -> tuple[str, str]:
    """(what is filled, what is left) of a thin bar in halves of a cell, for bars that stand in rows: full blocks would
    run together. All of it dots where the ratio is unknown.
    """
    if ratio is None:
        return "", "·" * width
    halves = round(min(1.0, max(0.0, ratio)) * width * 2)
    filled = "━" * (halves // 2) + "╸" * (halves % 2)
    return filled, "─" * (width - len(filled))


def duration(seconds: float | None) -> str:
    """`9 s`, `1:05`, `2 h 04`, `3 d 4 h`; `–` when unknown."""
    if seconds is None:
        return "–"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d}"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def span(low: float, high: float) -> str:
    """A range of seconds as a person says it: `14 s`, `40 to 55 s`, `7 to 9 min`, `1.5 to 2 h`."""
    if high < 100:
        first, last, unit = round(low), round(high), "s"
    elif high < 5400:
        first, last, unit = round(low / 60), round(high / 60), "min"
    else:
        tenths = (round(low / 360) / 10, round(high / 360) / 10)
        return f"{tenths[0]:g} h" if tenths[0] == tenths[1] else f"{tenths[0]:g} to {tenths[1]:g} h"
    return f"{last} {unit}" if first == last else f"{first} to {last} {unit}"


def count(number: float) -> str:
    """12431 -> `12,431`."""
    return f"{number:,.0f}"


def gib(size_bytes: float | None) -> str:
    """Whole GiB, or `–`."""
    return "–" if size_bytes is None else f"{size_bytes / 2**30:.0f}"


def clock_text(wall_s: float, *, seconds: bool = True) -> str:
    """Local time of day."""
    return time.strftime("%H:%M:%S" if seconds else "%H:%M", time.localtime(wall_s))
