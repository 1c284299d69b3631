"""From the uneven steps of a bar to a range for what is left.

Pure arithmetic on (count, seconds) points; the constants were set on the recorded starts and on synthetic shapes that
`benchmarks/eta.py` measures (slow first item, bursts, page cache and then cold disk), so that the range holds the
truth nine times in ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log, sqrt
from statistics import median

_Z90 = 1.645
_FIRST_IS_SLOW = 3.0
"""A first step this many times slower per item than the others compiled or opened something."""
_GRAPH_ITEM_S = 0.15
"""An ordinary graph or kernel (0.03 to 0.5 s each on an H200, SGLang 0.5.17); pulls down the word of one first item."""
_GRAPH_ITEM_LOW_S = 0.03
_SMALLER_GRAPHS = 0.25
"""Logarithm of how much faster the second half of the graphs goes than the first (recorded starts: 0.1 to 0.5)."""
_FIRST_ITEM_WEIGHT = 0.65
_WIDEST = 1000.0
"""A range whose ends are further apart than this says nothing; None is more honest."""
_CLOCK_SLACK_S = 0.25
"""What printing, polling and whole seconds add to either end."""
_COMPILING_UNITS = frozenset({"graph", "item"})
_TURN = 0.4
"""Logarithm of a change of pace that is more than noise."""
_MIN_PACE_S = 1e-12
"""Keeps logarithms finite; a byte of a fast download takes a thousand times as long."""
_OVERDUE_MID, _OVERDUE_HIGH = 0.6, 4.0
"""How much longer an item takes that has already taken longer than any before it, as a multiple of its wait so far."""

Points = Sequence[tuple[int, float]]
Step = tuple[int, float]
Range = tuple[float, float, float]


def remaining_range(points: Points, *, left: int, unit: str, waiting_s: float, slowest_wait_s: float) -> Range | None:
    """(low, mid, high) seconds for `left` more items; None where the points support nothing.

    `waiting_s` is the time since the newest change of the count, `slowest_wait_s` the longest such time before it.
    """
    steps = _steps(points)
    if not steps or left <= 0:
        return None
    if len(steps) == 1:
        return _from_one_step(steps[0], left, unit, waiting_s)
    kept, doubt = _without_slow_first(steps, unit)
    overall, recent, mid_pace = _paces(kept)
    low_sigma, high_sigma = _sigmas(kept, overall, recent, left)
    # A burst after a wait looks like a slow first item: until more has been seen, the truth may lie with either.
    mid_pace *= exp(doubt / 2)
    if unit == "graph":
        # Servers capture the largest batch first: what is left is smaller than what was seen.
        mid_pace *= exp(-_SMALLER_GRAPHS * left / (left + sum(count for count, _ in kept)))
        low_sigma += _SMALLER_GRAPHS / 2
    low_sigma, high_sigma = sqrt(low_sigma**2 + (doubt / 2) ** 2), sqrt(high_sigma**2 + (doubt / 2) ** 2)

    step_count = min(left, median(count for count, _ in kept))
    due = _step_in_work(step_count * mid_pace, waiting_s, max(slowest_wait_s, max(s for _, s in steps[1:])))
    rest = left - step_count
    slowed = mid_pace
    if waiting_s > slowest_wait_s:
        slowed = max(mid_pace, _pace([*_newest(kept), (1, waiting_s)]))
    return _with_slack(
        due[0] + rest * mid_pace * exp(-_Z90 * low_sigma),
        due[1] + rest * exp((log(mid_pace) + log(slowed)) / 2),
        due[2] + rest * slowed * exp(_Z90 * high_sigma),
    )


def pace_s(points: Points, *, unit: str) -> float | None:
    """Seconds an item now and from here on, as far as the points tell; None before the first step."""
    steps = _steps(points)
    if not steps:
        return None
    return _paces(_without_slow_first(steps, unit)[0])[2] if len(steps) > 1 else _pace(steps)


def _steps(points: Points) -> list[Step]:
    return [(d1 - d0, t1 - t0) for (d0, t0), (d1, t1) in pairwise(points) if d1 > d0]


def _paces(steps: list[Step]) -> tuple[float, float, float]:
    """Overall, of the newest steps, and what to expect."""
    overall, recent = _pace(steps), _pace(_newest(steps))
    weight = _recent_weight(steps, overall, recent)
    return overall, recent, exp((1 - weight) * log(overall) + weight * log(recent))


def _from_one_step(step: Step, left: int, unit: str, waiting_s: float) -> Range | None:
    count, seconds = step
    pace = max(seconds / count, _MIN_PACE_S)
    # A bar first seen in the middle shows many items as one step: what is due next is not as much again.
    due_count = min(left, count)
    due = _step_in_work(due_count * pace, waiting_s, due_count * pace)
    rest = left - due_count
    if unit in _COMPILING_UNITS and count == 1:
        low = rest * min(pace, _GRAPH_ITEM_LOW_S)
        mid = (rest + 1) * min(
            pace, exp(_FIRST_ITEM_WEIGHT * log(pace) + (1 - _FIRST_ITEM_WEIGHT) * log(_GRAPH_ITEM_S))
        )
        high = 1.3 * (rest + 1) * pace + (due[2] if waiting_s > seconds else 0.0)
    else:
        # One shard says little: the page cache may end, or the reader may only have been warming up.
        low, mid, high = 0.15 * rest * pace, due[1] + 0.8 * rest * pace, due[2] + 2.5 * rest * pace
    if high / max(low, _CLOCK_SLACK_S) > _WIDEST:
        return None
    return _with_slack(low, mid, high)


def _step_in_work(usual_s: float, waiting_s: float, slowest_s: float) -> Range:
    """What the step that is being waited for still takes."""
    if waiting_s <= slowest_s:
        return 0.0, max(0.1 * usual_s, usual_s - waiting_s), max(usual_s, 1.5 * slowest_s) - min(waiting_s, usual_s)
    return 0.0, _OVERDUE_MID * waiting_s, _OVERDUE_HIGH * waiting_s


def _without_slow_first(steps: list[Step], unit: str) -> tuple[list[Step], float]:
    """The steps without a slow first one, and how doubtful that is (logarithm of the pace's ratio with and without)."""
    first, rest = steps[0], steps[1:]
    if first[1] / first[0] <= _FIRST_IS_SLOW * _pace(rest):
        return steps, 0.0
    if unit in _COMPILING_UNITS:
        return rest, 0.0
    return rest, log(_pace(steps) / _pace(rest)) / (1.0 + (len(rest) - 1) / 3.0)


def _newest(steps: list[Step]) -> list[Step]:
    """The newest quarter of the steps, at least three."""
    return steps[-max(3, len(steps) // 4) :]


def _recent_weight(steps: list[Step], overall: float, recent: float) -> float:
    """How far the newest steps speak for the future: most of the way once they agree with each other and not with
    the ones before (the page cache has ended, another rank has filled it)."""
    newest = _newest(steps)
    turned = abs(log(recent / overall)) > _TURN and _unevenness(newest, recent) < _TURN
    return 0.85 if turned else 0.5


def _pace(steps: list[Step]) -> float:
    """Seconds an item."""
    return max(sum(seconds for _, seconds in steps) / sum(count for count, _ in steps), _MIN_PACE_S)


def _sigmas(steps: list[Step], overall: float, recent: float, left: int) -> tuple[float, float]:
    """Spread of the logarithm of the time left, below and above."""
    known = len(steps)
    uneven = _unevenness(steps, overall)
    done = sum(count for count, _ in steps)
    horizon = left / (left + done)
    noise = uneven * sqrt(1.0 / known + 1.0 / max(1.0, left * known / done))
    drift = 0.6 * abs(log(recent / overall))
    unknown = 0.4 * horizon / sqrt(known) + 0.1 * horizon
    sigma = sqrt(noise**2 + drift**2 + unknown**2)
    return sigma, sigma + 0.15 * horizon


def _unevenness(steps: list[Step], overall: float) -> float:
    """Relative deviation of a step's time from what its count explains (0 for a metronome)."""
    expected = [count * overall for count, _ in steps]
    squares = sum((seconds - mean) ** 2 for (_, seconds), mean in zip(steps, expected, strict=True))
    per_step = sum(expected) / len(steps)
    return min(2.0, sqrt(squares / len(steps)) / per_step)


def _with_slack(low: float, mid: float, high: float) -> Range:
    mid = max(mid, 0.0)
    return max(0.0, min(low - _CLOCK_SLACK_S, mid)), mid, max(high + _CLOCK_SLACK_S, mid)
