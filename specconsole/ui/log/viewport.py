"""Where in the log the screen stands: which pieces of which rows it shows. No widget, no drawing."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from specconsole.ui.log.line_style import wrap_text

if TYPE_CHECKING:
    from specconsole.ui.log.line_pages import LinePages
    from specconsole.ui.log.rows import LogRows

Place = tuple[int, int]
"""(row, piece of the row's line): a line has one piece, or several when it is wrapped."""


RULE = -1
"""The "characters before" of a piece that is no text of the log but a ruled line about it."""


class Viewport:
    """A window of `height` screen rows over the rows of a log, following its end or standing still."""

    def __init__(self, pages: LinePages, rows: LogRows) -> None:
        self.pages = pages
        self.rows = rows
        self.width = 80
        self.height = 24
        self.wrap = False
        self.follow = True
        self.top = 0
        self.sub = 0
        self._shown: list[tuple[int, int, str]] | None = None

    def changed(self) -> None:
        """Forgets what was laid out; call after any change of rows, lines or size."""
        self._shown = None

    def pieces(self, row: int) -> list[tuple[int, str]]:
        """(characters before, text) of each piece of a row."""
        text = self.pages.text(self.rows.line(row))
        pieces = wrap_text(text, self.width) if self.wrap else [(0, text)]
        rule = self.rule_above(row)
        return [(RULE, rule), *pieces] if rule else pieces

    def rule_above(self, row: int) -> str:
        """What happened between the row before and this one; "" for nothing."""
        rules = self.pages.rules
        if not rules:
            return ""
        line, before = self.rows.line(row), self.rows.line(row - 1) if row else -1
        first = bisect_right(rules, before, key=lambda rule: rule[0])
        return " · ".join(text for _, text in rules[first : bisect_right(rules, line, key=lambda rule: rule[0])])

    def shown(self) -> list[tuple[int, int, str]]:
        """(row, piece's place among its row's pieces, piece) for each screen row, top first."""
        if self._shown is not None:
            return self._shown
        shown: list[tuple[int, int, str]] = []
        total = len(self.rows)
        end = self.end_place()
        if self.follow or (self.top, self.sub) > end:
            self.top, self.sub = end
        row, sub = self.top, self.sub
        while row < total and len(shown) < self.height:
            pieces = self.pieces(row)
            shown.extend((row, place, pieces[place][1]) for place in range(min(sub, len(pieces) - 1), len(pieces)))
            row, sub = row + 1, 0
        self._shown = shown[: self.height]
        return self._shown

    def end_place(self) -> Place:
        """The place at the top of the screen when its last row is the log's last."""
        total = len(self.rows)
        if not self.wrap and not self.pages.rules:
            return max(0, total - self.height), 0
        room, row = self.height, total
        while row > 0 and room > 0:
            row -= 1
            pieces = len(self.pieces(row))
            if pieces >= room:
                return row, pieces - room
            room -= pieces
        return 0, 0

    def go(self, row: int, *, above: int = 0) -> None:
        """Stands still with `row` at the top, or `above` screen rows lower."""
        self.follow = False
        self.top, self.sub = max(0, row), 0
        self.back(above)
        self.changed()

    def back(self, rows: int) -> None:
        """Up by screen rows, to the first at most."""
        while rows > 0 and (self.top or self.sub):
            if self.sub:
                self.sub -= 1
            else:
                self.top -= 1
                self.sub = len(self.pieces(self.top)) - 1
            rows -= 1
        self.changed()

    def forward(self, rows: int) -> None:
        """Down by screen rows; follows when it comes to the end."""
        end = self.end_place()
        while rows > 0 and (self.top, self.sub) < end:
            if (self.wrap or self.pages.rules) and self.sub + 1 < len(self.pieces(self.top)):
                self.sub += 1
            else:
                self.top, self.sub = self.top + 1, 0
            rows -= 1
        self.follow = (self.top, self.sub) >= end
        self.changed()

    def move(self, rows: int) -> None:
        """Scrolls by screen rows; up stands still, reaching the end follows."""
        self.shown()
        self.follow = False
        if rows < 0:
            self.back(-rows)
        else:
            self.forward(rows)

    def thumb(self) -> tuple[int, int]:
        """(first row, rows) of the scroll bar's thumb; as high as the screen when everything is on it."""
        total = len(self.rows)
        if total <= self.height:
            return 0, self.height
        size = max(1, self.height * self.height // total)
        span = total - self.height
        return round(min(self.top, span) / span * (self.height - size)), size

    def drag_to(self, y: int) -> None:
        """Puts the thumb where the pointer is."""
        span = max(1, len(self.rows) - self.height)
        self.top, self.sub = round(max(0, min(y, self.height - 1)) / max(1, self.height - 1) * span), 0
        self.follow = self.top >= span
        self.changed()
