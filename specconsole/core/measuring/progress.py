"""How far a run is, from the load generator's own lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specconsole.core.measuring.run_plan import PlannedPoint

SPEED_MEMORY = 3
"""Progress lines (one a second) that the speed shown is taken over."""


@dataclass(frozen=True, slots=True)
class BenchView:
    """One run, for a screen or a terminal."""

    bench_id: str
    name: str
    launch_id: str
    host: str
    state: str
    """`starting`, `measuring`, `stopping`, `done`, `cancelled`, `deadline`, `failed`, `broken-off`."""
    workload: str = ""
    load: str = ""
    """`C=4, repeat 2`: the point that is being measured; "" between points."""
    points_done: int = 0
    points: int = 0
    requests_done: int = 0
    requests: int = 0
    """All that are planned, warm-up included."""
    failed: int = 0
    in_flight: int = 0
    tok_s: float | None = None
    """Output tokens that ended lately, a second."""
    accept_length: float | None = None
    """Of the last point that ended."""
    spent_s: float | None = None
    eta_s: float | None = None
    """Until its end, at the pace of the points so far; None before there is one."""
    problem: str = ""
    """Why it failed, or what a person must know; "" when nothing."""

    @property
    def over(self) -> bool:
        return self.state in ("done", "cancelled", "deadline", "failed", "unfinished", "broken-off")


class RunProgress:
    """Takes lines in order; figures are as of the last line."""

    def __init__(self, planned: Sequence[PlannedPoint]) -> None:
        self._planned = tuple(planned)
        self.closed: set[int] = set()
        """Points that ended or were skipped."""
        self.current: int | None = None
        self.at_s = 0.0
        self.failed = 0
        self.in_flight = 0
        self._ended_before = 0
        self._ended_now = 0
        self._seen: list[tuple[float, float]] = []
        """(seconds, tokens of the point) of the last progress lines of the present point."""
        self._took_s: dict[int, float] = {}
        self._began_s = 0.0

    def take(self, line: Mapping[str, Any]) -> None:
        """Any line of the load generator."""
        at_s = line.get("at_s")
        if isinstance(at_s, int | float):
            self.at_s = max(self.at_s, float(at_s))
        kind = line.get("kind")
        if kind == "point":
            self.current = int(line["point"])
            self._began_s = float(at_s or 0.0)
            self._ended_now, self._seen = 0, []
        elif kind == "request":
            self._ended_now += 1
            if line.get("error") is not None and not line.get("warmup"):
                self.failed += 1
        elif kind == "progress":
            self.in_flight = int(line.get("in_flight") or 0)
            self._seen = [*self._seen, (float(line.get("point_s") or 0.0), float(line.get("tokens") or 0))]
            self._seen = self._seen[-SPEED_MEMORY - 1 :]
        elif kind in ("point-end", "skipped"):
            self.closed.add(int(line["point"]))
            if kind == "point-end":
                self._ended_before += self._ended_now
                self._took_s[int(line["point"])] = self.at_s - self._began_s
            self._ended_now, self.current, self.in_flight, self._seen = 0, None, 0, []

    @property
    def requests_done(self) -> int:
        return self._ended_before + self._ended_now

    @property
    def tok_s(self) -> float | None:
        """Tokens of requests that ended, a second, over the last progress lines."""
        if len(self._seen) < 2:
            return None
        (from_s, few), (to_s, many) = self._seen[0], self._seen[-1]
        return (many - few) / (to_s - from_s) if to_s > from_s else None

    @property
    def load(self) -> str:
        if self.current is None or self.current >= len(self._planned):
            return ""
        point = self._planned[self.current]
        what = f"C={point.concurrency}" if point.concurrency is not None else f"{point.rate_per_s:g}/s"
        return f"{what}, repeat {point.repeat + 1}"

    def left_s(self) -> float | None:
        """Seconds to the end: points like those that ended take as long as these did, others by their requests."""
        if not self._took_s:
            return None
        known: dict[tuple[int | None, float | None], list[float]] = {}
        for index, took_s in self._took_s.items():
            point = self._planned[index]
            known.setdefault((point.concurrency, point.rate_per_s), []).append(took_s)
        pace_s = sum(self._took_s.values()) / max(1, sum(self._count(n) for n in self._took_s))
        left = 0.0
        for index, point in enumerate(self._planned):
            if index in self.closed:
                continue
            like = known.get((point.concurrency, point.rate_per_s))
            left += sum(like) / len(like) if like else pace_s * self._count(index)
        if self.current is not None:
            left -= min(self.at_s - self._began_s, left)
        return left

    def _count(self, index: int) -> int:
        point = self._planned[index]
        return point.requests + point.warmup
