"""Estimates against what then happened: every recorded start, and synthetic shapes with known truth."""

from __future__ import annotations

import json
import random
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks._eta_shapes import Guess, print_like_tqdm, synthetic_bars
from benchmarks.eta import MOMENTS, coverage, guesses_of, median_error, median_own_error, recorded_bars
from specconsole.core.reading.bars import Bar, find_bars
from specconsole.core.reading.eta import BarTrack, bar_eta, progress, rate_per_s, track
from specconsole.core.reading.eta_set import BarSet
from specconsole.core.reading.reading import Reader

# SGLang 0.5.17 on an H200, its first start there: 72 s for the first graph, 4 s for the other 57.
SLOW_FIRST = """\
Capturing num tokens (num_tokens=8192 avail_mem=13.21 GB):   0%|          | 0/58 [00:00<?, ?it/s]
Capturing num tokens (num_tokens=8192 avail_mem=13.21 GB):   2%|▏         | 1/58 [01:11<1:08:20, 71.94s/it]
Capturing num tokens (num_tokens=7680 avail_mem=11.35 GB):   3%|▎         | 2/58 [01:12<27:44, 29.73s/it]
Capturing num tokens (num_tokens=7168 avail_mem=11.29 GB):   5%|▌         | 3/58 [01:12<14:54, 16.26s/it]
Capturing num tokens (num_tokens=6656 avail_mem=11.29 GB):   7%|▋         | 4/58 [01:12<08:53,  9.89s/it]
Capturing num tokens (num_tokens=6144 avail_mem=11.29 GB):   9%|▊         | 5/58 [01:12<05:38,  6.39s/it]"""


def _tracked(text: str) -> BarTrack | None:
    state = None
    for bar in find_bars(text):
        state = track(state, bar)
    return state


def _shards(done: int, total: int, elapsed: str, rate: str = "?it/s") -> Bar:
    (bar,) = find_bars(f"Loading safetensors checkpoint shards:  1% Completed | {done}/{total} [{elapsed}<?, {rate}]")
    return bar


# --- accuracy -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> list[Guess]:
    return [guess for bar in recorded_bars() for guess in guesses_of(bar)]


def test_recorded_bars_end_within_the_range(recorded: list[Guess]) -> None:
    spoken = [guess for guess in recorded if guess.mid_s is not None]
    assert len(spoken) > 120, "too few estimates to say anything"
    assert coverage(spoken) >= 0.85


def test_the_estimate_beats_the_bars_own_remaining_time(recorded: list[Guess]) -> None:
    assert median_error(recorded) < 0.7 * median_own_error(recorded)
    for moment in MOMENTS[1:]:
        rows = [guess for guess in recorded if guess.moment == moment]
        assert median_error(rows) < median_own_error(rows)


@pytest.fixture(scope="module")
def synthetic() -> list[Guess]:
    return [guess for bar in synthetic_bars(25, seed=7) for guess in guesses_of(bar)]


def test_synthetic_bars_end_within_the_range(synthetic: list[Guess]) -> None:
    fair = [guess for guess in synthetic if guess.foreseeable and guess.mid_s is not None]
    assert coverage(fair) >= 0.9
    assert median_error(fair) < median_own_error(fair)


@pytest.mark.parametrize(
    "shape",
    ["bursts", "page_cache_then_cold", "restarted", "slow_first_item", "slow_then_fast", "steady_cold", "stragglers"],
)
def test_each_synthetic_shape_is_covered_once_its_turn_has_been_seen(synthetic: list[Guess], shape: str) -> None:
    rows = [g for g in synthetic if g.name.startswith(f"{shape}-") and g.foreseeable and g.mid_s is not None]
    assert len(rows) >= 8
    assert coverage(rows) >= 0.8


def test_a_steady_bar_has_a_narrow_range() -> None:
    state = None
    for _, bar in islice(print_like_tqdm([9.0] * 40), 20):
        state = track(state, bar)
    assert state is not None
    eta = bar_eta(state)
    assert eta is not None
    assert eta.mid == pytest.approx(21 * 9.0, rel=0.03)
    assert eta.high / eta.low < 1.8


