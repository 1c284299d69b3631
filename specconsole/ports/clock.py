"""The time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time, so that tests can turn it."""

    def monotonic_s(self) -> float: ...

    def wall_s(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...
