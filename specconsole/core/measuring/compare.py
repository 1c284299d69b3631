"""Results side by side: each cell a number with its noise, and what it is against the baseline's at the same load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specconsole.core.measuring.economics import Crossing, DecodeCost, SpeedUp, Verdict, find_crossings, judge
from specconsole.core.measuring.fairness import Difference, comparable, differences
from specconsole.core.measuring.marks import is_excluded
from specconsole.core.measuring.metrics import Metric
from specconsole.core.measuring.result import MeasuredPoint, Result
from specconsole.core.measuring.statistics import (
    CONFIDENCE,
    STOPPED_CONFIDENCE,
    Interval,
    RatioInterval,
    interval_of,
    ratio_of,
)

Tendency = Literal["better", "worse", "noise", "unknown"]
"""Against the baseline: `noise` when the interval holds 1, `unknown` without repeats on both sides."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One result at one load."""

    load: float
    value: Interval | None
    against_baseline: RatioInterval | None
    """This over the baseline; None for the baseline itself and where either is missing."""
    tendency: Tendency
    verdict: Verdict | None
    """Break-even and the rest; None for a plain server, or where the steps are unknown."""
    end_to_end_speed_up: float | None
    """Baseline's mean E2E latency over this one's."""
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    result: Result
    cells: tuple[Cell, ...]
    crossings: tuple[Crossing, ...]
    """Where its decode speed passes the baseline's."""
    unfair: tuple[Difference, ...]
    """Differences from the baseline; empty for the baseline."""
    comparable: bool


@dataclass(frozen=True, slots=True)
class Table:
    metric: Metric
    loads: tuple[float, ...]
    baseline_id: str | None
    rows: tuple[Row, ...]


def compare(results: Sequence[Result], metric: Metric, *, baseline_id: str | None) -> Table:
    """A table of results over loads. Rows keep the order given; an unknown `baseline_id` is no baseline."""
    loads = tuple(sorted({load for result in results for load in result.loads}))
    baseline = next((result for result in results if result.result_id == baseline_id), None)
    rows = tuple(_row(result, baseline, metric, loads) for result in results)
    return Table(metric, loads, baseline.result_id if baseline else None, rows)


def pooled_cost(points: Sequence[MeasuredPoint]) -> DecodeCost:
    """Repeats of one load pooled; steps are unknown when any repeat's are (a plain server's are its tokens)."""
    steps = [point.acceptance.target_steps for point in points]
    known = [s for s in steps if s is not None]
    # Counters see warm-up too, requests do not: bring each repeat's steps to its measured decode tokens.
    scaled = [
        point.metrics.decode_tokens / point.acceptance.accept_length
        for point in points
        if point.acceptance.accept_length
    ]
    total = round(sum(scaled)) if len(known) == len(points) == len(scaled) and points else None
    return DecodeCost(
        sum(point.metrics.decode_time_s for point in points),
        sum(point.metrics.decode_tokens for point in points),
        total,
    )


def _row(result: Result, baseline: Result | None, metric: Metric, loads: tuple[float, ...]) -> Row:
    other = baseline if baseline is not None and baseline.result_id != result.result_id else None
    found = differences(other, result) if other else ()
    fair = comparable(found)
    cells = tuple(_cell(result, other if fair else None, metric, load) for load in loads)
    crossings: tuple[Crossing, ...] = ()
    if other and fair:
        crossings = find_crossings(_speed_ups(result, other, loads))
    return Row(result, cells, crossings, found, fair)


def _cell(result: Result, baseline: Result | None, metric: Metric, load: float) -> Cell:
    points = result.at(load)
    values = [v for point in points if (v := metric.value(point)) is not None]
    launches = len({point.launch_id for point in points})
    marks = tuple(dict.fromkeys(mark for point in points for mark in point.all_marks))
    value = interval_of(values, launches=launches, confidence=_confidence(result)) if values else None
    if baseline is None or not values:
        return Cell(load, value, None, "unknown", None, None, marks)
    plain = baseline.at(load)
    plain_values = [v for point in plain if (v := metric.value(point)) is not None]
    ratio = None
    if plain_values and min(*values, *plain_values, 1.0) > 0:
        ratio = ratio_of(plain_values, values, confidence=_confidence(result, baseline))
    usable = bool(plain) and not is_excluded(marks) and not any(is_excluded(p.all_marks) for p in plain)
    verdict = None
    if usable:
        verdict = judge(pooled_cost(points), _plain(pooled_cost(plain)), num_steps=result.conditions.num_steps)
    return Cell(load, value, ratio, _tendency(ratio, metric), verdict, _end_to_end(points, plain), marks)


def _confidence(*results: Result) -> float:
    """Stricter where a run could stop at a lucky moment."""
    return STOPPED_CONFIDENCE if any(r.until_ci_ratio is not None for r in results) else CONFIDENCE


def _plain(cost: DecodeCost) -> DecodeCost:
    """The baseline's TPOT is what matters, whether or not it drafts itself."""
    return DecodeCost(cost.decode_time_s, cost.decode_tokens, cost.decode_tokens)


def _tendency(ratio: RatioInterval | None, metric: Metric) -> Tendency:
    if ratio is None or ratio.differs is None or metric.better == "neither":
        return "unknown"
    if not ratio.differs:
        return "noise"
    return "better" if (ratio.ratio > 1.0) == (metric.better == "higher") else "worse"


def _end_to_end(points: Sequence[MeasuredPoint], plain: Sequence[MeasuredPoint]) -> float | None:
    ours = [p.metrics.e2e_s.mean for p in points if p.metrics.e2e_s.mean]
    theirs = [p.metrics.e2e_s.mean for p in plain if p.metrics.e2e_s.mean]
    if not ours or not theirs:
        return None
    return (sum(theirs) / len(theirs)) / (sum(ours) / len(ours))


def _speed_ups(result: Result, baseline: Result, loads: Sequence[float]) -> list[SpeedUp]:
    """Decode speed-ups at equal load; points that say something else than the draft are left out."""
    found: list[SpeedUp] = []
    for load in loads:
        ours, theirs = result.at(load), baseline.at(load)
        if not ours or not theirs or any(is_excluded(p.all_marks) for p in (*ours, *theirs)):
            continue
        speeds = [[1.0 / t for p in side if (t := p.metrics.cost(None).tpot_s)] for side in (theirs, ours)]
        if not speeds[0] or not speeds[1]:
            continue
        ratio = ratio_of(speeds[0], speeds[1], confidence=_confidence(result, baseline))
        running = [p.metrics.running_mean for p in ours if p.metrics.running_mean is not None]
        achieved = sum(running) / len(running) if running else load
        found.append(SpeedUp(achieved / result.conditions.dp_size, ratio.ratio, ratio.low, ratio.high))
    return found
