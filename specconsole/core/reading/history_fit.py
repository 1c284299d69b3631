"""From a few durations to a predictive range: Student's t on logarithms, with lower bounds taken in.

Durations of one phase spread by factors, not by seconds, so everything happens on logarithms. The spread of few samples
is not known either: a prior of `PRIOR_SIGMA` counts as `PRIOR_SAMPLES` samples, and Student's t widens the range. With
samples that agree with each other the range is, as a factor around the middle: 1 sample 3.5, 2 samples 2.0, 3 samples
1.7, 7 samples 1.4, many 1.1; each key dropped that matters adds to the spread (`DROPPED_KEY_SIGMA`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import atan, cos, exp, inf, log, pi, sin, sqrt
from statistics import NormalDist

from specconsole.core.reading.history import Alike

PRIOR_SIGMA = 0.3
"""Repeated starts of one server on one machine differ by about a third (recorded starts, see benchmarks/eta.py)."""
PRIOR_SAMPLES = 2
DROPPED_KEY_SIGMA = 0.45
LOW, MID, HIGH = 0.05, 0.5, 0.95
_OFFSET_S = 0.25
"""Added before the logarithm: stamps of whole seconds make a short phase 0 s or 1 s long by chance."""
_SLACK_S = 0.25
"""Times are seen a poll late; below a second that is most of the spread."""
_BOUND_REACH = 1.5
_WIDEST = 1000.0
"""A range whose ends are further apart than this says nothing."""
_BEYOND = 0.01
"""Past this share of the distribution the history says nothing any more: this start is unlike those before."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A predictive distribution of the logarithm of seconds."""

    mu: float
    sigma: float
    degrees: int
    samples: int

    def remaining(self, spent_s: float) -> tuple[float, float, float] | None:
        """(low, mid, high) seconds still to go after `spent_s`; None once it has taken longer than history
        supports, and where history is too mixed to say anything."""
        before = self._cdf(spent_s) if spent_s > 0 else 0.0
        if 1.0 - before < _BEYOND:
            return None
        low, mid, high = (self._quantile(before + p * (1.0 - before)) for p in (LOW, MID, HIGH))
        if high - spent_s > _WIDEST * (low - spent_s + 1.0):
            return None
        return max(0.0, low - spent_s - _SLACK_S), max(0.0, mid - spent_s), max(0.0, high - spent_s + _SLACK_S)

    def _cdf(self, seconds: float) -> float:
        return student_cdf((log(max(0.0, seconds) + _OFFSET_S) - self.mu) / self.sigma, self.degrees)

    def _quantile(self, share: float) -> float:
        return exp(self.mu + self.sigma * student_quantile(share, self.degrees)) - _OFFSET_S


@lru_cache(maxsize=256)
def fit(alike: Alike) -> Fit | None:
    """None without a finished sample: lower bounds alone give no range."""
    logs = [log(s + _OFFSET_S) for s in alike.finished_s]
    if not logs:
        return None
    bounds = [log(s + _OFFSET_S) for s in alike.at_least_s]
    mu, spread = _moments(logs, len(logs))
    for _ in range(20 if bounds else 0):
        # A lower bound counts as what it would have become on average; iterated until that settles (EM).
        reach = mu + _BOUND_REACH * spread  # a start that hung for an hour is no word on those that did not
        guessed = [_expected_above(min(bound, reach), mu, spread) for bound in bounds if bound > mu - 2 * spread]
        if not guessed:
            break
        mu, spread = _moments([*logs, *guessed], len(logs))
    degrees = len(logs) - 1 + PRIOR_SAMPLES
    sigma = sqrt(spread**2 * (1.0 + 1.0 / len(logs)) + len(alike.dropped) * DROPPED_KEY_SIGMA**2)
    return Fit(mu, sigma, degrees, len(logs))


def _moments(logs: Sequence[float], finished: int) -> tuple[float, float]:
    mu = sum(logs) / len(logs)
    squares = sum((value - mu) ** 2 for value in logs) * finished / len(logs)
    return mu, sqrt((squares + PRIOR_SAMPLES * PRIOR_SIGMA**2) / (max(0, finished - 1) + PRIOR_SAMPLES))


def _expected_above(bound: float, mu: float, spread: float) -> float:
    normal = NormalDist()
    z = (bound - mu) / spread
    above = 1.0 - normal.cdf(z)
    if above < 1e-9:
        return bound + spread / max(z, 1.0)
    return mu + spread * normal.pdf(z) / above


def student_cdf(t: float, degrees: int) -> float:
    """Student's t for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    theta = atan(t / sqrt(degrees))
    c = cos(theta)
    if degrees % 2:
        term, total = c, 0.0
        for k in range(1, degrees - 1, 2):
            total += term
            term *= c * c * (k + 1) / (k + 2)
        area = 2.0 / pi * (theta + sin(theta) * total)
    else:
        term, total = 1.0, 0.0
        for k in range(0, degrees, 2):
            total += term
            term *= c * c * (k + 1) / (k + 2)
        area = sin(theta) * total
    return 0.5 * (1.0 + area)


def student_quantile(share: float, degrees: int) -> float:
    """The t below which `share` (0 to 1) of the distribution lies."""
    if share <= 0.0:
        return -inf
    if share >= 1.0:
        return inf
    low, high = -1.0, 1.0
    while student_cdf(low, degrees) > share:
        low *= 2.0
    while student_cdf(high, degrees) < share:
        high *= 2.0
    below, above = student_cdf(low, degrees) - share, student_cdf(high, degrees) - share
    for _ in range(60):  # false position, kept from sticking to one end (the Illinois rule); about eight turns
        middle = high - above * (high - low) / (above - below)
        miss = student_cdf(middle, degrees) - share
        if abs(miss) < 1e-15 or middle in (low, high):
            return middle
        if (miss < 0) == (above < 0):
            below /= 2.0
        else:
            low, below = high, above
        high, above = middle, miss
    return high
