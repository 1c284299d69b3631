"""The worked example, the identities, and crossings of known curves."""

import pytest

from specconsole.core.measuring.economics import DecodeCost, SpeedUp, find_crossings, judge


def test_the_worked_example_of_the_probe_drafter() -> None:
    """Baseline 90 tok/s; accept length 1.5 at 52 tok/s with two draft steps."""
    baseline = DecodeCost(decode_time_s=10.0, decode_tokens=900, target_steps=900)
    draft = DecodeCost(decode_time_s=10.0, decode_tokens=520, target_steps=round(520 / 1.5))
    verdict = judge(draft, baseline, num_steps=2)
    assert verdict is not None
    assert verdict.step_time_s == pytest.approx(0.0288, abs=0.0001)
    assert verdict.break_even_length == pytest.approx(2.6, abs=0.01)
    assert verdict.ceiling == 3
    assert verdict.can_pay is True
    assert verdict.pays is False
    assert verdict.speed_up_at(3.0) == pytest.approx(3 / 2.596, rel=1e-3)
    with pytest.raises(ValueError, match=r"3\.35 can't be reached: 2 draft steps bring at most 3 tokens"):
        verdict.speed_up_at(3.35)


def test_no_draft_can_pay_when_break_even_is_over_the_ceiling() -> None:
    baseline = DecodeCost(10.0, 900, 900)
    draft = DecodeCost(20.0, 520, 400)
    verdict = judge(draft, baseline, num_steps=3)
    assert verdict is not None
    assert verdict.break_even_length == pytest.approx(4.5)
    assert verdict.can_pay is False
    assert verdict.best_decode_speed_up == pytest.approx(4 / 4.5)


def test_step_time_is_accept_length_times_tpot() -> None:
    cost = DecodeCost(7.5, 1234, 456)
    assert cost.accept_length is not None
    assert cost.tpot_s is not None
    assert cost.step_time_s == pytest.approx(cost.accept_length * cost.tpot_s)


def test_unknown_steps_give_no_verdict() -> None:
    assert judge(DecodeCost(1.0, 10, None), DecodeCost(1.0, 10, 10), num_steps=3) is None
    assert judge(DecodeCost(1.0, 10, 5), DecodeCost(0.0, 0, None), num_steps=3) is None


def test_crossing_of_a_power_law_is_found_exactly() -> None:
    """speed-up = (c / 6)^-0.5 passes 1 at c = 6."""
    points = [SpeedUp(c, (c / 6) ** -0.5) for c in (1, 4, 16, 32)]
    (crossing,) = find_crossings(points)
    assert crossing.concurrency == pytest.approx(6.0)
    assert crossing.helps_below is True
    assert crossing.low is None


def test_two_crossings_and_their_ranges() -> None:
    points = [
        SpeedUp(1, 0.8, 0.75, 0.85),
        SpeedUp(4, 1.3, 1.2, 1.4),
        SpeedUp(16, 0.6, 0.55, 0.65),
    ]
    up, down = find_crossings(points)
    assert up.helps_below is False
    assert down.helps_below is True
    assert up.low is not None
    assert up.high is not None
    assert up.low < up.concurrency < up.high
    assert down.low is not None
    assert down.high is not None
    assert down.low < down.concurrency < down.high


def test_a_curve_that_never_passes_one_has_no_crossing() -> None:
    assert find_crossings([SpeedUp(1, 1.5), SpeedUp(8, 1.1)]) == ()
    assert find_crossings([SpeedUp(1, 1.5)]) == ()
    assert find_crossings([SpeedUp(1, 1.2), SpeedUp(2, 1.0), SpeedUp(4, 1.3)]) == ()


def test_a_point_on_the_line_is_the_crossing() -> None:
    (crossing,) = find_crossings([SpeedUp(1, 1.2), SpeedUp(2, 1.0), SpeedUp(4, 0.7)])
    assert crossing.concurrency == pytest.approx(2.0)
