"""Student's t distribution with the standard library alone.

The cumulative distribution is the regularised incomplete beta function (continued fraction, Lentz's method), its
inverse a bisection: slow by a numerical library's measure, exact to 1e-9 for the few calls that a table needs.
"""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300


def t_cdf(t: float, degrees: float) -> float:
    """P(T <= t) for `degrees` > 0 (need not be whole: Welch's are not)."""
    if degrees <= 0:
        raise ValueError("degrees of freedom must be positive")
    tail = 0.5 * _beta_regularised(degrees / (degrees + t * t), degrees / 2.0, 0.5)
    return 1.0 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(share: float, degrees: float) -> float:
    """The t with P(T <= t) = `share`, 0 < share < 1."""
    if not 0.0 < share < 1.0:
        raise ValueError("share must lie between 0 and 1")
    if share == 0.5:
        return 0.0
    if share < 0.5:
        return -t_quantile(1.0 - share, degrees)
    low, high = 0.0, 1.0
    while t_cdf(high, degrees) < share:
        low, high = high, high * 2.0
        if high > 1e300:
            return math.inf
    for _ in range(200):
        middle = 0.5 * (low + high)
        if t_cdf(middle, degrees) < share:
            low = middle
        else:
            high = middle
        if high - low <= 1e-12 * high:
            break
    return 0.5 * (low + high)


def _beta_regularised(x: float, a: float, b: float) -> float:
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    front = math.exp(log_front)
    # The fraction converges fast on one side of the mean only; the other side is its mirror image.
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(x, a, b) / a
    return 1.0 - front * _beta_fraction(1.0 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    result = d
    for m in range(1, 500):
        step = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 / _away_from_zero(1.0 + step * d)
        c = _away_from_zero(1.0 + step / c)
        result *= d * c
        step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 / _away_from_zero(1.0 + step * d)
        c = _away_from_zero(1.0 + step / c)
        change = d * c
        result *= change
        if abs(change - 1.0) < 1e-15:
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
