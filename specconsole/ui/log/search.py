"""A search through a log in the background: from where the person looks to the end, then from the start."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

from specconsole.core.views.log_scan import compile_search, match_lines
from specconsole.ui.log.background import BlockScan

if TYPE_CHECKING:
    from specconsole.services.commands import LineSource


class LogSearch:
    """Matches so far, by line number. `changed` is called in the loop when there are more, or it is done.

    Raises re.error when `text` is a regular expression with a fault in it.
    """

    def __init__(self, source: LineSource, text: str, *, regex: bool, pivot: int, changed: Callable[[], None]) -> None:
        self.text = text
        self.regex = regex
        self.pattern = compile_search(text, regex=regex)
        self.shown = re.compile(text if regex else re.escape(text), re.IGNORECASE if text == text.lower() else 0)
        self.problem = ""
        self.done = False
        self.scanned = 0
        self._source = source
        self._pivot = pivot
        self._before: array[int] = array("L")
        self._after: array[int] = array("L")
        self._end = pivot
        self._changed = changed
        self._scan: BlockScan[array[int]] | None = BlockScan(
            source, pivot, self._matches, self._found_after, self._after_end
        )

    def _matches(self, first: int, block: bytes) -> array[int]:
        return match_lines(first, block, self.pattern)

    def _found_after(self, lines: array[int], end: int) -> None:
        self._extend(self._after, lines)
        self.scanned += end - self._end
        self._end = end
        self._changed()

    def _after_end(self, error: Exception | None) -> None:
        if error is not None or self._pivot == 0:
            self._finish(error)
            return
        self._scan = BlockScan(self._source, 0, self._matches, self._found_before, self._finish, before=self._pivot)

    def _found_before(self, lines: array[int], end: int) -> None:
        cut = bisect_left(lines, self._pivot)
        self._extend(self._before, lines[:cut])
        self.scanned = (self._end - self._pivot) + min(end, self._pivot)
        self._changed()

    def _finish(self, error: Exception | None) -> None:
        self.done = True
        self._scan = None
        if error is not None:
            self.problem = str(error)
        self._changed()

    @staticmethod
    def _extend(matches: array[int], lines: array[int]) -> None:
        # The unfinished last line may be scanned twice.
        start = bisect_right(lines, matches[-1]) if matches and lines else 0
        matches.extend(lines[start:])

    def grown(self) -> None:
        """Scans what arrived since; call when the source grew."""
        if not self.done or self.problem:
            return
        self.done = False
        self._scan = BlockScan(self._source, max(0, self._end - 1), self._matches, self._found_after, self._finish)

    def cancel(self) -> None:
        if self._scan is not None:
            self._scan.cancel()
            self._scan = None

    @property
    def count(self) -> int:
        return len(self._before) + len(self._after)

    def ordinal(self, line: int) -> int | None:
        """1-based place of the match on `line` among those found; None when there is none on it."""
        for matches, ahead in ((self._before, 0), (self._after, len(self._before))):
            place = bisect_left(matches, line)
            if place < len(matches) and matches[place] == line:
                return ahead + place + 1
        return None

    def next_after(self, line: int) -> int | None:
        """The first match below `line`, else the first of all; None without any."""
        for matches in (self._before, self._after):
            place = bisect_right(matches, line)
            if place < len(matches):
                return matches[place]
        return self._before[0] if self._before else self._after[0] if self._after else None

    def previous_before(self, line: int) -> int | None:
        """The last match above `line`, else the last of all; None without any."""
        for matches in (self._after, self._before):
            place = bisect_left(matches, line)
            if place:
                return matches[place - 1]
        return self._after[-1] if self._after else self._before[-1] if self._before else None
