"""What the load generator is told: its plan, as JSON, from a workload, a server and an order.

Points go repeat by repeat over all loads, not load by load over all repeats: a drift of the machine then shows as
noise between repeats instead of as a difference between loads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specconsole.core.measuring.counters import NAMES
from specconsole.core.measuring.result import CacheState
from specconsole.core.measuring.workload import Api, Workload

# SGLang 0.4.6-0.5.23 `POST /flush_cache` (400 while requests run). vLLM's /reset_prefix_cache needs a developer switch.
_FLUSH: Mapping[str, str] = {"sglang": "/flush_cache"}
# SGLang's own endpoint tells verify steps per request in every version; the OpenAI ones only from 0.5.15 on.
_NATIVE_API: Mapping[str, Api] = {"sglang": "generate"}
DEADLINE_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class BenchOrder:
    """Measure one server."""

    workload: str
    concurrency: tuple[int, ...] = ()
    """Instead of the workload's; empty: the workload's."""
    repeats: int = 1
    until_ci_ratio: float | None = None
    """Repeat until the interval of the throughput is within this share of its mean, `repeats` at most."""
    api: Api | None = None
    note: str = ""
    keep_text: bool = False
    """Keep the answers, for a check of losslessness."""


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    concurrency: int | None
    rate_per_s: float | None
    repeat: int
    requests: int
    warmup: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A whole run before it starts."""

    workload: Workload
    api: Api
    cache: CacheState
    points: tuple[PlannedPoint, ...]

    @property
    def requests(self) -> int:
        """Requests in all, warm-up included."""
        return sum(p.requests + p.warmup for p in self.points)

    @property
    def output_tokens(self) -> int:
        """At most so many tokens will be asked for."""
        return self.requests * self.workload.output_tokens[1]

    def budget_s(self, tok_s_at: Mapping[int, float]) -> float | None:
        """How long it will take at speeds seen before (output tok/s by concurrency); None when one is not known."""
        total = 0.0
        for point in self.points:
            speed = tok_s_at.get(point.concurrency or 0)
            if not speed or speed <= 0:
                return None
            total += (point.requests + point.warmup) * self.workload.output_tokens[1] / speed
        return total


def plan_run(workload: Workload, order: BenchOrder, engine: str) -> RunPlan:
    """Loads, repeats and counts of a run."""
    api = order.api or workload.api
    if order.api is None and api == "completions":
        api = _NATIVE_API.get(engine, api)
    loads = order.concurrency or workload.concurrency
    points: list[PlannedPoint] = []
    for repeat in range(max(1, order.repeats)):
        for concurrency in loads if not workload.rate_per_s else ():
            requests = workload.requests_at(concurrency)
            points.append(PlannedPoint(concurrency, None, repeat, requests, workload.warmup_at(concurrency)))
        points += [
            PlannedPoint(None, rate, repeat, max(workload.least_requests, round(30 * rate)), 2)
            for rate in workload.rate_per_s
        ]
    cache: CacheState = "flushed" if engine in _FLUSH else "unique-prompts"
    if workload.shared_prefix_ratio > 0:
        cache = "shared-prefix"
    return RunPlan(replace(workload, api=api), api, cache, tuple(points))


def plan_json(
    plan: RunPlan,
    *,
    engine: str,
    host: str,
    port: int,
    auth_file: str | None,
    metrics: bool,
    keep_text: bool,
    log_file: str | None = None,
) -> dict[str, Any]:
    """The plan file of the load generator (`loadgen/plan.py` has its shape)."""
    names = NAMES.get(engine)
    shape: dict[str, Any] = {
        "version": 1,
        "host": host,
        "port": port,
        "api": plan.api,
        "auth_file": auth_file,
        "auth_once": auth_file is not None,
        "requests": "requests.jsonl",
        "skip_file": "skip.json",
        "log_file": log_file,
        "keep_text": keep_text,
        "deadline_s": DEADLINE_S,
        "points": _points(plan),
    }
    if metrics and names is not None:
        page = {"path": "/metrics", "keep": list(names.keep)}
        shape["snapshot"] = [page]
        shape["sample"] = {**page, "every_s": 1.0}
    if engine in _FLUSH and plan.cache == "flushed":
        shape["before_point"] = [{"method": "POST", "path": _FLUSH[engine]}]
    return shape


def _points(plan: RunPlan) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    first = 0
    for number, point in enumerate(plan.points):
        entry: dict[str, Any] = {
            "requests": point.requests,
            "warmup": point.warmup,
            "first": first,
            "seed": plan.workload.seed + number,
            "label": {"concurrency": point.concurrency, "rate_per_s": point.rate_per_s, "repeat": point.repeat},
        }
        if plan.workload.duration_s is not None:
            entry["duration_s"] = plan.workload.duration_s
            del entry["requests"]
        if point.concurrency is not None:
            entry["concurrency"] = point.concurrency
        else:
            entry["rate_per_s"] = point.rate_per_s
        found.append(entry)
        # Every repeat of a load sends other lines, so that no point hits the cache of another.
        first += point.requests + point.warmup
    return found


def bodies_needed(plan: RunPlan) -> int:
    """How many request bodies to write: one for each request, so that none is sent twice (duration: a good many)."""
    if plan.workload.duration_s is not None:
        return max(2000, 4 * plan.requests)
    return plan.requests


def points_done(lines: Sequence[Mapping[str, Any]]) -> set[int]:
    """Indices of points that have ended."""
    return {line["point"] for line in lines if line.get("kind") == "point-end"}
