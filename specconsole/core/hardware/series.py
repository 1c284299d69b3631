"""Ten minutes of history in a fixed number of buckets, gaps included."""

from __future__ import annotations

HISTORY_S = 600.0
BUCKETS = 120
BUCKET_S = HISTORY_S / BUCKETS


class History:
    """Means over 5-second buckets of the last ten minutes; a bucket without a sample is None, never zero.

    Costs the same however fast samples come: 120 numbers a series.
    """

    __slots__ = ("_count", "_slot", "_sum", "_values")

    def __init__(self) -> None:
        self._values: list[float | None] = [None] * BUCKETS
        self._slot: int | None = None
        self._sum = 0.0
        self._count = 0

    def add(self, at_s: float, value: float | None) -> None:
        """A sample at a time that only grows; an older one is dropped."""
        slot = int(at_s // BUCKET_S)
        if self._slot is not None and slot < self._slot:
            return
        if slot != self._slot:
            self._move(slot)
        if value is not None:
            self._sum += value
            self._count += 1
            self._values[-1] = self._sum / self._count

    def values(self, at_s: float | None = None) -> tuple[float | None, ...]:
        """Oldest first, 120 of them; with a time, moved on to it, so that silence shows as a gap."""
        if at_s is not None and self._slot is not None and int(at_s // BUCKET_S) > self._slot:
            gone = min(BUCKETS, int(at_s // BUCKET_S) - self._slot)
            return (*self._values[gone:], *([None] * gone))
        return tuple(self._values)

    def _move(self, slot: int) -> None:
        if self._slot is not None:
            gone = min(BUCKETS, slot - self._slot)
            self._values = [*self._values[gone:], *([None] * gone)]
        self._slot, self._sum, self._count = slot, 0.0, 0
