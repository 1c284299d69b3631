"""A difference of two launches as lines: one fact a line, the two side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from textual.content import Content

from specconsole.core.launching.difference import SECTIONS, Difference, DifferenceRow
from specconsole.core.launching.difference_text import TITLES, UNKNOWN, left_text, right_text
from specconsole.ui.formatters import fit, row, safe, styled

_MOST_LINES = 4
"""A longer value is cut: the command line prints it whole."""


def difference_lines(found: Difference, width: int, *, everything: bool) -> list[Content]:
    """Names, notes, and a part a section."""
    key, cell = columns(width)
    left = f"{found.left.profile} {found.left.launch_id}"
    right = f"{found.right.profile} {found.right.launch_id}"
    lines = _side_by_side("", left, right, key, cell, styles=("bold $primary", "bold $accent"))
    lines += [styled(f"· {part}", "$warning") for note in found.notes for part in textwrap.wrap(safe(note), width - 2)]
    rows = found.shown(everything=everything)
    for section in SECTIONS:
        mine = [one for one in rows if one.section == section]
        if mine:
            lines += [Content(""), styled(TITLES[section], "bold")]
            for one in mine:
                lines += _row_lines(one, key, cell)
    if not rows:
        lines += [Content(""), styled("nothing differs; a shows everything", "$muted")]
    return [fit(line, width) for line in lines]


def columns(width: int) -> tuple[int, int]:
    """(cells of the key, cells of a value)."""
    key = 22 if width < 100 else 34
    return key, max(12, (width - key - 6) // 2)


def _row_lines(one: DifferenceRow, key: int, cell: int) -> list[Content]:
    left, right = left_text(one), right_text(one)
    if one.remark:
        right = f"{right} ({one.remark})"
    styles = ("$primary", "$accent") if one.differs else ("$muted", "$muted")
    if left == UNKNOWN:
        styles = ("$warning", styles[1])
    if not one.right_known:
        styles = (styles[0], "$warning")
    sign = "≠" if one.differs else "?" if one.differs is None else " "
    return _side_by_side(f"{sign} {one.key}", left, right, key, cell, styles=styles)


def _side_by_side(name: str, left: str, right: str, key: int, cell: int, *, styles: tuple[str, str]) -> list[Content]:
    columns_ = [_wrapped(name, key), _wrapped(left, cell), _wrapped(right, cell)]
    lines: list[Content] = []
    for n in range(max(len(column) for column in columns_)):
        a, b, c = (column[n] if n < len(column) else "" for column in columns_)
        lines.append(row(f"{a:<{key}}  ", (f"{b:<{cell}}  ", styles[0]), (c, styles[1])))
    return lines


def _wrapped(text: str, width: int) -> Sequence[str]:
    lines = textwrap.wrap(safe(text), width, break_on_hyphens=False) or [""]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], lines[_MOST_LINES - 1][: width - 1] + "…"]
    return lines
