"""A clock that a test turns by hand; satisfies `specconsole.ports.Clock`."""

from __future__ import annotations

import asyncio
import heapq
import itertools


class FakeClock:
    """Starts at `monotonic_s` and `wall_s`; time passes only in `advance`."""

    def __init__(self, *, monotonic_s: float = 1000.0, wall_s: float = 1_764_000_000.0) -> None:
        self._now_s = monotonic_s
        self._wall_offset_s = wall_s - monotonic_s
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def monotonic_s(self) -> float:
        return self._now_s

    def wall_s(self) -> float:
        return self._now_s + self._wall_offset_s

    def step_wall(self, seconds: float) -> None:
        """The wall clock jumps (a clock set by hand or by NTP); the monotonic one does not."""
        self._wall_offset_s += seconds

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now_s + max(0.0, seconds), next(self._order), future))
        await future

    @property
    def sleeping(self) -> int:
        """How many tasks wait for this clock."""
        return sum(not future.done() for _, _, future in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Lets `seconds` pass, waking each sleeper at its own moment and letting it run before the next."""
        end_s = self._now_s + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end_s:
            due_s, _, future = heapq.heappop(self._sleepers)
            self._now_s = max(self._now_s, due_s)
            if not future.done():
                future.set_result(None)
            await settle()
        self._now_s = end_s


async def settle(rounds: int = 20) -> None:
    """Lets every task that can run do so, a few hand-overs deep."""
    for _ in range(rounds):
        await asyncio.sleep(0)
