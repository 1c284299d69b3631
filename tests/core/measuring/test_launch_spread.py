"""Noise taken apart: the parts that made-up numbers were made of come out again."""

from __future__ import annotations

import random

import pytest

from specconsole.core.measuring.launch_spread import launch_spread, spread_text
from specconsole.core.measuring.metrics import METRICS
from tests.core.measuring.build import point

SPEED = METRICS["output_tok_s"]


def test_both_parts_by_hand() -> None:
    """Starts at 99, 101 and 119, 121: 100 and 120 apart. Within: (1+1+1+1)/2 = 2; between: ((400) - 2)/2 = 199."""
    points = [point(4, v, launch_id=f"L{n // 2}") for n, v in enumerate((99.0, 101.0, 119.0, 121.0))]
    found = launch_spread(points, SPEED)
    assert found is not None
    assert [(s.launch_id, s.count, s.mean) for s in found.starts] == [("L0", 2, 100.0), ("L1", 2, 120.0)]
    assert found.within_ratio == pytest.approx(2**0.5 / 110)
    assert found.between_ratio == pytest.approx(199**0.5 / 110)


def test_known_parts_are_found_again() -> None:
    source = random.Random(1)
    points = []
    for start in range(60):
        level = 100.0 + source.gauss(0.0, 3.0)
        points += [point(4, level + source.gauss(0.0, 1.0), launch_id=f"L{start}") for _ in range(5)]
    found = launch_spread(points, SPEED)
    assert found is not None
    assert found.within_ratio == pytest.approx(0.01, rel=0.15)
    assert found.between_ratio == pytest.approx(0.03, rel=0.25)
    assert "its 60 starts" in spread_text(found)


def test_starts_that_do_not_differ_add_nothing() -> None:
    points = [point(4, v, launch_id=f"L{n % 2}") for n, v in enumerate((100.0, 101.0, 101.0, 100.0))]
    found = launch_spread(points, SPEED)
    assert found is not None
    assert found.between_ratio == 0.0
    assert "2 starts differ by no more than that" in spread_text(found)


def test_what_can_not_be_told_is_not() -> None:
    one = launch_spread([point(4, 100.0), point(4, 102.0)], SPEED)
    assert one is not None
    assert one.between_ratio is None
    assert "not known from one" in spread_text(one)
    single = launch_spread([point(4, 100.0, launch_id="A"), point(4, 90.0, launch_id="B")], SPEED)
    assert single is not None
    assert (single.within_ratio, single.between_ratio) == (None, None)
    assert spread_text(single) == ""
    assert launch_spread([], SPEED) is None
