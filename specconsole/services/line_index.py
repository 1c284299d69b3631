"""A sparse index of line starts: how many newlines come before each block of a growing file.

A gigabyte of log is 16,384 numbers; a line is found by a bisection and a scan of one block.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

BLOCK_BYTES = 65536


class LineIndex:
    """Counts newlines per block as bytes are appended."""

    def __init__(self) -> None:
        self._before = array("Q", [0])
        """Newlines before block i; one entry a block, the last one possibly open."""
        self._size = 0
        self._newlines = 0
        self._ends_open = False

    @property
    def size_bytes(self) -> int:
        return self._size

    @property
    def newlines(self) -> int:
        return self._newlines

    @property
    def line_count(self) -> int:
        """Lines so far, an unfinished last one included."""
        return self._newlines + (1 if self._ends_open else 0)

    def skip(self, size_bytes: int, newlines: int) -> None:
        """Begins behind a part that is gone: whole blocks, `newlines` lines in all. Only before the first `append`."""
        blocks = size_bytes // BLOCK_BYTES
        self._before = array("Q", [0] * blocks + [newlines])
        self._size, self._newlines = size_bytes, newlines

    def newlines_before(self, offset: int) -> int:
        """Newlines before a block's start."""
        return self._before[offset // BLOCK_BYTES]

    def append(self, data: bytes) -> None:
        """Takes the next bytes of the file."""
        start = 0
        while start < len(data):
            room = BLOCK_BYTES - self._size % BLOCK_BYTES
            stop = min(len(data), start + room)
            self._newlines += data.count(b"\n", start, stop)
            self._size += stop - start
            if self._size % BLOCK_BYTES == 0:
                self._before.append(self._newlines)
            start = stop
        if data:
            self._ends_open = not data.endswith(b"\n")

    def block_of(self, line: int) -> tuple[int, int]:
        """(byte offset of a block, newlines before it) from which the start of `line` (0-based) is found by scanning.

        The start of line n is the byte behind newline n, counted from 1; line 0 starts at byte 0.
        """
        if line <= 0:
            return 0, 0
        # The newline that ends line n-1 stands in the last block with fewer than n newlines before it.
        block = bisect_left(self._before, line) - 1
        return block * BLOCK_BYTES, self._before[block]
