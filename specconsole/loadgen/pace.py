"""When the next request may start: closed loop (a slot is free) or open loop (its arrival time has come).

The supply of a point: first its warm-up requests, then the measured ones, without a pause between, so that the
measured ones meet a server at full concurrency. `window` is the steady state: from the moment when all slots hold
measured requests (closed loop) or the first measured arrival (open loop), to the moment when the supply ends.
"""

from __future__ import annotations

import random
from typing import Dict, Optional, Tuple

from .plan import Point


class Pace:
    """Hands out `(is_warmup, scheduled time or None)`; the caller tells it when requests start and end."""

    def __init__(self, point: Point, now_s: float) -> None:
        self.point = point
        self.started = 0
        self.in_flight = 0
        self.window_start_s: Optional[float] = None
        self.window_end_s: Optional[float] = None
        self.capped = False
        """Open loop: an arrival had to wait because `max_in_flight` were out."""
        self._random = random.Random(point.seed)  # noqa: S311 - arrivals must repeat, not surprise
        self._next_s = now_s
        self._measured_from_s: Optional[float] = None
        self._warm_in_flight = 0
        self._stopped = False

    def take(self, now_s: float) -> Optional[Tuple[bool, Optional[float]]]:
        """A request that may start now, or None."""
        if self._stopped or self._supply_over(now_s):
            self._end_window(now_s)
            return None
        warmup = self.started < self.point.warmup
        scheduled_s: Optional[float] = None
        if self.point.concurrency is not None:
            if self.in_flight >= self.point.concurrency:
                return None
        else:
            if now_s < self._next_s:
                return None
            if self.in_flight >= self.point.max_in_flight:
                self.capped = True
                return None
            scheduled_s = self._next_s
            assert self.point.rate_per_s is not None
            self._next_s += self._random.expovariate(self.point.rate_per_s)
        self.started += 1
        self.in_flight += 1
        if warmup:
            self._warm_in_flight += 1
        elif self._measured_from_s is None:
            self._measured_from_s = now_s
        self._open_window(now_s)
        return warmup, scheduled_s

    def ended(self, warmup: bool, now_s: float) -> None:
        self.in_flight -= 1
        if warmup:
            self._warm_in_flight -= 1
            self._open_window(now_s)

    def wait_s(self, now_s: float) -> float:
        """How long nothing can start by itself; closed loops wait for an end, so any time will do."""
        if self.point.concurrency is not None or self._stopped or self._supply_over(now_s):
            return 1.0
        if self.in_flight >= self.point.max_in_flight:
            return 1.0
        return max(0.0, self._next_s - now_s)

    def stop(self, now_s: float) -> None:
        self._stopped = True
        self._end_window(now_s)

    def over(self, now_s: float) -> bool:
        """Nothing is out and nothing more will start."""
        return self.in_flight == 0 and (self._stopped or self._supply_over(now_s))

    def figures(self) -> Dict[str, object]:
        return {"started": self.started, "capped": self.capped}

    def _supply_over(self, now_s: float) -> bool:
        if self.point.requests is not None and self.started >= self.point.warmup + self.point.requests:
            return True
        limit_s = self.point.duration_s
        return limit_s is not None and self._measured_from_s is not None and now_s - self._measured_from_s >= limit_s

    def _open_window(self, now_s: float) -> None:
        if self.window_start_s is None and self._warm_in_flight == 0 and self._measured_from_s is not None:
            full = self.point.concurrency is None or self.in_flight >= min(
                self.point.concurrency, self.point.requests or self.point.concurrency
            )
            if full:
                self.window_start_s = now_s

    def _end_window(self, now_s: float) -> None:
        if self.window_end_s is None:
            self.window_end_s = now_s
