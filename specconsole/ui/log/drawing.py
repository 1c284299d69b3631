"""One row of the log view: the piece of a line that stands there, its gutter, and the scroll bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip

from specconsole.ui.log.line_style import LineLook, line_strip, look_mark, rule_strip

if TYPE_CHECKING:
    import re

    from rich.style import Style

    from specconsole.ui.log.session import LogSession
    from specconsole.ui.log.view import LogView
    from specconsole.ui.log.viewport import Viewport

RowLook = tuple[
    str, tuple[int, str], bool, str | None, bool, tuple[int, int] | None, int, int, int, "re.Pattern[str] | None"
]
KEPT_STRIPS = 2000
"""Drawn lines that a view keeps: scrolling by one draws one, and a change of the title alone none."""


def log_line(view: LogView, session: LogSession, y: int, width: int, styles: dict[str, Style]) -> Strip:
    """Row `y` of the view, exactly `width` cells."""
    port = session.port
    shown = port.shown()
    track = _track(y, port, styles)
    if y >= len(shown):
        return Strip([Segment(" " * (width - 1), styles["base"]), track], width)
    look = row_look(view, session, y, width)
    drawn = view.drawn.get(look)
    if drawn is None:
        row, place, piece = shown[y]
        text, _, ruled, phase, marked, selected, copies, *_ = look
        if ruled and place == 0:
            drawn = rule_strip(piece, width - 1, styles)
        else:
            # Pieces of an ASCII line are all of one width but the last; elsewhere the offset is found again.
            offset = (place - ruled) * port.width if text.isascii() else port.pieces(row)[place][0]
            line = LineLook(piece, offset, look_mark(text), phase, marked, selected, copies)
            drawn = line_strip(line, width - 1, styles, session.hit, skip_cells=session.left)
        if len(view.drawn) >= KEPT_STRIPS:
            view.drawn.clear()
        view.drawn[look] = drawn
    return Strip([*drawn, track], width)


def row_look(view: LogView, session: LogSession, y: int, width: int) -> RowLook:
    """All that the look of row `y` hangs on, the scroll bar left out; the row must show something."""
    port = session.port
    row, place, piece = port.shown()[y]
    line = session.rows.line(row)
    ruled = bool(port.rule_above(row))
    copies = session.rows.copies(line) if place == ruled else 1
    return (port.pages.text(line), (place, piece), ruled, view.phase_of(line), line == session.marked_line,
            session.range.of_row(row), copies, width, session.left, session.hit)  # fmt: skip


def looks(view: LogView, session: LogSession, width: int) -> list[object]:
    """What each row of the screen hangs on: a row whose entry stays equal need not be painted again."""
    port = session.port
    shown = len(port.shown())
    start, size = port.thumb()
    return [
        (row_look(view, session, y, width) if y < shown else width, size >= port.height, start <= y < start + size)
        for y in range(port.height)
    ]


def _track(y: int, port: Viewport, styles: dict[str, Style]) -> Segment:
    start, size = port.thumb()
    if size >= port.height:
        return Segment(" ", styles["base"])
    if start <= y < start + size:
        return Segment("┃", styles["base"] + styles["thumb"])
    return Segment("│", styles["base"] + styles["track"])
