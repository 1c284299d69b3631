"""What is selected in the log: whole lines by keys, characters by mouse. Rows and characters, no drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from specconsole.ui.log.viewport import Viewport

Point = tuple[int, int]
"""(row, character in its line)."""
WHOLE_LINE = 1 << 30
COPY_LIMIT_LINES = 20_000
"""More than anybody pastes, and about what a clipboard through a terminal takes."""


class LineRange:
    """The selection of one view."""

    def __init__(self, port: Viewport) -> None:
        self._port = port
        self.ends: tuple[Point, Point] | None = None
        self.by_keys = False

    def clear(self) -> None:
        self.ends = None
        self.by_keys = False

    def start(self, row: int | None) -> None:
        """Begins with one whole line: `row` if it is on the screen, else the first that is."""
        shown = self._port.shown()
        if not shown:
            return
        if row is None or not shown[0][0] <= row <= shown[-1][0]:
            row = shown[0][0]
        self._port.follow = False
        self.by_keys = True
        self.ends = ((row, 0), (row, WHOLE_LINE))

    def extend(self, rows: int) -> None:
        """Moves the far end by lines and keeps it on the screen."""
        if self.ends is None:
            return
        anchor, far = self.ends
        row = max(0, min(far[0] + rows, len(self._port.rows) - 1))
        down = row >= anchor[0]
        self.ends = ((anchor[0], 0 if down else WHOLE_LINE), (row, WHOLE_LINE if down else 0))
        shown = self._port.shown()
        if row < shown[0][0]:
            self._port.go(row)
        elif row > shown[-1][0]:
            self._port.forward(row - shown[-1][0])
            self._port.follow = False

    def of_row(self, row: int) -> tuple[int, int] | None:
        """Selected characters of a row, (start, stop); None when it is outside."""
        if self.ends is None:
            return None
        first, last = sorted(self.ends)
        if not first[0] <= row <= last[0]:
            return None
        return first[1] if row == first[0] else 0, last[1] if row == last[0] else WHOLE_LINE

    def text(self) -> str:
        """The selected text, at most 20,000 lines of it."""
        if self.ends is None:
            return ""
        first, last = sorted(self.ends)
        lines = []
        for row in range(first[0], min(last[0], first[0] + COPY_LIMIT_LINES - 1) + 1):
            start, stop = self.of_row(row) or (0, 0)
            lines.append(self._port.pages.text(self._port.rows.line(row))[start:stop])
        return "\n".join(lines)

    def press(self, cell: int, y: int) -> None:
        """The mouse button went down."""
        point = self._point(cell, y)
        self.by_keys = False
        self.ends = (point, point) if point is not None else None

    def drag(self, cell: int, y: int) -> bool:
        """The mouse moved with the button down; True when the selection changed."""
        point = self._point(cell, y)
        if self.ends is None or point is None or point == self.ends[1]:
            return False
        self.ends = (self.ends[0], point)
        return True

    def release(self) -> None:
        """A click without a move selects nothing."""
        if self.ends is not None and self.ends[0] == self.ends[1]:
            self.ends = None

    def _point(self, cell: int, y: int) -> Point | None:
        shown = self._port.shown()
        if not shown:
            return None
        row, place, piece = shown[max(0, min(y, len(shown) - 1))]
        offset = self._port.pieces(row)[place][0]
        if offset < 0:  # a ruled line above it
            return row, 0
        used = 0
        for number, character in enumerate(piece):
            used += cell_len(character)
            if used > max(0, cell):
                return row, offset + number
        return row, offset + len(piece)
