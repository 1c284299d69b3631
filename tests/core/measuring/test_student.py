"""Student's t against printed tables and closed forms."""

import math

import pytest

from specconsole.core.measuring.student import t_cdf, t_quantile


@pytest.mark.parametrize(
    ("share", "degrees", "expected"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.30265), (0.975, 4, 2.77645), (0.975, 9, 2.26216), (0.95, 30, 1.69726),
     (0.995, 5, 4.03214), (0.975, 1000, 1.96234)],
)  # fmt: skip
def test_quantiles_are_those_of_the_table(share: float, degrees: float, expected: float) -> None:
    assert t_quantile(share, degrees) == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("t", [-3.0, -0.4, 0.0, 0.7, 5.0, 80.0])
def test_one_degree_is_cauchy_and_two_have_a_closed_form(t: float) -> None:
    assert t_cdf(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-12)
    assert t_cdf(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-12)


def test_quantile_inverts_the_distribution_for_broken_degrees() -> None:
    for degrees in (1.3, 2.7, 7.9, 55.5):
        for share in (0.01, 0.2, 0.6, 0.9999):
            assert t_cdf(t_quantile(share, degrees), degrees) == pytest.approx(share, abs=1e-9)
