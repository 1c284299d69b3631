"""tqdm itself as the witness: its formatter's text is read back, and a real bar is timed by its own process's clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tqdm import tqdm

from specconsole.core.reading.bars import find_bars
from specconsole.core.reading.eta import BarTrack, bar_eta, track

SGLANG = "{desc}: {percentage:3.0f}% Completed | {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}]"
"""SGLang srt/utils/common.py and vLLM weight_utils.py."""


@settings(max_examples=300, deadline=None)
@given(
    total=st.integers(1, 10**6),
    share=st.floats(0.0, 1.0),
    elapsed=st.one_of(st.just(0.0), st.floats(0.001, 400_000.0)),
    rate=st.one_of(st.none(), st.floats(1e-4, 1e5)),
    bar_format=st.sampled_from([None, SGLANG]),
    unit=st.sampled_from(["it", "files", "shard"]),
    ascii_only=st.booleans(),
)
def test_reads_back_what_tqdm_formats(
    total: int, share: float, elapsed: float, rate: float | None, bar_format: str | None, unit: str, ascii_only: bool
) -> None:
    done = round(total * share)
    text = tqdm.format_meter(
        done, total, elapsed, ncols=None, prefix="Loading safetensors checkpoint shards", ascii=ascii_only, unit=unit,
        rate=rate, bar_format=bar_format,
    )  # fmt: skip
    (bar,) = find_bars(text)
    assert bar.finished
    assert bar.desc == "Loading safetensors checkpoint shards"
    assert (bar.done, bar.total) == (done, total)
    assert bar.elapsed_s == int(elapsed)
    shown = rate if rate is not None else (done / elapsed if elapsed else None)
    if shown and shown >= 0.01:
        assert bar.printed_rate_per_s == pytest.approx(shown, rel=0.02, abs=0.006)


@settings(max_examples=200, deadline=None)
@given(
    total=st.integers(1, 10**14),
    share=st.floats(0.0, 1.0),
    elapsed=st.floats(1.0, 100_000.0),
    rate=st.floats(1.0, 1e11),
    divisor=st.sampled_from([1000]),
)
def test_reads_back_bytes(total: int, share: float, elapsed: float, rate: float, divisor: int) -> None:
    done = round(total * share)
    text = tqdm.format_meter(
        done, total, elapsed, prefix="model.safetensors", unit="B", unit_scale=True, rate=rate, unit_divisor=divisor
    )
    (bar,) = find_bars(text)
    assert bar.unit == "byte"
    assert bar.done == pytest.approx(done, rel=0.006, abs=0.6)
    assert bar.total == pytest.approx(total, rel=0.006, abs=0.6)
    assert bar.printed_rate_per_s == pytest.approx(rate, rel=0.006)


DRAWS = """
import json, sys, time
from tqdm import tqdm
times, bar_format, out = json.loads(sys.argv[1]), sys.argv[2] or None, sys.argv[3]
bar = tqdm(times, desc="Loading safetensors checkpoint shards", bar_format=bar_format)
done_at, begun = [], time.monotonic()
for seconds in bar:
    time.sleep(seconds)
    done_at.append(time.monotonic())
json.dump([begun, done_at], open(out, "w"))
"""


@pytest.mark.parametrize("bar_format", ["", SGLANG + "\n"], ids=["default", "with-line-ends"])
def test_a_real_bar_is_timed_to_a_fraction_of_a_second(tmp_path: Path, bar_format: str) -> None:
    """The drawing process writes down by its own clock when each item was done; the bar's text says only seconds."""
    times_s = [0.8, *([0.12] * 5), 0.3, *([0.15] * 4)]
    witness = tmp_path / "witness.json"
    process = subprocess.Popen(
        [sys.executable, "-c", DRAWS, json.dumps(times_s), bar_format, str(witness)],
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "120"},
    )
    assert process.stderr is not None
    state: BarTrack | None = None
    seen: list[tuple[float, BarTrack]] = []
    pending = b""
    while chunk := os.read(process.stderr.fileno(), 4096):
        at_s = time.monotonic()
        pending += chunk
        *whole, pending = pending.replace(b"\n", b"\r").split(b"\r")
        for piece in (*whole, pending):
            for bar in find_bars(piece.decode()):
                if bar.finished:
                    state = track(state, bar, arrival_s=at_s)
                    seen.append((at_s, state))
    process.stderr.close()
    assert process.wait(30) == 0
    begun_s, done_at = json.loads(witness.read_text())
    assert state is not None
    assert state.complete

    for done, at_s in state.points[1:]:
        # tqdm waits for a tenth of a second between two updates, so an item may be shown that much late.
        assert -0.1 < at_s - (done_at[done - 1] - begun_s) < 0.25, f"item {done}"
    held = told = 0
    for at_s, then in seen:
        eta = bar_eta(then, now_s=at_s)
        if eta is not None and not then.complete and then.done >= 2:
            told += 1
            held += eta.low <= done_at[-1] - at_s <= eta.high
    assert told >= 5
    assert held >= 0.8 * told
