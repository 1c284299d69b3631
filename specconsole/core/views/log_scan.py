"""Scans over a log's raw blocks: search, filter, fold, time. Pure; the pane runs them in a thread, block by block.

Every scan takes (number of the block's first line, raw bytes of whole lines) in order and keeps line numbers
only, so ten million lines cost four bytes each at the most.
"""

from __future__ import annotations

import re
from array import array
from collections import OrderedDict
from dataclasses import dataclass, field

from specconsole.core.views.log_line import LEVELS, Level, fold_key, mark_line, plain, time_of_day_s

FOLD_WINDOW_LINES = 64
"""Ranks print the same statement within this many lines of each other, or it is not one statement."""


def compile_search(text: str, *, regex: bool) -> re.Pattern[bytes]:
    """A pattern over raw lines. Lower case finds both cases. Raises re.error with the place of the fault."""
    source = text if regex else re.escape(text)
    flags = re.MULTILINE | (re.IGNORECASE if text == text.lower() else 0)
    return re.compile(source.encode(), flags)


def match_lines(first_line: int, block: bytes, pattern: re.Pattern[bytes]) -> array[int]:
    """Numbers of the lines that match, each once, ascending."""
    block = plain(block)
    found: array[int] = array("L")
    line = first_line
    counted_to = 0
    position = 0
    size = len(block)
    while position <= size:
        match = pattern.search(block, position)
        if match is None:
            break
        start = match.start()
        line += block.count(b"\n", counted_to, start)
        counted_to = start
        if start >= size and size and block.endswith(b"\n"):
            break
        found.append(line)
        end = block.find(b"\n", start)
        if end < 0:
            break
        position = end + 1
    return found


@dataclass(slots=True)
class LineSelection:
    """Which lines the pane shows: filtered by rank and level, folded over ranks. Grows with the log."""

    ranks: frozenset[str] = frozenset()
    """Empty: all."""
    least: Level = "debug"
    """The lowest level shown; lines that continue a record go with it."""
    fold: bool = False
    rows: array[int] = field(default_factory=lambda: array("L"))
    """Numbers of the lines shown, ascending."""
    copies: dict[int, int] = field(default_factory=dict)
    """Line shown -> how many ranks printed it, where that is more than one."""
    scanned_lines: int = 0
    _rank: str | None = None
    _level: Level = "info"
    _shown: bool = True
    _recent: OrderedDict[bytes, tuple[int, set[str]]] = field(default_factory=OrderedDict)

    @property
    def active(self) -> bool:
        return bool(self.ranks) or self.least != "debug" or self.fold

    def feed(self, first_line: int, block: bytes) -> None:
        """Takes the next block; must follow the one before without a gap."""
        least = LEVELS.index(self.least)
        lines = plain(block).split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, first_line):
            mark = mark_line(line)
            if mark.begins:
                self._rank, self._level = mark.rank, mark.level
            elif LEVELS.index(mark.level) > LEVELS.index(self._level):
                # `RuntimeError: CUDA out of memory` below an INFO header is still an error.
                self._level = mark.level
            self._shown = (not self.ranks or self._rank in self.ranks) and LEVELS.index(self._level) >= least
            if self._shown and not (self.fold and self._folded(number, line)):
                self.rows.append(number)
        self.scanned_lines = first_line + len(lines)

    def _folded(self, number: int, line: bytes) -> bool:
        if self._rank is None:
            return False
        key = fold_key(line)
        known = self._recent.get(key)
        if known is not None and number - known[0] <= FOLD_WINDOW_LINES and self._rank not in known[1]:
            known[1].add(self._rank)
            self.copies[known[0]] = len(known[1])
            return True
        self._recent[key] = (number, {self._rank})
        self._recent.move_to_end(key)
        while len(self._recent) > 4 * FOLD_WINDOW_LINES:
            self._recent.popitem(last=False)
        return False


def first_line_at(first_line: int, block: bytes, time_s: int) -> int | None:
    """The first line in the block whose stamp is `time_s` (seconds since midnight) or up to an hour later."""
    for number, line in enumerate(plain(block).split(b"\n"), first_line):
        stamp = time_of_day_s(line)
        if stamp is not None and 0 <= stamp - time_s < 3600:
            return number
    return None
