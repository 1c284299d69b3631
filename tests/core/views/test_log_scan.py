"""Search, filter, fold and time over raw log blocks, compared with what a plain loop over the lines finds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specconsole.core.views.log_line import LineMark, fold_key, mark_line, plain, time_of_day_s
from specconsole.core.views.log_scan import LineSelection, compile_search, first_line_at, match_lines

MARKS = {
    # SGLang 0.5.17 on an H200 and on CPUs
    b"[2026-11-29 14:12:42] Init torch distributed begin.": LineMark(None, "info", True),
    b"[2026-11-29 14:12:42 TP0] Load weight begin. avail mem=139.09 GB": LineMark("TP0", "info", True),
    b"[2026-11-29 14:12:42 DP1 TP3 EP3] Load weight begin.": LineMark("DP1 TP3 EP3", "info", True),
    b'[2026-11-29 14:13:00] INFO:     127.0.0.1:55312 - "GET /health HTTP/1.1" 503 Service': LineMark(
        None, "poll", True
    ),
    b"[2026-11-29 14:05:11 TP3] Scheduler hit an exception: Traceback (most recent call last):": LineMark(
        "TP3", "error", True
    ),
    # vLLM 0.11
    b"(EngineCore_DP0 pid=312) INFO 11-29 14:12:42 [core.py:93] Initializing a V1 LLM engine": LineMark(
        "EngineCore_DP0", "info", True
    ),
    b"(Worker_TP1 pid=402) ERROR 11-29 14:12:42 [multiproc_executor.py:596] WorkerProc failed": LineMark(
        "Worker_TP1", "error", True
    ),
    b"WARNING 11-29 14:12:42 [interface.py:171] Failed to import from vllm._C": LineMark(None, "warning", True),
    # llama.cpp b10434
    b"0.00.123.456 W load: special_eos_id is not in special_eog_ids": LineMark(None, "warning", True),
    b"0.02.999.104 E srv    load_model: failed to load model": LineMark(None, "error", True),
    # torch 2.9
    b"[rank3]:[E1129 14:12:42.123 ProcessGroupNCCL.cpp:632] Watchdog caught collective": LineMark(
        "rank 3", "error", True
    ),
    # what continues a record
    b'  File "/srv/scheduler.py", line 2713, in run_scheduler_process': LineMark(None, "info", False),
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.38 GiB": LineMark(None, "error", False),
    b"": LineMark(None, "info", False),
}


@pytest.mark.parametrize("line", MARKS)
def test_a_line_says_rank_and_level(line: bytes) -> None:
    assert mark_line(line) == MARKS[line]


def test_plain_keeps_the_number_of_lines_and_shows_what_a_person_saw() -> None:
    block = b"\x1b[1;33mdeprecated\x1b[0m\nbar 0%\rbar 50%\rbar 100%\nwindows\r\n\x1b]0;title\x07x\n"
    assert plain(block) == b"deprecated\nbar 100%\nwindows\nx\n"


ALPHABET = st.sampled_from(["a", "b", "A", "\n", " ", "é", "[", "TP1"])


@given(st.lists(ALPHABET, max_size=80), st.sampled_from(["a", "A", "b", "é", "[", "aa", "tp1"]), st.booleans())
def test_search_finds_the_lines_that_a_loop_finds(parts: list[str], wanted: str, newline: bool) -> None:
    text = "".join(parts) + ("\n" if newline else "")
    ignore = re.IGNORECASE if wanted == wanted.lower() else 0
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    # A bytes pattern folds ASCII only; so does this.
    expected = [
        7 + number for number, line in enumerate(lines) if re.search(re.escape(wanted).encode(), line.encode(), ignore)
    ]
    assert list(match_lines(7, text.encode(), compile_search(wanted, regex=False))) == expected


def test_regular_expressions_anchor_at_lines() -> None:
    block = b"alpha\nbeta\nalphabet\n"
    assert list(match_lines(0, block, compile_search("^alpha$", regex=True))) == [0]
    assert list(match_lines(0, block, compile_search("a$", regex=True))) == [0, 1]
    with pytest.raises(re.error):
        compile_search("(", regex=True)


LOG = b"""\
[2026-11-29 14:02:31 TP0] Init torch distributed begin.
[2026-11-29 14:02:31 TP1] Init torch distributed begin.
[2026-11-29 14:02:32 TP0] Load weight begin.
[2026-11-29 14:02:33 TP1] WARNING: slow disk
  which continues
[2026-11-29 14:02:33 TP1] Load weight begin.
[2026-11-29 14:02:40 TP1] Traceback (most recent call last):
  File "x.py", line 1
RuntimeError: boom
[2026-11-29 14:02:41 TP0] Load weight end.
"""


def _rows(selection: LineSelection, *, cut: int = len(LOG)) -> list[int]:
    """Feeds the log in two blocks cut after a line."""
    lines = LOG.splitlines(keepends=True)
    selection.feed(0, b"".join(lines[:cut]))
    if lines[cut:]:
        selection.feed(cut, b"".join(lines[cut:]))
    return list(selection.rows)


@pytest.mark.parametrize("cut", [1, 4, 7, 10])
def test_filters_keep_records_whole_wherever_blocks_are_cut(cut: int) -> None:
    assert _rows(LineSelection(ranks=frozenset({"TP1"})), cut=cut) == [1, 3, 4, 5, 6, 7, 8]
    assert _rows(LineSelection(least="warning"), cut=cut) == [3, 4, 6, 7, 8]
    assert _rows(LineSelection(least="error"), cut=cut) == [6, 7, 8]


@pytest.mark.parametrize("cut", [1, 3, 10])
def test_folding_shows_once_what_every_rank_prints(cut: int) -> None:
    selection = LineSelection(fold=True)
    assert _rows(selection, cut=cut) == [0, 2, 3, 4, 6, 7, 8, 9]
    assert selection.copies == {0: 2, 2: 2}


def test_one_rank_that_repeats_itself_is_not_folded() -> None:
    selection = LineSelection(fold=True)
    line = b"[2026-11-29 14:02:31 TP0] Decode batch.\n"
    selection.feed(0, line * 3)
    assert list(selection.rows) == [0, 1, 2]


def test_fold_keys_differ_in_what_was_said_only() -> None:
    same = [b"[2026-11-29 14:02:31 TP0] Load weight begin.", b"[2026-11-29 14:02:33 TP7] Load weight begin."]
    assert fold_key(same[0]) == fold_key(same[1]) == b"Load weight begin."
    assert fold_key(same[0]) != fold_key(b"[2026-11-29 14:02:31 TP0] Load weight end.")


def test_a_time_of_day_leads_to_its_first_line() -> None:
    assert time_of_day_s(b"[2026-11-29 14:02:33 TP1] x") == 14 * 3600 + 2 * 60 + 33
    assert time_of_day_s(b"no stamp") is None
    assert first_line_at(100, LOG, 14 * 3600 + 2 * 60 + 33) == 103
    assert first_line_at(100, LOG, 14 * 3600 + 2 * 60 + 34) == 106
    assert first_line_at(100, LOG, 20 * 3600) is None
