"""Intervals by hand, and their coverage by simulation with a known truth."""

import random

import pytest

from specconsole.core.measuring.statistics import (
    confidence_at_look,
    interval_of,
    narrow_enough,
    percentile,
    ratio_of,
)


def test_interval_by_hand() -> None:
    # mean 10, standard deviation 1, error 1/sqrt(3), t(0.975, 2) = 4.30265
    found = interval_of([9.0, 10.0, 11.0])
    assert found.mean == 10.0
    assert found.high == pytest.approx(10 + 4.30265 / 3**0.5, rel=1e-5)
    assert found.half_width_ratio == pytest.approx(0.248414, rel=1e-4)


def test_one_repeat_has_no_interval_and_no_verdict() -> None:
    assert interval_of([5.0]).low is None
    assert ratio_of([5.0], [6.0, 7.0]).differs is None


def test_ratio_turns_over_with_its_sides() -> None:
    a, b = [10.0, 10.5, 9.8], [20.0, 21.5, 19.9, 20.2]
    there, back = ratio_of(a, b), ratio_of(b, a)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.low == pytest.approx(1 / (back.high or 0))
    assert there.differs is True


def test_equal_noise_is_told_as_no_difference_at_the_stated_rate() -> None:
    source = random.Random(7)
    differ = 0
    for _ in range(1000):
        a = [source.gauss(100, 3) for _ in range(4)]
        b = [source.gauss(100, 6) for _ in range(5)]
        differ += ratio_of(a, b).differs is True
    assert differ <= 70, "95 % intervals must not cry difference in more than about 5 % of equal pairs"


def test_peeking_spends_no_more_than_the_budget() -> None:
    assert sum(1 - confidence_at_look(k) for k in range(1, 10_000)) <= 0.05
    source = random.Random(11)
    missed = stopped = 0
    for _ in range(600):
        values: list[float] = []
        while len(values) < 40:
            values.append(source.gauss(100, 2.5))
            if narrow_enough(values, 0.03):
                stopped += 1
                found = interval_of(values, confidence=confidence_at_look(len(values) - 2))
                assert found.low is not None
                assert found.high is not None
                missed += not found.low <= 100 <= found.high
                break
    assert stopped > 500
    assert missed / stopped <= 0.05


def test_percentile_interpolates_between_ranks() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.99) == pytest.approx(3.97)
    assert percentile([], 0.5) is None
