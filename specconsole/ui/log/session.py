"""One log in the pane: where the person stands in it, what is filtered, searched, marked and selected there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from specconsole.ui.log.line_pages import LinePages
from specconsole.ui.log.rows import LogRows
from specconsole.ui.log.search import LogSearch
from specconsole.ui.log.selection import LineRange
from specconsole.ui.log.viewport import Viewport

if TYPE_CHECKING:
    from specconsole.core.views.log_line import Level
    from specconsole.services.commands import LineSource


class LogSession:
    """Stays while its tab is open, so that coming back finds everything as it was left."""

    def __init__(self, source: LineSource, changed: Callable[[], None]) -> None:
        self.source = source
        self._changed = changed
        self.rows = LogRows(source, self._rows_grew)
        self.port = Viewport(LinePages(source), self.rows)
        self.range = LineRange(self.port)
        self.left = 0
        self.marked_line: int | None = None
        self.search: LogSearch | None = None
        self.ranks: frozenset[str] = frozenset()
        self.least: Level = "debug"
        self.fold = False
        self._seen_bytes = -1
        self._anchor: int | None = None
        """The line that stays at the top while a new filter is still being worked out."""

    def moved(self) -> None:
        """The person scrolled: no line is held any more."""
        self._anchor = None

    def _rows_grew(self) -> None:
        if self._anchor is not None:
            self._hold(self._anchor)
            if not self.rows.scanning or self.rows.scanned_lines > self._anchor:
                self._anchor = None
        self.changed()

    def _hold(self, line: int) -> None:
        follow = self.port.follow
        self.port.go(self.rows.row(line))
        self.port.follow = follow

    def changed(self) -> None:
        self.port.changed()
        self._changed()

    @property
    def hit(self) -> re.Pattern[str] | None:
        return self.search.shown if self.search is not None else None

    @property
    def filtered(self) -> bool:
        return self.rows.filtered

    @property
    def top_line(self) -> int:
        """The number of the first line on the screen."""
        shown = self.port.shown()
        return self.rows.line(shown[0][0]) if shown else 0

    def grown(self) -> bool:
        """Takes in what arrived since the last call; True when there was something."""
        pages = self.port.pages
        size = self.source.size_bytes
        if size == self._seen_bytes and self.source.generation == pages.generation:
            return False
        self._seen_bytes = size
        if pages.grown():
            self.range.clear()
            self.marked_line = None
            self.rows.restart()
            if self.search is not None:
                self.find(self.search.text, regex=self.search.regex, from_line=0)
        self.rows.grown()
        if self.search is not None:
            self.search.grown()
        self.changed()
        return True

    def choose(self, *, ranks: frozenset[str], least: Level, fold: bool) -> None:
        """Filters; the line at the top stays where it is as far as it is still shown."""
        self._anchor = self.top_line
        self.ranks, self.least, self.fold = ranks, least, fold
        self.rows.choose(ranks=ranks, least=least, fold=fold)
        self.range.clear()
        self._hold(self._anchor)
        self.changed()

    def find(self, text: str, *, regex: bool, from_line: int) -> None:
        """Begins a search; raises re.error for a faulty expression."""
        self.end_search()
        if text:
            self.search = LogSearch(self.source, text, regex=regex, pivot=from_line, changed=self.changed)
        self.changed()

    def end_search(self) -> None:
        if self.search is not None:
            self.search.cancel()
            self.search = None
            self.changed()

    def reveal(self, line: int, *, above: int, mark: bool = True) -> None:
        """Stands still with the line `above` rows below the screen's top."""
        if len(self.rows):
            self.port.go(self.rows.row(line), above=above)
            self.marked_line = line if mark else None
            self.changed()

    def selected_text(self) -> str:
        """The selection, or else the marked line or the first on the screen."""
        if not len(self.rows):
            return ""
        if self.range.ends is None:
            return self.port.pages.text(self.marked_line if self.marked_line is not None else self.top_line)
        return self.range.text()

    def close(self) -> None:
        self.end_search()
        self.rows.cancel()
