"""How much of a row's noise comes from measuring, and how much from starting the server anew.

Repeats within one start tell the first; two starts of one profile differ by more (placement in memory, clocks).
The parts are those of a one-way analysis of variance with starts as groups, which may be of unequal size:

    within^2  = sum over starts of squared deviations from the start's own mean / (points - starts)
    between^2 = max(0, (mean square between - within^2) / n0),  n0 = (points - sum n_i^2 / points) / (starts - 1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specconsole.core.measuring.metrics import Metric
from specconsole.core.measuring.result import MeasuredPoint


@dataclass(frozen=True, slots=True)
class StartMean:
    """One start of the server at one load."""

    launch_id: str
    at_s: float
    """When its first point began."""
    count: int
    mean: float


@dataclass(frozen=True, slots=True)
class LaunchSpread:
    """One row at one load. Ratios are standard deviations over the mean; None where it can't be told."""

    starts: tuple[StartMean, ...]
    """The oldest first."""
    mean: float
    within_ratio: float | None
    """None: no start has two points."""
    between_ratio: float | None
    """None: fewer than two starts, or `within` is unknown. 0.0: starts differ by no more than repeats do."""


def launch_spread(points: Sequence[MeasuredPoint], metric: Metric) -> LaunchSpread | None:
    """Of the points of one load; None without a value."""
    groups: dict[str, list[float]] = {}
    began: dict[str, float] = {}
    for point in points:
        value = metric.value(point)
        if value is not None:
            groups.setdefault(point.launch_id, []).append(value)
            began[point.launch_id] = min(began.get(point.launch_id, point.at_s), point.at_s)
    if not groups:
        return None
    values = [value for group in groups.values() for value in group]
    mean = math.fsum(values) / len(values)
    means = {key: math.fsum(group) / len(group) for key, group in groups.items()}
    order = sorted(groups, key=began.__getitem__)
    starts = tuple(StartMean(key, began[key], len(groups[key]), means[key]) for key in order)
    free = len(values) - len(groups)
    if free < 1 or mean <= 0:
        return LaunchSpread(starts, mean, None, None)
    within = math.fsum((value - means[key]) ** 2 for key, group in groups.items() for value in group) / free
    between = None
    if len(groups) > 1:
        apart = math.fsum(len(groups[key]) * (means[key] - mean) ** 2 for key in groups) / (len(groups) - 1)
        even = (len(values) - sum(len(g) ** 2 for g in groups.values()) / len(values)) / (len(groups) - 1)
        between = math.sqrt(max(0.0, (apart - within) / even)) / mean
    return LaunchSpread(starts, mean, math.sqrt(within) / mean, between)


def spread_text(spread: LaunchSpread | None) -> str:
    """`repeats within a start vary by 0.8 %, 10 starts by 2.1 %`; "" where there is nothing to tell."""
    if spread is None or spread.within_ratio is None:
        return ""
    text = f"repeats within a start vary by {100 * spread.within_ratio:.1f} %"
    if spread.between_ratio == 0.0:
        return f"{text}; its {len(spread.starts)} starts differ by no more than that"
    if spread.between_ratio is not None:
        return f"{text}, its {len(spread.starts)} starts by {100 * spread.between_ratio:.1f} % more"
    return f"{text}; how much starts differ is not known from one"
