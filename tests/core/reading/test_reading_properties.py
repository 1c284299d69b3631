"""What must hold for every log and every way in which its bytes arrive."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specconsole.cli.reading_text import describe, one_line
from specconsole.core.reading import prefilter
from specconsole.core.reading.reading import Reader
from tests.core.reading import lines_for_tests as pool

COMMON = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
_SEPARATORS = st.sampled_from(["\n"] * 6 + ["\r\n", "\r", "\n\r", "\n\n"])
_LINES = st.one_of(
    st.sampled_from(pool.ALL), st.sampled_from(pool.SGLANG_SERVING), st.sampled_from(pool.TROUBLE), st.text(max_size=60)
)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """A log put together from real lines in any order, sometimes cut inside a line."""
    begin = draw(st.sampled_from([(), pool.SGLANG_START, pool.SGLANG_START[:5]]))
    text = "".join(f"{line}\n" for line in begin)
    for line in draw(st.lists(_LINES, max_size=40)):
        text += line + draw(_SEPARATORS)
    data = text.encode("utf-8", "surrogatepass")
    cut = draw(st.integers(0, 30)) if draw(st.booleans()) else 0
    return data[: len(data) - cut] if cut else data


@st.composite
def timed_logs(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, float]]]:
    """A log, and up to which byte it had arrived when."""
    data = draw(logs())
    ends = sorted({*draw(st.lists(st.integers(0, len(data)), max_size=6)), len(data)})
    gaps = draw(st.lists(st.floats(0.1, 40), min_size=len(ends), max_size=len(ends)))
    arrivals, now = [], 100.0
    for end, gap in zip(ends, gaps, strict=True):
        now += gap
        arrivals.append((end, now))
    return data, arrivals


def fed(data: bytes, arrivals: list[tuple[int, float]], cuts: set[int], save_at: int | None = None) -> dict[str, Any]:
    """The reading at the end, with the bytes in pieces that end at `cuts` and wherever the time changes."""
    reader = Reader()
    ends = sorted({*cuts, *(end for end, _ in arrivals)})
    start = 0
    for end in ends:
        at_s = next(time for limit, time in arrivals if end <= limit)
        reader.feed(data[start:end], at_s)
        start = end
        if save_at is not None and end >= save_at:
            reader = Reader.resume(json.loads(json.dumps(reader.checkpoint())))
            save_at = None
    return reader.reading(arrivals[-1][1] + 5.0).to_json()


@COMMON
@given(timed_logs(), st.data())
def test_any_chunking_gives_the_same_reading(timed: tuple[bytes, list[tuple[int, float]]], data: st.DataObject) -> None:
    log, arrivals = timed
    whole = fed(log, arrivals, set())
    cuts = set(data.draw(st.lists(st.integers(0, len(log)), max_size=30)))
    assert fed(log, arrivals, cuts) == whole
    if len(log) < 1500:
        assert fed(log, arrivals, set(range(len(log) + 1))) == whole


@COMMON
@given(timed_logs(), st.data())
def test_a_checkpoint_anywhere_gives_the_same_reading(
    timed: tuple[bytes, list[tuple[int, float]]], data: st.DataObject
) -> None:
    log, arrivals = timed
    at = data.draw(st.integers(0, len(log)))
    assert fed(log, arrivals, {at}, save_at=at) == fed(log, arrivals, set())


@COMMON
@given(logs(), st.booleans())
def test_skipping_steady_lines_changes_nothing(log: bytes, twice: bool) -> None:
    data = pool.SGLANG_START[0].encode() + b"\n" + log + (log if twice else b"")
    skipped = Reader(engine="sglang")
    skipped.feed(data)
    every = Reader(engine="sglang")
    every._prefilter = _LookAtEverything(every._prefilter)
    every.feed(data)
    assert every.reading().to_json() == skipped.reading().to_json()


_RANKS = ("", " DP0 TP0", " DP1 TP1", " TP0")
_OF_RANK = {rank: tuple(line for line in pool.SGLANG_SERVING if line[20:].startswith(f"{rank}] ")) for rank in _RANKS}


@COMMON
@given(st.data(), st.sampled_from([("",), (" DP0 TP0",), (" DP0 TP0", " DP1 TP1")]), st.sampled_from(["", "pod-1  | "]))
def test_skipping_changes_nothing_in_long_runs(data: st.DataObject, ranks: tuple[str, ...], wrapper: str) -> None:
    usual = st.sampled_from([line for rank in ranks for line in _OF_RANK[rank]])
    lines = data.draw(st.lists(usual, min_size=20, max_size=150))
    start = pool.SGLANG_START[: data.draw(st.sampled_from([1, len(pool.SGLANG_START)]))]
    log = "".join(f"{wrapper}{line}\n" for line in (*start, *lines)).encode()
    skipped = Reader(engine="sglang")
    skipped.feed(log)
    every = Reader(engine="sglang")
    every._prefilter = _LookAtEverything(every._prefilter)
    every.feed(log)
    assert every.reading().to_json() == skipped.reading().to_json()


class _LookAtEverything(prefilter.Prefilter):
    """Every steady line is read, on the long way."""

    def __init__(self, real: prefilter.Prefilter) -> None:
        self.__dict__.update(real.__dict__)
        self._steady = None
        self._known = {}


@COMMON
@given(
    st.one_of(logs(), st.binary(max_size=3000)), st.sampled_from(["live", "dead"]), st.sampled_from([None, 0, 1, 137])
)
def test_no_input_raises_and_no_output_holds_a_control_character(
    log: bytes, at_end: str, exit_code: int | None
) -> None:
    reader = Reader()
    reader.feed(log, 1.0)
    reading = reader.reading(3.0, dead=at_end == "dead", exit_code=exit_code)
    text = json.dumps(reading.to_json(), allow_nan=False)
    for value in _strings(json.loads(text)):
        assert not [c for c in value if unicodedata.category(c) in ("Cc", "Zl", "Zp")], value
        assert not set(value) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"), value
    for line in (*describe(reading).split("\n"), one_line(reading)):
        assert not [c for c in line if unicodedata.category(c) == "Cc"], line


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return []


def test_reading_changes_nothing() -> None:
    data = "\n".join((*pool.SGLANG_START, *pool.BARS[:3])).encode()
    asked, silent = Reader(), Reader()
    for start in range(0, len(data), 37):
        asked.feed(data[start : start + 37], start / 10)
        silent.feed(data[start : start + 37], start / 10)
        asked.reading(start / 10)
    assert asked.checkpoint() == silent.checkpoint()


def test_a_checkpoint_of_another_shape_is_refused() -> None:
    saved = Reader().checkpoint()
    saved["format"] = 0
    with pytest.raises(ValueError, match="another version"):
        Reader.resume(saved)
    broken = Reader().checkpoint()
    broken["pipeline"] = {"phases": 3}
    with pytest.raises(ValueError, match="checkpoint"):
        Reader.resume(broken)