# --- one slow first item ------------------------------------------------------------------------------------------


def test_a_first_item_that_compiled_is_not_repeated_as_an_estimate() -> None:
    lines = SLOW_FIRST.splitlines()
    after_first = _tracked("\n".join(lines[:2]))
    assert after_first is not None
    assert bar_eta(after_first) is None  # the bar itself says 1:08:20
    after_second = _tracked("\n".join(lines[:3]))
    assert after_second is not None
    eta = bar_eta(after_second)
    assert eta is not None
    assert eta.low <= 4.0 * 1.2  # it took 4.0 s; the bar says 27:44
    assert 4.0 <= eta.high < 60.0
    assert eta.mid < 20.0
    assert eta.basis == "bar"


def test_fractions_of_a_second_are_read_from_the_smoothed_rate() -> None:
    """The recorded arrivals are the witness: the bar's clock, refined, is never 60 ms beside them."""
    checked = 0
    for bar in recorded_bars():
        state = None
        for at_s, update in bar.updates:
            before, state = state, track(state, update)
            if before is None or state.points[-1] == before.points[-1] or update.done == update.total:
                continue
            if update.elapsed_s is not None and bar.updates[0][1].done == 0:
                checked += 1
                assert abs(state.points[-1][1] - (at_s - bar.start_s)) < 0.35, bar.name
    assert checked > 500


# --- the track ----------------------------------------------------------------------------------------------------


def test_rate_is_in_units_a_second_whatever_the_bar_printed() -> None:
    slow = _tracked(
        "Loading pt checkpoint shards:  50% Completed | 4/8 [00:40<00:40, 10.00s/it]\n"
        "Loading pt checkpoint shards:  62% Completed | 5/8 [00:50<00:30, 10.00s/it]"
    )
    assert slow is not None
    assert rate_per_s(slow) == pytest.approx(0.1, rel=0.05)


def test_flip_from_slow_to_fast_follows_the_newest_items() -> None:
    times_s = [7.1, 7.1, 7.9, 8.9, 1.0, *([0.5] * 7)]
    state = None
    for _, bar in list(print_like_tqdm([*times_s, *([0.5] * 43)]))[: len(times_s) + 1]:
        state = track(state, bar)
    assert state is not None
    assert state.done == 12
    eta = bar_eta(state)
    assert eta is not None
    assert eta.low <= 43 * 0.5 <= eta.high
    assert eta.mid < 60.0  # the mean over all would say two minutes


def test_a_restarted_bar_starts_over() -> None:
    state = track(track(None, _shards(20, 64, "01:00")), _shards(21, 64, "01:03"))
    again = track(state, _shards(1, 64, "00:01", " 1.00s/it"))
    assert again.points == ((0, 0.0), (1, pytest.approx(1.0, abs=0.01)))
    assert track(state, _shards(1, 8, "00:01")).total == 8


def test_a_jump_in_the_count_counts_as_that_many_items() -> None:
    state = None
    for done, elapsed in ((0, "00:00"), (1, "00:10"), (2, "00:20"), (12, "02:00"), (13, "02:10")):
        state = track(state, _shards(done, 33, elapsed))
    assert state is not None
    eta = bar_eta(state)
    assert eta is not None
    assert eta.mid == pytest.approx(200.0, rel=0.1)


def test_an_unfinished_update_moves_the_count_but_not_the_clock() -> None:
    state = track(None, _shards(20, 64, "01:00"))
    (cut,) = find_bars("Loading safetensors checkpoint shards:  34% Completed | 22/64 [01:0")
    after = track(state, cut)
    assert after.done == 22
    assert after.points == state.points
    (head,) = find_bars("Loading safetensors checkpoint shards:  34% Comp".replace(" Comp", ""))
    assert track(after, head) == after


