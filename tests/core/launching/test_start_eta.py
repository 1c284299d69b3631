"""Estimates from whole starts alone, and what they say while a log is silent."""

from __future__ import annotations

import pytest

from specconsole.core.launching.start_eta import eta_of_starts


def test_nothing_is_said_without_a_start_before_or_an_age() -> None:
    assert eta_of_starts((), 3.0) is None
    assert eta_of_starts((60.0,), None) is None


def test_one_start_gives_a_wide_range_around_its_own_length() -> None:
    eta = eta_of_starts((159.7,), 0.0)
    assert eta is not None
    # Recorded on an H200: the next start of the same took 83.4 s, its kernels being compiled already.
    assert eta.low <= 83.4 <= eta.high
    assert eta.mid == pytest.approx(159.7)
    assert eta.basis == "starts:n=1"


def test_several_starts_speak_by_their_own_spread_and_count_down() -> None:
    eta = eta_of_starts((80.0, 84.0, 90.0), 30.0)
    assert eta is not None
    assert (eta.low, eta.mid, eta.high) == pytest.approx((30.0, 54.0, 82.5))
    later = eta_of_starts((80.0, 84.0, 90.0), 100.0)
    assert later is not None
    assert (later.low, later.mid) == (0.0, 0.0), "overdue, and still possible"
    assert eta_of_starts((80.0, 84.0, 90.0), 113.0) is None, "longer than they explain: no guess"
