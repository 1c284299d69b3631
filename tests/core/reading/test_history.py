"""Earlier starts: what is alike, what they foretell, and how the ranges widen; recorded starts leave-one-out."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest

from benchmarks._eta_starts import recorded_starts, start_guesses
from benchmarks.eta import MOMENTS, coverage
from specconsole.core.reading.history import (
    MATTERS,
    Alike,
    History,
    PhaseSample,
    StartKey,
    answered_on_timeline,
    samples_of,
)
from specconsole.core.reading.history_eta import combined_phase_eta, phase_history_eta, ready_eta
from specconsole.core.reading.history_fit import fit, student_cdf, student_quantile
from specconsole.core.reading.model import EtaRange, TimelineEntry
from specconsole.core.reading.reading import Reader
from tests.core.reading.lines_for_tests import SGLANG_START

KEY = StartKey("sglang", version="0.5.17", model="m", tp=8, draft="EAGLE3:d", graph_sizes="16", host="gpu-a")


def _weights(seconds: float, key: StartKey = KEY, *, finished: bool = True, at_s: float = 0.0) -> PhaseSample:
    return PhaseSample(key, "weights", "target", 0, seconds, finished, 100.0 if finished else None, at_s)


def _width(eta: EtaRange | None) -> float:
    assert eta is not None
    return eta.high / max(eta.low, 0.01)


# --- which starts are alike -----------------------------------------------------------------------------------------


def test_keys_that_do_not_matter_are_no_obstacle() -> None:
    other = replace(KEY, dp=4, graph_sizes="32")  # neither says anything about loading weights
    found = History([_weights(30.0, other)]).phase_seconds(KEY, "weights", "target", 0)
    assert found == Alike((30.0,), (), ())


def test_enough_exact_samples_are_preferred_to_many_that_differ() -> None:
    other = replace(KEY, dp=4)
    samples = [_weights(30.0 + i) for i in range(3)] + [_weights(90.0, other) for _ in range(9)]
    found = History(samples).phase_seconds(KEY, "weights", "target", 0)
    assert found == Alike((30.0, 31.0, 32.0), (), ())


def test_keys_are_dropped_in_the_stated_order_and_named() -> None:
    order = MATTERS["weights"]
    newer_and_other_draft = replace(KEY, version="0.5.18", draft=None)
    found = History([_weights(30.0, newer_and_other_draft)]).phase_seconds(KEY, "weights", "target", 0)
    assert found is not None
    assert found.dropped == ("version", "draft") == tuple(reversed(order[-2:]))
    eta = phase_history_eta(History([_weights(30.0, newer_and_other_draft)]), KEY, "weights", "target", 0, 0.0)
    assert eta is not None
    assert eta.basis == "history:n=1 without version,draft"


def test_the_nearest_starts_win() -> None:
    far, near = replace(KEY, version="0.5.18", tp=4), replace(KEY, version="0.5.18")
    found = History([_weights(60.0, far), _weights(30.0, near)]).phase_seconds(KEY, "weights", "target", 0)
    assert found == Alike((30.0,), (), ("version",))


def test_another_models_weights_and_another_engine_say_nothing() -> None:
    history = History([_weights(30.0, replace(KEY, model="other")), _weights(30.0, replace(KEY, engine="vllm"))])
    assert history.phase_seconds(KEY, "weights", "target", 0) is None
    assert phase_history_eta(history, KEY, "weights", "target", 0, 0.0) is None


def test_unknown_host_version_and_cache_match_any_but_no_draft_is_not_unknown() -> None:
    vague = replace(KEY, host=None, version=None)
    assert History([_weights(30.0)]).phase_seconds(vague, "weights", "target", 0) == Alike((30.0,), (), ())
    cold = [_weights(300.0, replace(KEY, cache="cold")) for _ in range(2)]
    warm = _weights(20.0, replace(KEY, cache="warm"))
    found = History([*cold, warm]).phase_seconds(replace(KEY, cache="warm"), "weights", "target", 0)
    assert found == Alike((20.0,), (), ())
    no_draft = History([_weights(30.0)]).phase_seconds(replace(KEY, draft=None), "weights", "target", 0)
    assert no_draft is not None
    assert "draft" in no_draft.dropped


def test_the_second_stay_in_a_phase_is_another_place() -> None:
    history = History([_weights(30.0)])
    assert history.phase_seconds(KEY, "weights", "target", 1) is None
    assert history.phase_seconds(KEY, "weights", "draft", 0) is None


def test_only_the_newest_samples_count() -> None:
    old = [_weights(500.0, at_s=float(i)) for i in range(60)]
    new = [_weights(30.0, at_s=1000.0 + i) for i in range(40)]
    found = History([*new, *old]).phase_seconds(KEY, "weights", "target", 0)
    assert found is not None
    assert set(found.finished_s) == {30.0}


# --- samples of a start ---------------------------------------------------------------------------------------------


def test_samples_of_a_start_that_became_ready() -> None:
    timeline = (
        TimelineEntry("starting", None, 0.0, 20.0, 1),
        TimelineEntry("weights", "target", 20.0, 28.6, 5),  # the server's own word, less than the stay
        TimelineEntry("weights", "draft", 50.0, 2.0, 9),
        TimelineEntry("weights", "target", 52.0, 1.0, 11),
        TimelineEntry("ready", None, 60.0, 5.0, 20),
        TimelineEntry("starting", None, 99.0, 5.0, 30),
    )
    samples = samples_of(KEY, timeline, at_s=7.0)
    assert [(s.phase, s.part, s.nth, s.seconds, s.finished, s.to_ready_s, s.at_s) for s in samples] == [
        ("starting", None, 0, 20.0, True, 40.0, 7.0),
        ("weights", "target", 0, 30.0, True, 10.0, 7.0),
        ("weights", "draft", 0, 2.0, True, 8.0, 7.0),
        ("weights", "target", 1, 8.0, True, 0.0, 7.0),
    ]
    answered = samples_of(KEY, timeline, at_s=7.0, answered_s=62.5)
    assert answered[0].to_ready_s == 42.5
    assert PhaseSample.from_json(json.loads(json.dumps(samples[1].to_json()))) == samples[1]


@pytest.mark.parametrize("end", ["failed", "stopping", None])
def test_the_last_stay_of_a_broken_start_is_a_lower_bound(end: str | None) -> None:
    timeline = [TimelineEntry("starting", None, 0.0, 20.0, 1), TimelineEntry("weights", "target", 20.0, 300.0, 5)]
    if end:
        timeline.append(TimelineEntry(end, None, 320.0, None, 9))  # type: ignore[arg-type]  # one of the ids above
    samples = samples_of(KEY, timeline, at_s=0.0)
    assert [(s.phase, s.finished, s.to_ready_s) for s in samples] == [
        ("starting", True, None), ("weights", False, None),
    ]  # fmt: skip


def test_stays_without_stamps_give_no_sample() -> None:
    assert samples_of(KEY, (TimelineEntry("weights", "target", None, None, 5),), at_s=0.0) == ()


# --- ranges ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("samples", "factor"), [(1, 3.45), (2, 2.03), (3, 1.69), (7, 1.35), (40, 1.12)])
def test_few_samples_widen_the_range_by_the_stated_factor(samples: int, factor: float) -> None:
    eta = phase_history_eta(History([_weights(100.0)] * samples), KEY, "weights", "target", 0, 0.0)
    assert eta is not None
    assert eta.mid == pytest.approx(100.0)
    assert (eta.high - 0.25) / 100.0 == pytest.approx(factor, rel=0.01)
    assert 100.0 / (eta.low + 0.25) == pytest.approx(factor, rel=0.01)
    assert eta.basis == f"history:n={samples}"


def test_a_dropped_key_widens_the_range() -> None:
    exact = phase_history_eta(History([_weights(100.0)] * 4), KEY, "weights", "target", 0, 0.0)
    looser = phase_history_eta(
        History([_weights(100.0, replace(KEY, version="9"))] * 4), KEY, "weights", "target", 0, 0.0
    )
    assert _width(looser) > 2 * _width(exact)


def test_unfinished_stays_are_lower_bounds() -> None:
    done = [_weights(s) for s in (100.0, 110.0, 120.0)]
    without = phase_history_eta(History(done), KEY, "weights", "target", 0, 0.0)
    early = phase_history_eta(History([*done, _weights(5.0, finished=False)]), KEY, "weights", "target", 0, 0.0)
    late = phase_history_eta(History([*done, _weights(160.0, finished=False)]), KEY, "weights", "target", 0, 0.0)
    hung = phase_history_eta(History([*done, _weights(36000.0, finished=False)]), KEY, "weights", "target", 0, 0.0)
    assert without is not None
    assert early is not None
    assert late is not None
    assert hung is not None
    assert early.mid == pytest.approx(without.mid, rel=0.03)  # "at least 5 s" is no news
    assert late.mid > 1.05 * without.mid
    assert hung.mid < 2 * without.mid  # one that hung for ten hours does not drown the others
    assert late.basis == "history:n=3"
    only_bounds = History([_weights(160.0, finished=False)] * 5)
    assert phase_history_eta(only_bounds, KEY, "weights", "target", 0, 0.0) is None


def test_what_has_passed_counts() -> None:
    history = History([_weights(s) for s in (90.0, 100.0, 110.0, 105.0)])
    fresh, half, late, too_late = (
        phase_history_eta(history, KEY, "weights", "target", 0, spent) for spent in (0.0, 60.0, 110.0, 3000.0)
    )
    assert fresh is not None
    assert half is not None
    assert late is not None
    assert half.mid == pytest.approx(fresh.mid - 60.0, abs=5.0)
    assert 0 < late.mid < 60.0
    assert too_late is None  # nothing like it has been seen: the history is silent, and the stall rule speaks
    assert phase_history_eta(history, KEY, "weights", "target", 0, None) is None


def test_student_agrees_with_published_tables_and_itself() -> None:
    for degrees, published in ((1, 6.314), (2, 2.920), (3, 2.353), (4, 2.132), (7, 1.895), (30, 1.697)):
        assert student_quantile(0.95, degrees) == pytest.approx(published, abs=6e-4)
    for degrees in (1, 2, 5, 8, 41):
        for t in (-4.0, -0.3, 0.0, 1.7, 9.0):
            assert student_quantile(student_cdf(t, degrees), degrees) == pytest.approx(t, abs=1e-4)
    assert student_quantile(0.0, 3) == -math.inf


def test_the_range_holds_nine_of_ten_durations_drawn_like_the_samples() -> None:
    """SYNTHETIC: log-normal durations with a known spread, few samples each."""
    rng = random.Random(5)
    for samples in (1, 2, 3, 6, 12):
        held = 0
        for _ in range(400):
            spread, middle = rng.uniform(0.05, 0.4), rng.uniform(5.0, 600.0)
            drawn = [middle * rng.lognormvariate(0.0, spread) for _ in range(samples + 1)]
            fitted = fit(Alike(tuple(drawn[1:]), (), ()))
            assert fitted is not None
            found = fitted.remaining(0.0)
            assert found is not None
            held += found[0] <= drawn[0] <= found[2]
        assert 0.86 <= held / 400 <= 1.0, samples


# --- together with a bar --------------------------------------------------------------------------------------------


def test_bar_and_history_agree_into_something_narrower() -> None:
    history = History([_weights(s) for s in (95.0, 100.0, 105.0)])
    bar = EtaRange(60.0, 90.0, 150.0, "bar")
    both = combined_phase_eta(history, KEY, "weights", "target", 0, 5.0, bar)
    alone = phase_history_eta(history, KEY, "weights", "target", 0, 5.0)
    assert both is not None
    assert _width(both) < min(_width(bar), _width(alone))
    assert both.basis == "bar+history:n=3"


def test_a_bar_that_contradicts_history_is_believed() -> None:
    history = History([_weights(s) for s in (19.0, 20.0, 21.0, 20.0)])  # warm page cache
    bar = EtaRange(500.0, 600.0, 800.0, "bar")  # and now it comes from disk
    assert combined_phase_eta(history, KEY, "weights", "target", 0, 15.0, bar) is bar


def test_either_alone_where_the_other_is_missing() -> None:
    bar = EtaRange(5.0, 6.0, 8.0, "bar")
    assert combined_phase_eta(None, None, "weights", "target", 0, 1.0, bar) is bar
    assert combined_phase_eta(History(), KEY, "weights", "target", 0, 1.0, bar) is bar
    assert combined_phase_eta(None, None, "weights", "target", 0, 1.0, None) is None
    alone = combined_phase_eta(History([_weights(30.0)]), KEY, "weights", "target", 0, 1.0, None)
    assert alone is not None
    assert alone.basis == "history:n=1"


def test_ready_adds_the_way_from_the_phases_end() -> None:
    history = History([_weights(100.0)] * 5)  # each came to answer 100 s after its weights
    eta = ready_eta(history, KEY, "weights", "target", 0, EtaRange(8.0, 10.0, 13.0, "bar"))
    assert eta is not None
    assert eta.mid == pytest.approx(110.0)
    assert eta.low < 90.0
    assert eta.high > 120.0
    assert eta.basis == "bar+history:n=5"


def test_ready_says_nothing_without_support() -> None:
    bar = EtaRange(8.0, 10.0, 13.0, "bar")
    assert ready_eta(None, None, "weights", "target", 0, bar) is None
    assert ready_eta(History(), KEY, "weights", "target", 0, bar) is None
    assert ready_eta(History([_weights(100.0)]), KEY, "weights", "target", 0, None) is None
    assert ready_eta(History([_weights(100.0)]), KEY, "ready", None, 0, bar) is None


def test_a_proven_answer_counts_more_than_the_logs_own_word() -> None:
    started = Reader()
    started.feed("\n".join(SGLANG_START).encode() + b"\n", 1000.0)
    reading = started.reading(1007.5)
    answered_s = answered_on_timeline(reading.timeline, reading.silent_s)
    assert answered_s == pytest.approx(41.0 + 7.5)  # its last line is 41 s after its first
    by_word = {(s.phase, s.part): s.to_ready_s for s in samples_of(KEY, reading.timeline, at_s=0.0)}
    proven = samples_of(KEY, reading.timeline, at_s=0.0, answered_s=answered_s)
    assert {s.phase for s in proven} >= {"weights", "kv-cache", "graph-capture"}
    for sample in proven:
        before = by_word[sample.phase, sample.part]
        assert sample.to_ready_s == pytest.approx((before or 0.0) + 7.5)
    assert answered_on_timeline(reading.timeline, None) is None
    assert answered_on_timeline((), 3.0) is None


# --- recorded starts ------------------------------------------------------------------------------------------------


def test_recorded_starts_foretold_from_the_others() -> None:
    told = list(start_guesses(recorded_starts(), MOMENTS))
    phases = [guess for kind, guess in told if kind == "phase" and guess.mid_s is not None]
    ready = [guess for kind, guess in told if kind == "ready" and guess.mid_s is not None]
    assert len(phases) > 500
    assert len(ready) > 200
    assert coverage(phases) >= 0.88
    assert coverage(ready) >= 0.87  # starts on a busy machine or a first launch ever are unlike all the others
    every = [guess for _, guess in told if guess.mid_s is not None]
    assert coverage(every) >= 0.85