def test_a_bar_without_a_clock_uses_stamps_then_arrivals() -> None:
    bars = [Bar("Loading model weights", n, 100, "percent", n, None, None, None, 0, 0, True) for n in (10, 20, 30, 40)]
    by_stamp = by_arrival = without = None
    for index, bar in enumerate(bars):
        by_stamp = track(by_stamp, bar, stamp_s=100.0 + 5.0 * index, arrival_s=7.0)
        by_arrival = track(by_arrival, bar, arrival_s=50.0 + 5.0 * index)
        without = track(without, bar)
    assert by_stamp is not None
    assert by_arrival is not None
    assert without is not None
    for state, basis in ((by_stamp, "stamps"), (by_arrival, "arrival")):
        eta = bar_eta(state)
        assert eta is not None
        assert eta.mid == pytest.approx(30.0, rel=0.1)
        assert eta.basis == basis
    assert bar_eta(without) is None
    assert progress(without).done == 40


def test_time_goes_on_between_updates() -> None:
    state = None
    for done in range(6):
        state = track(state, _shards(done, 10, f"00:{done * 9:02d}"), arrival_s=1000.0 + 9.0 * done)
    assert state is not None
    fresh, later, overdue = (bar_eta(state, now_s=1045.0 + wait) for wait in (0.0, 8.0, 120.0))
    assert fresh is not None
    assert later is not None
    assert overdue is not None
    assert later.mid == pytest.approx(fresh.mid - 8.0, abs=1.0)
    assert overdue.mid > 2 * fresh.mid
    assert overdue.low < fresh.mid  # it may go on at the old pace at any moment
    assert overdue.high > 400.0


@pytest.mark.parametrize(
    ("text", "truth_s", "rate"),
    [
        ("a.safetensors:  25%|██▍  | 1.24G/4.98G [01:10<03:30, 17.8MB/s]", 210.0, 17.7e6),
        ("Loading checkpoint shards:  75%|███████▌  | 3/4 [00:30<00:10, 10.11s/it]", 10.1, 0.099),
        ("Loading checkpoint shards:  10%|█   | 3/30 [00:30<04:33, 10.11s/it]", 273.0, 0.099),
    ],
)
def test_a_single_update_seen_in_the_middle(text: str, truth_s: float, rate: float) -> None:
    state = _tracked(text)
    assert state is not None
    assert rate_per_s(state) == pytest.approx(rate, rel=0.02)
    eta = bar_eta(state)
    assert eta is not None
    assert eta.mid == pytest.approx(truth_s, rel=0.25)
    assert eta.low < truth_s < eta.high


def test_a_bar_that_is_done_has_nothing_left() -> None:
    state = track(track(None, _shards(0, 2, "00:00")), _shards(2, 2, "00:09"))
    eta = bar_eta(state)
    assert eta is not None
    assert (eta.low, eta.mid, eta.high) == (0.0, 0.0, 0.0)


def test_no_estimate_before_the_first_item_or_without_a_total() -> None:
    assert bar_eta(track(None, _shards(0, 64, "00:00"))) is None
    (open_ended,) = find_bars("12it [00:03,  3.41it/s]")
    state = track(None, open_ended)
    assert bar_eta(state) is None
    assert rate_per_s(state) == pytest.approx(4.0, rel=0.2)


