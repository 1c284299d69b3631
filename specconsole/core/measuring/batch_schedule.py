"""From measured chains of several lengths: how many draft steps pay at which batch size.

At each measured load the number of steps with the lowest pooled TPOT wins (0 is plain decoding); where the winner
changes between two loads, the batch size at which the two are equal is interpolated on logarithms, as all crossings
are. Nothing is said about batch sizes beyond the largest measured one: the engines carry the last number on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from specconsole.core.measuring.compare import pooled_cost
from specconsole.core.measuring.economics import SpeedUp, find_crossings
from specconsole.core.measuring.fairness import comparable, differences
from specconsole.core.measuring.marks import is_excluded
from specconsole.core.measuring.result import MeasuredPoint, Result
from specconsole.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Tier:
    """A range of batch sizes, and what pays in it."""

    first: int
    last: int
    """Of the last tier: the largest batch that was measured."""
    steps: int
    """Draft steps of the fastest chain; 0: plain decoding."""
    candidates: tuple[int, ...]
    """Every measured number of steps that is within `slack_ratio` of the fastest somewhere in the range."""


@dataclass(frozen=True, slots=True)
class BatchSchedule:
    tiers: tuple[Tier, ...]
    """In order, without gaps, the first from batch size 1."""
    notes: tuple[str, ...] = ()
    """What a reader must know."""


@dataclass(frozen=True, slots=True)
class _Load:
    load: float
    batch: float
    """Requests that ran at once, mean over the chains measured there."""
    tpot_s: dict[int, float]
    """Steps -> pooled time per output token."""

    @property
    def best(self) -> int:
        # Of two equal ones the shorter chain.
        return min(self.tpot_s, key=lambda steps: (self.tpot_s[steps], steps))


def batch_schedule(results: Sequence[Result], *, slack_ratio: float = 0.05) -> BatchSchedule:
    """Raises BadInputError where the results can't be compared, are no chains, or share no load."""
    chains = _chains(results)
    loads = _loads(chains)
    if len(loads) < 1:
        raise BadInputError("no load was measured with two of them", try_="bench each at the same concurrencies")
    starts = [(1, loads[0].best)]
    notes: list[str] = []
    for left, right in pairwise(loads):
        if left.best != right.best:
            at, note = _switch(left, right)
            notes += note
            starts.append((max(at, starts[-1][0] + 1), right.best))
    end = max(round(loads[-1].batch), starts[-1][0])
    tiers = []
    for index, (first, steps) in enumerate(starts):
        last = starts[index + 1][0] - 1 if index + 1 < len(starts) else end
        tiers.append(Tier(first, last, steps, _candidates(loads, first, last, steps, slack_ratio)))
    if all(tier.steps == 0 for tier in tiers):
        raise BadInputError(
            "plain decoding is the fastest at every load that was measured: no draft pays there",
            try_="measure lower concurrencies, or a better draft",
        )
    notes.append(f"measured up to {end} requests at once; beyond, the last number goes on unmeasured")
    if loads[0].batch > 1.5:
        notes.append(f"measured from {round(loads[0].batch)} requests at once; below, the first number is a guess")
    return BatchSchedule(tuple(tiers), tuple(notes))


def _chains(results: Sequence[Result]) -> dict[int, list[Result]]:
    """Steps -> the results with them; at least two numbers, all comparable with the first."""
    if len(results) < 2:
        raise BadInputError("one result has nothing to cross", try_="results of two or more numbers of steps")
    chains: dict[int, list[Result]] = {}
    for result in results:
        refused = [d for d in differences(results[0], result) if d.weight == "refuses"]
        if not comparable(tuple(refused)):
            raise BadInputError(f"{result.name} can't be compared: other {refused[0].what}", where=result.result_id)
        if result.conditions.simulated:
            raise BadInputError(f"{result.name} is SIMULATED: nothing real follows from it", where=result.result_id)
        if result.conditions.dp_size > 1:
            raise BadInputError("adaptive speculation does not work with data parallelism", where=result.result_id)
        chains.setdefault(_steps(result), []).append(result)
    if len(chains) < 2:
        raise BadInputError(
            f"all of them have {next(iter(chains))} draft steps", try_="results of two or more numbers of steps"
        )
    return chains


def _steps(result: Result) -> int:
    conditions = result.conditions
    topk = conditions.settings.get("speculative_eagle_topk")
    if isinstance(topk, int) and topk > 1:
        raise BadInputError(f"{result.name} drafts a tree (topk {topk}); chains only", where=result.result_id)
    if conditions.num_steps is not None:
        return conditions.num_steps
    if conditions.speculative is False:
        return 0
    raise BadInputError(f"how many steps {result.name} drafts is not known", where=result.result_id)


def _loads(chains: dict[int, list[Result]]) -> list[_Load]:
    found: list[_Load] = []
    for load in sorted({load for results in chains.values() for one in results for load in one.loads}):
        tpot_s: dict[int, float] = {}
        running: list[float] = []
        for steps, results in chains.items():
            points = [point for one in results for point in one.at(load) if not is_excluded(point.all_marks)]
            value = _tpot_s(points)
            if value is not None and value > 0:
                tpot_s[steps] = value
                running += [_running(point) for point in points]
        if len(tpot_s) > 1:
            found.append(_Load(load, sum(running) / len(running), tpot_s))
    return sorted(found, key=lambda one: one.batch)


def _tpot_s(points: Sequence[MeasuredPoint]) -> float | None:
    """Pooled; of another client's results, which tell no totals, the mean of what it told."""
    pooled = pooled_cost(points).tpot_s
    told = [point.metrics.tpot_s.mean for point in points if point.metrics.tpot_s.mean is not None]
    return pooled if pooled is not None else sum(told) / len(told) if told else None


def _running(point: MeasuredPoint) -> float:
    mean = point.metrics.running_mean
    return mean if mean is not None else point.load


def _switch(left: _Load, right: _Load) -> tuple[int, list[str]]:
    """The first batch size of the right load's winner."""
    before, after = left.best, right.best
    sides = (left.tpot_s.get(before), left.tpot_s.get(after), right.tpot_s.get(before), right.tpot_s.get(after))
    if None not in sides:
        points = [SpeedUp(one.batch, one.tpot_s[after] / one.tpot_s[before]) for one in (left, right)]
        crossings = find_crossings(points)
        if crossings:
            return math.floor(crossings[0].concurrency) + 1, []
    # One of the two was not measured on both sides, or they are equal on one.
    note = f"between {round(left.batch)} and {round(right.batch)} requests at once {before} and {after} steps were not "
    return max(2, math.ceil(right.batch)), [note + "both measured: the switch is at the latter"]


def _candidates(loads: Sequence[_Load], first: int, last: int, steps: int, slack_ratio: float) -> tuple[int, ...]:
    near = {steps}
    for one in loads:
        if first <= max(1, round(one.batch)) <= last:
            limit = one.tpot_s[one.best] * (1 + slack_ratio)
            near |= {number for number, value in one.tpot_s.items() if value <= limit}
    return tuple(sorted(near))
