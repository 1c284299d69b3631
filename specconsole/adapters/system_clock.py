"""The machine's own clocks."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """A `Clock` that nobody turns."""

    def monotonic_s(self) -> float:
        return time.monotonic()

    def wall_s(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
