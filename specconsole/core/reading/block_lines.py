"""The lines of a block, cut out only where somebody looks at them.

Of a busy server's log hardly any line is looked at, so most blocks are never cut into lines at all.
"""

from __future__ import annotations

_WALK_LINES = 2000
"""So many steps from line to line, and the whole block is cut instead."""


class BlockLines:
    """What stands between the LFs of a block; the piece behind the last one counts, as with `split`."""

    __slots__ = ("_at", "_cut", "_index", "_steps", "block", "count")

    def __init__(self, block: bytes, count: int) -> None:
        """`count`: how many pieces there are."""
        self.block = block
        self.count = count
        self._cut: list[bytes] | None = None
        self._index, self._at = 0, 0
        self._steps = 0

    @property
    def cut(self) -> list[bytes]:
        """All of them."""
        if self._cut is None:
            self._cut = self.block.split(b"\n")
        return self._cut

    def known(self, index: int, at: int) -> None:
        """Line `index` begins at offset `at`: lines near to it are found from there."""
        self._index, self._at = index, at

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> bytes:
        if self._cut is not None:
            return self._cut[index]
        block, at, steps = self.block, self._at, index - self._index
        if self.count - index <= abs(steps):
            at, steps = len(block) + 1, index - self.count  # nearer to the end
        self._steps += abs(steps)
        if self._steps > _WALK_LINES:
            return self.cut[index]
        for _ in range(steps):
            at = block.find(b"\n", at) + 1
        for _ in range(-steps):
            at = block.rfind(b"\n", 0, at - 1) + 1
        self._index, self._at = index, at
        end = block.find(b"\n", at)
        return block[at:end] if end >= 0 else block[at:]

    def before(self, index: int, count: int) -> list[bytes]:
        """The `count` lines (fewer at the block's begin) before line `index`."""
        if self._cut is not None or index < self.count - 1:
            return self.cut[max(0, index - count) : index]
        if not index:
            return []
        block = self.block
        end = len(block) if index >= self.count else block.rfind(b"\n")
        at = end
        for _ in range(count):
            at = block.rfind(b"\n", 0, at)
            if at < 0:
                break
        return block[at + 1 : end].split(b"\n")
