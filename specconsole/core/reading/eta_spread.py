"""From the uneven steps of a bar to a range for what is left.

Pure arithmetic on (count, seconds) points; the constants were set on the recorded starts and on synthetic shapes that
`benchmarks/eta.py` measures (slow first item, bursts, page cache and then cold disk), so that the range holds the
truth nine times in ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

_Z90 = 1.645
_FIRST_IS_SLOW = 3.0
"""A first step this many times slower per item than the others compiled or opened something: it is left out."""
_GRAPH_ITEM_S = 0.5
"""An ordinary graph or kernel (0.03 to 0.5 s each on an H200, SGLang 0.5.17); pulls down the word of one first item."""
_GRAPH_ITEM_LOW_S = 0.15
_WIDEST = 300.0
"""A range whose ends are further apart than this says nothing; None is more honest."""
_CLOCK_SLACK_S = 0.25
"""What printing, polling and whole seconds add to either end."""
_COMPILING_UNITS = frozenset({"graph", "item"})
_MIN_PACE_S = 1e-4

Points = Sequence[tuple[int, float]]


def remaining_range(
    points: Points, *, left: int, unit: str, waiting_s: float, slowest_wait_s: float
) -> tuple[float, float, float] | None:
    """(low, mid, high) seconds for `left` more items; None where the points support nothing.

    `waiting_s` is the time since the newest change of the count.
    """
    steps = [(d1 - d0, t1 - t0) for (d0, t0), (d1, t1) in zip(points, points[1:], strict=False) if d1 > d0]
    if not steps or left <= 0:
        return None
    if len(steps) == 1:
        return _from_one_step(steps[0], left, unit, waiting_s)
    steps = _without_slow_first(steps)
    overall = _pace(steps)
    recent = _pace(_newest(steps))
    if waiting_s > slowest_wait_s:
        # The item in work is slower than any before it: count the wait as its time so far.
        recent = max(recent, _pace([*_newest(steps), (1, waiting_s)]))
        overall = max(overall, _pace([*steps, (1, waiting_s)]))
    mid_pace = exp(0.5 * log(overall) + 0.5 * log(recent))
    low_sigma, high_sigma = _sigmas(steps, overall, recent, left)
    mid = left * mid_pace
    low, high = mid * exp(-_Z90 * low_sigma), mid * exp(_Z90 * high_sigma)
    spent = min(waiting_s, slowest_wait_s, 0.9 * mid)
    return _with_slack(low - min(waiting_s, slowest_wait_s), mid - spent, high)


def _from_one_step(
    step: tuple[int, float], left: int, unit: str, waiting_s: float
) -> tuple[float, float, float] | None:
    count, seconds = step
    pace = max(seconds / count, _MIN_PACE_S)
    if waiting_s > seconds:
        pace = max(pace, waiting_s)
    if unit in _COMPILING_UNITS and count == 1:
        low = min(pace, _GRAPH_ITEM_LOW_S) * left
        mid = min(pace, exp(0.7 * log(pace) + 0.3 * log(_GRAPH_ITEM_S))) * left
        high = 1.3 * pace * left
    else:
        # One shard: the page cache may end, or the reader may have been warming up.
        low, mid, high = 0.2 * pace * left, 0.8 * pace * left, 2.5 * pace * left
    if high / max(low, _CLOCK_SLACK_S) > _WIDEST:
        return None
    return _with_slack(low, mid, high)


def _without_slow_first(steps: list[tuple[int, float]]) -> list[tuple[int, float]]:
    first, rest = steps[0], steps[1:]
    if first[1] / first[0] > _FIRST_IS_SLOW * _pace(rest):
        return rest
    return steps


def _newest(steps: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The newest quarter of the steps, at least three."""
    return steps[-max(3, len(steps) // 4) :]


def _pace(steps: list[tuple[int, float]]) -> float:
    """Seconds an item."""
    return max(sum(seconds for _, seconds in steps) / sum(count for count, _ in steps), _MIN_PACE_S)


def _sigmas(steps: list[tuple[int, float]], overall: float, recent: float, left: int) -> tuple[float, float]:
    """Spread of the logarithm of the time left, below and above."""
    known = len(steps)
    uneven = _unevenness(steps, overall)
    done = sum(count for count, _ in steps)
    horizon = left / (left + done)
    noise = uneven * sqrt(1.0 / known + 1.0 / max(1.0, left * known / done))
    drift = 0.6 * abs(log(recent / overall))
    unknown = 0.35 * horizon / sqrt(known) + 0.08 * horizon
    sigma = sqrt(noise**2 + drift**2 + unknown**2)
    return sigma, sigma + 0.15 * horizon


def _unevenness(steps: list[tuple[int, float]], overall: float) -> float:
    """Relative deviation of a step's time from what its count explains (0 for a metronome)."""
    expected = [count * overall for count, _ in steps]
    squares = sum((seconds - mean) ** 2 for (_, seconds), mean in zip(steps, expected, strict=True))
    per_step = sum(expected) / len(steps)
    return min(2.0, sqrt(squares / len(steps)) / per_step)


def _with_slack(low: float, mid: float, high: float) -> tuple[float, float, float]:
    mid = max(mid, 0.0)
    return max(0.0, min(low - _CLOCK_SLACK_S, mid)), mid, max(high + _CLOCK_SLACK_S, mid)
