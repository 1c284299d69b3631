"""Marks from logs, requests taken apart, losslessness."""

from __future__ import annotations

from typing import Any

import pytest

from specconsole.core.measuring.log_marks import log_marks
from specconsole.core.measuring.lossless import compare_answers
from specconsole.core.measuring.request_figures import acceptance_over_time, histogram, outliers, records_of

DECODE = (
    b"[2026-11-29 14:28:19] Decode batch, #running-req: 1, #token: 40, token usage: 0.00, accept len: 2.50, "
    b"cuda graph: %s, gen throughput (token/s): 33.11, #queue-req: 0\n"
)


@pytest.mark.parametrize(
    ("log", "marks"),
    [
        (b"", ()),
        (DECODE % b"True" * 5, ()),
        (DECODE % b"True" * 5 + DECODE % b"False", ("no-graph",)),
        (DECODE % b"False" * 5, ()),  # it runs without graphs by its settings
        (b"Try DeepGEMM JIT Compiling for <gemm> N=128 K=64 num_groups=1 with all Ms.\n", ("compiled-inside",)),
        (b"INFO torch.compile took 12.3 s in total\n", ("compiled-inside",)),
        (b"[1/6] c++ -MMD -MF cpp_2.o.d -std=c++17\n", ("compiled-inside",)),
        (b"KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 40\n", ("retractions",)),
    ],
)
def test_what_a_log_says_of_a_window(log: bytes, marks: tuple[str, ...]) -> None:
    assert log_marks(log) == marks


def line(body: int, start_s: float, seconds: float, **more: Any) -> dict[str, Any]:
    return {
        "kind": "request", "point": 0, "body": body, "warmup": False, "started_s": start_s, "sent_s": start_s,
        "end_s": start_s + seconds, "error": None, "events": [100_000, 1, round(seconds * 1e6), 30],
        "completion_tokens": 31, "tokens_from": "timings", "spec": {"draft_n": 40, "draft_n_accepted": 20},
        "text_sha256": "a", **more,
    }  # fmt: skip


def test_a_histogram_counts_every_value_once() -> None:
    bins = histogram([1.0, 1.1, 2.0, 5.0], 4)
    assert [one.count for one in bins] == [2, 1, 0, 1]
    assert histogram([3.0, 3.0]) == histogram([3.0, 3.0], 9)
    assert histogram([]) == ()


def test_acceptance_as_it_went() -> None:
    lines = [line(n, n * 1.0, 1.0, spec={"draft_n": 40, "draft_n_accepted": 20 if n < 5 else 10}) for n in range(10)]
    told = [value for _, value in acceptance_over_time(records_of(lines), 2)]
    # 30 decode tokens in 10 steps, then in 20.
    assert told[0] == pytest.approx(3.0, abs=0.25)
    assert told[-1] == pytest.approx(1.5, abs=0.25)
    assert acceptance_over_time(records_of([line(1, 0.0, 1.0, spec={})])) == ()


def test_failures_and_the_far_slower_ones_stand_out() -> None:
    lines = [line(n, float(n), 1.0 + n / 100) for n in range(10)]
    lines.append(line(10, 10.0, 9.0))
    lines.append(line(11, 11.0, 0.1, error="reset", detail="closed"))
    found = outliers(records_of(lines))
    assert [(one.record.body, one.what.split()[0]) for one in found] == [(11, "reset:"), (10, "E2E")]


def test_the_first_divergence_is_shown() -> None:
    same = [line(n, 0.0, 1.0, text="the river and the stone") for n in range(3)]
    other = [dict(one) for one in same]
    other[1].update(text_sha256="b", text="the river and a stone")
    found = compare_answers(same, other)
    assert (found.compared, found.equal, len(found.differing)) == (3, 2, 1)
    assert found.differing[0].at == len("the river and ")
    assert compare_answers(same, same).differing == ()


def test_answers_that_waver_within_one_run_blame_no_draft() -> None:
    wavering = [line(0, 0.0, 1.0), line(0, 2.0, 1.0, text_sha256="b")]
    found = compare_answers(wavering, [line(0, 0.0, 1.0)])
    assert (found.compared, found.equal, found.unstable, found.differing) == (1, 0, 1, ())
