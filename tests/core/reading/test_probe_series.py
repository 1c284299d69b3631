"""Probes: what is accepted and refused, and numbers read from logs, the same whatever the pieces."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specconsole.core.launching.probe_pattern import LINE_BYTES, MOST_PATTERN, probe, why_not
from specconsole.core.reading.probe_series import BUCKETS, ProbeReader, sampled, window_means

ACCEPTED = [
    (r"eagle3 draft (\d+\.\d+) ms", "eagle3 draft 12.50 ms", 12.5),
    (r"accept_len=(\d+(?:\.\d+)?)", "x accept_len=3 y", 3.0),
    (r"\[EAGLE3\] step \d+ .* verify: (-?\d+\.?\d*)ms", "[EAGLE3] step 7 topk=1 verify: 8.25ms", 8.25),
    (r"took\s*=\s*(\S+)", "took = 1.5e-3", 0.0015),
    (r"(?:draft|target) took ([\d.,]+) us", "target took 1,234.5 us", 1234.5),
    (r"foo \S+ bar \S+ (\d+)", "foo a bar b 9", 9.0),
    (r"^rank0: x+y (\d+)$", "rank0: xxxy 5", 5.0),
    (r"zeit für (\d+)", "zeit für 4", 4.0),
]
REFUSED = [
    (r"foo(", "is no regular expression"),
    (r"foo \d+", "must have one group"),
    (r"foo (\d+) (\d+)", "must have one group"),
    (r"foo(\d+)*", "a repeat within a repeat"),
    (r"foo (a+)+b", "a repeat within a repeat"),
    (r"foo (?:ab|cd)+(\d)", "a repeat within a repeat"),
    (r"foo (?:ab){2,40}(\d)", "a repeat within a repeat"),
    (r".*foo (\d+)", "begins with a repeat that runs over blanks"),
    (r"foo .* bar .* (\d+)", "more than one repeat that runs over blanks"),
    (r"foo \w+\d*\w+ (\d+)", "side by side"),
    (r"foo\s+\s*(\d+)", "side by side"),
    (r"foo(?=x)(\d+)", "may not use assert"),
    (r"foo(\d+)\1", "may not use groupref"),
    (r"(?i)foo(\d+)", "takes no flags"),
    (r"(\d+)", "3 characters that always stand"),
    (r"foo(\d+)|(?:ab)", "3 characters that always stand"),
    ("foo" + "x" * MOST_PATTERN + r"(\d+)", "longer than"),
    (r"foo" + "(?:ab|cd)" * 8 + r"(\d)", "too many alternatives"),
]


@pytest.mark.parametrize(("pattern", "line", "value"), ACCEPTED)
def test_accepted_and_read(pattern: str, line: str, value: float) -> None:
    assert why_not("x", pattern) == ""
    assert window_means([probe("x", pattern)], f"noise\n{line}\nnoise 77".encode()) == {"x": value}


@pytest.mark.parametrize(("pattern", "why"), REFUSED)
def test_refused_with_the_reason(pattern: str, why: str) -> None:
    assert why in why_not("x", pattern)


@pytest.mark.parametrize("name", ["", "1st", "a b", "x" * 41, "a/b", "é"])
def test_names(name: str) -> None:
    assert "is no name" in why_not(name, r"foo(\d+)")


def test_what_is_accepted_is_quick_on_lines_made_against_it() -> None:
    for pattern, _, _ in ACCEPTED:
        literals = probe("x", pattern).literals
        for unit in (b"", b"0", b" ", b"a", b"=", b"x", b".", b"took "):
            line = (literals[0] + unit * 3) * (LINE_BYTES // (len(literals[0]) + 3 * len(unit)))
            for text in (line, literals[0] + unit * LINE_BYTES):
                began = time.process_time()
                window_means([probe("x", pattern)], text)
                assert time.process_time() - began < 1.0, (pattern, text[:40])


PROBES = [probe("draft", r"draft took (\d+\.?\d*) ms"), probe("len", r"accept len: (\S+)")]
LINE = st.one_of(
    st.floats(0, 1e6).map(lambda v: f"[2026-11-29 14:02:{int(v) % 60:02d} TP0] draft took {v:.3f} ms".encode()),
    st.sampled_from([b"accept len: 2.5", b"accept len: none", b"accept len: nan", b"", b"draft took", b"\xff\xfe\x00x",
                     b"x" * 5000 + b"draft took 1 ms", b"draft took 2 ms" + b"y" * 9000,
                     b"draft took 3 ms accept len: 4"]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(LINE, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=30),
    st.lists(st.integers(1, 3000), min_size=1, max_size=20), st.integers(0, 40),
)  # fmt: skip
def test_the_same_bytes_give_the_same_series(
    lines: list[tuple[bytes, bytes]], cuts: list[int], saved_after: int
) -> None:
    log = b"".join(line + end for line, end in lines)
    # Every byte came at the time of its thousand.
    whole = ProbeReader(PROBES)
    for start in range(0, len(log), 1000):
        whole.feed(log[start : start + 1000], float(start))
    pieces = ProbeReader(PROBES)
    place = number = 0
    while place < len(log):
        size = min(cuts[number % len(cuts)], 1000 - place % 1000, len(log) - place)
        pieces.feed(log[place : place + size], float(place - place % 1000))
        place, number = place + size, number + 1
        if number == saved_after:
            resumed = ProbeReader.resume(PROBES, json.loads(json.dumps(pieces.checkpoint())))
            assert resumed is not None
            pieces = resumed
    assert pieces.series() == whole.series()
    assert pieces.offset == whole.offset == len(log)
    # A witness of its own for the numbers.
    seen = [m[1] for line in re.split(rb"[\r\n]", log) if (m := re.search(rb"draft took (\d+\.?\d*) ms", line[:4096]))]
    finished = log.endswith((b"\n", b"\r")) or not log
    draft = whole.series()[0]
    assert finished
    assert draft.count == len(seen)
    assert draft.last == (float(seen[-1]) if seen else None)


def test_a_long_series_stays_small_and_keeps_its_mean() -> None:
    reader = ProbeReader(PROBES)
    log = b"".join(b"draft took %d ms\n" % n for n in range(40_000))
    reader.feed(log)
    [draft, _] = reader.series()
    assert draft.count == 40_000
    assert draft.mean == pytest.approx(19_999.5)
    assert BUCKETS // 2 <= len(draft.buckets) <= BUCKETS
    assert sum(bucket.count for bucket in draft.buckets) == draft.count
    assert min(bucket.low for bucket in draft.buckets) == 0
    assert max(bucket.high for bucket in draft.buckets) == 39_999
    shown = sampled(draft, 60)
    assert len(shown) == 60
    assert list(shown) == sorted(shown)
    # Where a bucket's first line stands in the file.
    middle = draft.buckets[len(draft.buckets) // 2]
    assert log[middle.offset :].startswith(b"draft took %d ms\n" % middle.low)


def test_what_is_no_number_is_counted_and_not_made_up() -> None:
    reader = ProbeReader(PROBES)
    reader.feed(b"accept len: none\naccept len: nan\naccept len: 2\n")
    length = reader.series()[1]
    assert (length.count, length.unreadable, length.mean) == (1, 2, 2.0)


def test_saved_values_of_other_probes_are_not_taken() -> None:
    saved = ProbeReader(PROBES).checkpoint()
    assert ProbeReader.resume(PROBES[:1], saved) is None
    for broken in ({}, None, {**saved, "pending": "zz"}, {**saved, "series": {"draft": {}}}):
        assert ProbeReader.resume(PROBES, broken) is None
