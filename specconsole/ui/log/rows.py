"""Which lines the view shows, in order: all of them, or a selection that a background scan builds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING

from specconsole.core.views.log_scan import LineSelection
from specconsole.ui.log.background import BlockScan

if TYPE_CHECKING:
    from specconsole.core.views.log_line import Level
    from specconsole.services.commands import LineSource


class LogRows:
    """Row number <-> line number. `changed` is called in the loop when the rows grew by themselves."""

    def __init__(self, source: LineSource, changed: Callable[[], None]) -> None:
        self._source = source
        self._changed = changed
        self._selection: LineSelection | None = None
        self._scan: BlockScan[None] | None = None
        self.problem = ""

    @property
    def filtered(self) -> bool:
        return self._selection is not None

    @property
    def scanning(self) -> bool:
        return self._scan is not None

    @property
    def scanned_lines(self) -> int:
        return self._selection.scanned_lines if self._selection else self._source.line_count

    def choose(self, *, ranks: frozenset[str], least: Level, fold: bool) -> None:
        """Starts over with another filter."""
        self.cancel()
        selection = LineSelection(ranks=ranks, least=least, fold=fold)
        self._selection = selection if selection.active else None
        self.problem = ""
        self.grown()

    def restart(self) -> None:
        """Builds the same selection anew, because the lines before no longer hold."""
        old = self._selection
        if old is not None:
            self.choose(ranks=old.ranks, least=old.least, fold=old.fold)

    def grown(self) -> None:
        """Takes in what arrived since; call when the source grew."""
        selection = self._selection
        if selection is None or self._scan is not None or selection.scanned_lines >= self._source.line_count:
            return
        self._scan = BlockScan(self._source, selection.scanned_lines, selection.feed, self._more, self._finish)

    def _more(self, _: None, __: int) -> None:
        self._changed()

    def _finish(self, error: Exception | None) -> None:
        self._scan = None
        if error is not None:
            self.problem = str(error)
        self._changed()

    def cancel(self) -> None:
        if self._scan is not None:
            self._scan.cancel()
            self._scan = None

    def __len__(self) -> int:
        return len(self._selection.rows) if self._selection else self._source.line_count

    def line(self, row: int) -> int:
        """The line that a row shows; the row must exist."""
        return self._selection.rows[row] if self._selection else row

    def row(self, line: int) -> int:
        """The row that shows `line`, or the next one below it (the last row at the end)."""
        if self._selection is None:
            return max(0, min(line, self._source.line_count - 1))
        return max(0, min(bisect_left(self._selection.rows, line), len(self._selection.rows) - 1))

    def copies(self, line: int) -> int:
        """How many ranks printed this line, where the rows are folded."""
        return self._selection.copies.get(line, 1) if self._selection else 1
