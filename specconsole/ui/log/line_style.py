"""Colours one log line: gutter by phase, stamp and rank set back, level, search hits, selection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from specconsole.core.views.log_line import HEADER, RANK, LineMark, mark_line

HIGHLIGHT_LIMIT_CHARS = 4000
"""Hits beyond this many characters of one line are not coloured (they are still found)."""


@dataclass(frozen=True, slots=True)
class LineLook:
    """How one piece of a line is to be drawn."""

    text: str
    """The piece of the line that this screen row shows."""
    offset: int
    """Characters of the line before the piece."""
    mark: LineMark
    phase: str | None
    marked: bool
    """The person was just led to this line."""
    selected: tuple[int, int] | None
    """Selected characters of the line, (start, stop)."""
    copies: int = 1


def look_mark(text: str) -> LineMark:
    """The mark of a line that is already clean text."""
    return mark_line(text[:200].encode("utf-8", "replace"))


def line_strip(
    look: LineLook, width: int, styles: Mapping[str, Style], hit: re.Pattern[str] | None, *, skip_cells: int = 0
) -> Strip:
    """A strip of exactly `width` cells: one for the gutter, the rest text from `skip_cells` on."""
    base = styles["base"]
    if look.marked:
        base += styles["marked"]
    gutter = styles.get(f"phase-{look.phase}", styles["gutter"])
    segments = [Segment("▶" if look.marked else "▌" if look.phase else " ", base + gutter)]
    suffix = f" ×{look.copies}" if look.copies > 1 else ""
    room = width - 1 - len(suffix)
    text = look.text
    ascii_text = text.isascii()
    if skip_cells and ascii_text:
        text, offset, skip = text[skip_cells : skip_cells + room], look.offset + skip_cells, 0
    else:
        offset, skip = look.offset, skip_cells
        if ascii_text:
            text = text[:room]
    body = Strip(_runs(text, offset, look, base, styles, hit))
    if not ascii_text or skip:
        body = body.crop(skip, skip + room)
    used = body.cell_length
    segments.extend(body)
    if used < room:
        segments.append(Segment(" " * (room - used), base))
    if suffix:
        segments.append(Segment(suffix, base + styles["rank"]))
    return Strip(segments, width)


def rule_strip(text: str, width: int, styles: Mapping[str, Style]) -> Strip:
    """`── 1,024 bytes are lost ───`: what happened between two lines."""
    style = styles["base"] + styles["warning"]
    body = Strip([Segment(f" ── {text} ", style)]).crop(0, width)
    return Strip([*body, Segment("─" * (width - body.cell_length), style)], width)


def _runs(
    text: str, offset: int, look: LineLook, base: Style, styles: Mapping[str, Style], hit: re.Pattern[str] | None
) -> list[Segment]:
    """The text cut wherever its style changes."""
    if not text:
        return []
    spans: list[tuple[int, int, Style]] = []
    level = look.mark.level
    if level in styles:
        base += styles[level]
    if offset == 0 and look.mark.begins:
        head = text[:160].encode("utf-8", "replace")
        stamp = HEADER.match(head)
        if stamp is not None and text[:160].isascii():
            spans.append((0, stamp.end(), styles["stamp"]))
            rank = RANK.search(head)
            if rank is not None and rank.lastindex is not None:
                spans.append((*rank.span(rank.lastindex), styles["rank"]))
    if hit is not None:
        spans.extend(
            (found.start(), found.end(), styles["match"])
            for found in hit.finditer(text[:HIGHLIGHT_LIMIT_CHARS])
            if found.end() > found.start()
        )
    if look.selected is not None:
        start, stop = look.selected[0] - offset, look.selected[1] - offset
        if stop > 0 and start < len(text):
            spans.append((max(0, start), min(len(text), stop), styles["selected"]))
    if not spans:
        return [Segment(text, base)]
    cuts = sorted({0, len(text), *(edge for span in spans for edge in span[:2] if edge <= len(text))})
    segments = []
    for start, stop in pairwise(cuts):
        style = base
        for span_start, span_stop, span_style in spans:
            if span_start <= start and stop <= span_stop:
                style += span_style
        segments.append(Segment(text[start:stop], style))
    return segments


def wrap_text(text: str, width: int) -> list[tuple[int, str]]:
    """(characters before, piece) of each screen row; at least one, breaking between any two characters."""
    if width < 1:
        return [(0, "")]
    if text.isascii():
        return [(start, text[start : start + width]) for start in range(0, len(text), width)] or [(0, "")]
    pieces: list[tuple[int, str]] = []
    start = used = 0
    for place, character in enumerate(text):
        cells = cell_len(character)
        if used + cells > width and place > start:
            pieces.append((start, text[start:place]))
            start, used = place, 0
        used += cells
    pieces.append((start, text[start:]))
    return pieces
