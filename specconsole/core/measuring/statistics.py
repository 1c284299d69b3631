"""How sure a number is: intervals of repeats, and whether two results differ.

A result's repeats are independent runs of one point. Within one launch they tell the noise of measuring, not of
starting: two starts of the same profile differ too, so an `Interval` says how many launches its repeats span.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specconsole.core.measuring.student import t_quantile

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its two-sided Student interval (95 %)."""

    mean: float
    low: float | None
    """None with fewer than two repeats: nothing is known of the noise."""
    high: float | None
    repeats: int
    launches: int
    """1: all repeats from one start ("one start each"), so differences between starts are not in the range."""

    @property
    def half_width_ratio(self) -> float | None:
        """Half the width over the mean; None without an interval or with a mean of 0."""
        if self.low is None or self.high is None or self.mean == 0:
            return None
        return (self.high - self.low) / 2.0 / abs(self.mean)


def interval_of(values: Sequence[float], *, launches: int = 1, confidence: float = CONFIDENCE) -> Interval:
    """Student's interval of the mean. Raises ValueError without a value."""
    if not values:
        raise ValueError("no repeats")
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return Interval(mean, None, None, len(values), launches)
    half = t_quantile(0.5 + confidence / 2.0, len(values) - 1) * _standard_error(values)
    return Interval(mean, mean - half, mean + half, len(values), launches)


@dataclass(frozen=True, slots=True)
class RatioInterval:
    """`b / a` of two results, with Welch's interval made on the logarithms."""

    ratio: float
    low: float | None
    """None when either side has fewer than two repeats."""
    high: float | None

    @property
    def differs(self) -> bool | None:
        """Whether the interval excludes 1; None when there is no interval."""
        if self.low is None or self.high is None:
            return None
        return not self.low <= 1.0 <= self.high


def ratio_of(a: Sequence[float], b: Sequence[float], *, confidence: float = CONFIDENCE) -> RatioInterval:
    """How many times `a` is `b`: geometric means, Welch's t on the logarithms (all values must be positive).

    Logarithms make the ratio symmetric: the interval of `b / a` is that of `a / b` turned over. Raises ValueError
    for an empty side or a value that is not positive.
    """
    if not a or not b:
        raise ValueError("no repeats")
    if min(*a, *b) <= 0:
        raise ValueError("a ratio needs positive values")
    logs_a, logs_b = [math.log(v) for v in a], [math.log(v) for v in b]
    difference = math.fsum(logs_b) / len(b) - math.fsum(logs_a) / len(a)
    if len(a) < 2 or len(b) < 2:
        return RatioInterval(math.exp(difference), None, None)
    error_a, error_b = _standard_error(logs_a) ** 2, _standard_error(logs_b) ** 2
    total = error_a + error_b
    if total == 0.0:
        return RatioInterval(math.exp(difference), math.exp(difference), math.exp(difference))
    # Welch and Satterthwaite's degrees of freedom.
    degrees = total**2 / (error_a**2 / (len(a) - 1) + error_b**2 / (len(b) - 1))
    half = t_quantile(0.5 + confidence / 2.0, degrees) * math.sqrt(total)
    return RatioInterval(math.exp(difference), math.exp(difference - half), math.exp(difference + half))


def confidence_at_look(look: int, *, confidence: float = CONFIDENCE) -> float:
    """The confidence to use at the `look`-th look (1, 2, ...) when repeats go on until an interval is narrow.

    Looking after each repeat and stopping at a lucky moment makes plain intervals too narrow. The error budget is
    spent over the looks as 1 / (look * (look + 1)), whose sum is 1: however long it goes on, the chance that any
    look's interval misses the truth stays within the budget.
    """
    if look < 1:
        raise ValueError("looks are counted from 1")
    return 1.0 - (1.0 - confidence) / (look * (look + 1))


FIRST_LOOK = 5
"""Repeats before the first look, where runs may stop early: a variance out of three or four is too often far too small,
and those are the runs that would stop."""
STOPPED_CONFIDENCE = 0.99
"""To compare results of runs that could stop early. A run stops where its spread happens to look small, so plain 95 %
intervals cry difference in up to 10 % of equal pairs; at 99 % it is about 4 % at most (1,000 pairs each of log-normal
noise of 1 to 40 %, and of recorded runs: tests/core/measuring/test_same_is_same.py)."""


def narrow_enough(values: Sequence[float], target_ratio: float, *, least: int = 3) -> bool:
    """Whether repeats may stop: the peeking-corrected interval is within `target_ratio` of the mean (0.03 is 3 %).

    The first look is at `least` repeats (aiperf too wants at least three).
    """
    if len(values) < max(2, least):
        return False
    width = interval_of(values, confidence=confidence_at_look(len(values) - least + 1)).half_width_ratio
    return width is not None and width <= target_ratio


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Linear interpolation between the closest ranks of a sorted sequence (numpy's default); None when empty."""
    if not ordered:
        return None
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _standard_error(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    variance = math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))