def test_the_track_stays_small() -> None:
    state = None
    for _, bar in print_like_tqdm([0.3] * 5000):
        state = track(state, bar)
    assert state is not None
    assert len(state.points) <= 64
    assert len(json.dumps(state.to_json())) < 3000
    assert rate_per_s(state) == pytest.approx(1 / 0.3, rel=0.02)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.01, 90.0), min_size=1, max_size=80),
    st.integers(0, 80),
    st.integers(0, 2**31),
)
def test_saved_and_resumed_anywhere_it_is_the_same(times_s: list[float], cut: int, seed: int) -> None:
    rng = random.Random(seed)
    updates = [(at + rng.random(), bar) for at, bar in print_like_tqdm(times_s)]
    whole = resumed = None
    for index, (at_s, bar) in enumerate(updates):
        whole = track(whole, bar, arrival_s=at_s)
        if index == cut and resumed is not None:
            resumed = BarTrack.from_json(json.loads(json.dumps(resumed.to_json())))
        resumed = track(resumed, bar, arrival_s=at_s)
    assert resumed == whole
    assert whole is not None
    now_s = updates[-1][0] + 1.0
    assert bar_eta(resumed or whole, now_s=now_s) == bar_eta(whole, now_s=now_s)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10**12), st.one_of(st.none(), st.integers(0, 10**7)), st.floats(-1e6, 1e9)),
        max_size=40,
    ),
    st.one_of(st.none(), st.integers(1, 10**12)),
    st.sampled_from(["shard", "graph", "item", "byte", "percent"]),
    st.one_of(st.none(), st.floats(-1e6, 1e9)),
)
def test_any_sequence_gives_an_ordered_range_or_none(
    updates: list[tuple[int, int | None, float]], total: int | None, unit: str, now_s: float | None
) -> None:
    state = None
    for done, elapsed, at_s in updates:
        rate = None if elapsed is None else 1.0 + done % 7
        bar = Bar("x", done, total, unit, None, None if elapsed is None else float(elapsed), None, rate, 0, 0, True)
        state = track(state, bar, arrival_s=at_s)
        assert all(a[1] <= b[1] for a, b in pairwise(state.points))
        eta = bar_eta(state, now_s=now_s)
        if eta is not None:
            assert 0 <= eta.low <= eta.mid <= eta.high < float("inf")


# --- several bars -------------------------------------------------------------------------------------------------


def test_interleaved_download_bars_keep_their_own_tracks() -> None:
    bars = BarSet()
    for second in range(0, 60, 10):
        for text in (
            f"Fetching 4 files:  25%|██▌       | {1 + second // 40}/4 [00:{second:02d}<00:30, 10.00s/it]",
            f"a.safetensors:  45%|████▌     | {second * 20}M/4.00G [00:{second:02d}<00:15, 20.0MB/s]",
            f"b.safetensors:  45%|████▌     | {second * 40}M/4.00G [00:{second:02d}<00:15, 40.0MB/s]",
        ):
            for bar in find_bars(text):
                bars = bars.with_bar(bar, arrival_s=float(second))
    assert BarSet.from_json(json.loads(json.dumps(bars.to_json()))) == bars
    shown = bars.progress(now_s=50.0)
    assert shown is not None
    assert (shown.done, shown.total, shown.unit) == (2, 4, "file")
    assert shown.eta_s is not None
    assert shown.eta_s.mid >= 149.0  # a.safetensors has 3 GB to go at 20 MB/s
    assert [t.desc for t in bars.tracks] == ["Fetching 4 files", "a.safetensors", "b.safetensors"]
    assert BarSet().progress() is None


def test_a_download_of_several_files_does_not_jump_between_them() -> None:
    lines = [
        "[2026-11-29 14:12:21] server_args=ServerArgs(model_path='org/model', port=30000)",
        "model-00001-of-00002.safetensors:   0%|          | 0.00/4.00G [00:00<?, ?B/s]",
        "model-00002-of-00002.safetensors:   0%|          | 0.00/2.00G [00:00<?, ?B/s]",
    ]
    for second in range(10, 60, 10):
        lines.append(f"model-00001-of-00002.safetensors:  10%|█  | {second * 20}M/4.00G [00:{second}<03:00, 20.0MB/s]")
        lines.append(f"model-00002-of-00002.safetensors:  20%|██ | {second * 10}M/2.00G [00:{second}<03:00, 10.0MB/s]")
    reader = Reader()
    seen = []
    for line in lines:
        reader.feed(line.encode() + b"\n")
        progress = reader.reading().progress
        if progress is not None and progress.unit == "byte":
            seen.append((progress.done, progress.total))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (1_500_000_000, 6_000_000_000)
    shown = reader.reading()
    assert shown.phase == "download"
    assert shown.progress is not None
    assert shown.progress.rate_per_s == pytest.approx(30e6, rel=0.01)
    assert shown.progress.eta_s is not None
    assert shown.progress.eta_s.low <= 150.0 <= shown.progress.eta_s.high  # 3 GB of the first at 20 MB/s
    assert Reader.resume(json.loads(json.dumps(reader.checkpoint()))).reading() == shown
