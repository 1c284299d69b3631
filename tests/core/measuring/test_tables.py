"""Rows, baselines, the pane's table and its words, on results whose numbers are known."""

from __future__ import annotations

import pytest

from specconsole.core.measuring.compare import compare
from specconsole.core.measuring.economics import Crossing
from specconsole.core.measuring.metrics import METRICS
from specconsole.core.measuring.progress import BenchView, RunProgress
from specconsole.core.measuring.rows import baseline_of, chosen_rows, merge_launches, same_workload
from specconsole.core.measuring.run_plan import PlannedPoint
from specconsole.core.measuring.speeds import speeds_seen
from specconsole.core.measuring.table_view import progress_text, results_view
from specconsole.core.measuring.verdict_text import crossing_text, pays_text, verdict_lines
from tests.core.measuring.build import point, result

PLAIN = result("plain", [point(c, v, n) for c, v in ((1, 100.0), (2, 190.0), (4, 360.0)) for n in range(3)])
# A step costs 1.8, 2.6 and 4.0 times the plain token; each brings 3 tokens: 1.67x, 1.15x and 0.75x.
DRAFT = result(
    "draft",
    [point(c, plain * 3 / even, n, accept=3.0) for c, plain, even in ((1, 100, 1.8), (2, 190, 2.6), (4, 360, 4.0))
     for n in range(3)],
    at_s=2000.0, speculative=True, num_steps=3,
)  # fmt: skip


def test_break_even_and_crossing_by_hand() -> None:
    table = compare([PLAIN, DRAFT], METRICS["output_tok_s"], baseline_id=PLAIN.result_id)
    row = table.rows[1]
    evens = [cell.verdict.break_even_length for cell in row.cells if cell.verdict is not None]
    assert evens == pytest.approx([1.8, 2.6, 4.0], rel=2e-3)
    assert [cell.verdict.pays for cell in row.cells if cell.verdict] == [True, True, False]
    assert [cell.verdict.ceiling for cell in row.cells if cell.verdict] == [4, 4, 4]
    assert [cell.tendency for cell in row.cells] == ["better", "better", "worse"]
    (crossing,) = row.crossings
    # log 1.1538 / (log 1.1538 - log 0.75) of the way from 2 to 4 on the logarithm.
    assert crossing.concurrency == pytest.approx(2.52, abs=0.01)
    assert crossing.helps_below
    assert pays_text(row).startswith("C<2.52")
    assert "no draft can pay here" not in "".join(verdict_lines(row.cells[0]))


def test_above_the_ceiling_no_draft_pays_and_it_is_said() -> None:
    slow = result("draft", [point(4, 360 * 3 / 4.5, n, accept=3.0) for n in range(3)], speculative=True, num_steps=3)
    row = compare([PLAIN, slow], METRICS["output_tok_s"], baseline_id=PLAIN.result_id).rows[1]
    cell = row.cells[2]
    assert cell.verdict is not None
    assert cell.verdict.can_pay is False
    assert any("no draft can pay here" in line for line in verdict_lines(cell))


def test_excluded_points_have_no_verdict_and_no_crossing() -> None:
    queued = result(
        "draft", [point(c, 300.0 / c, n, accept=3.0, marks=["queued"]) for c in (1, 2, 4) for n in range(3)],
        speculative=True, num_steps=3,
    )  # fmt: skip
    row = compare([PLAIN, queued], METRICS["output_tok_s"], baseline_id=PLAIN.result_id).rows[1]
    assert all(cell.verdict is None for cell in row.cells)
    assert row.crossings == ()


def test_other_requests_are_never_compared() -> None:
    other = result("draft", [point(1, 500.0, n, accept=3.0) for n in range(3)], workload_hash="other", at_s=5000.0)
    row = compare([PLAIN, other], METRICS["output_tok_s"], baseline_id=PLAIN.result_id).rows[1]
    assert not row.comparable
    assert row.cells[0].against_baseline is None
    assert same_workload([PLAIN, other]) == (other,)


def test_starts_of_one_profile_become_one_row_whose_repeats_span_them() -> None:
    again = result("plain", [point(1, 102.0, n, launch_id="L2") for n in range(3)], at_s=3000.0)
    (row,) = merge_launches([PLAIN, again])
    assert row.launches == 2
    assert [p.repeat for p in row.at(1.0)] == [0, 1, 2, 3, 4, 5]
    assert row.result_id == again.result_id
    told = compare([row], METRICS["output_tok_s"], baseline_id=None).rows[0].cells[0].value
    assert told is not None
    assert told.mean == pytest.approx(101.0)


def test_the_baseline_is_the_pinned_one_else_the_newest_plain_one() -> None:
    rows = chosen_rows([PLAIN, DRAFT])
    assert baseline_of(rows) == PLAIN.result_id
    assert baseline_of(rows, DRAFT.result_id) == DRAFT.result_id
    assert baseline_of(rows, "gone") == PLAIN.result_id
    assert baseline_of([DRAFT]) is None


def test_the_panes_table() -> None:
    view = results_view([PLAIN, DRAFT], [])
    assert view.concurrencies == (1, 2, 4)
    assert view.detail_concurrency == 1
    draft = view.rows[1]
    assert dict(draft.against_baseline) == {1: 1, 2: 1, 4: -1}
    assert draft.accept_length == pytest.approx(3.0)
    assert draft.step_ms == pytest.approx(18.0, rel=1e-3)
    assert draft.breaks_even_at.startswith("1.80 · C<2.52")
    running = BenchView("b", "draft", "L1", "local", "measuring", load="C=2, repeat 1", requests_done=5, requests=20)
    busy = results_view([PLAIN, DRAFT], [running])
    assert busy.note == "draft C=2, repeat 1: measuring, 5/20 requests"
    assert busy.rows[0].running


def test_budget_comes_from_what_was_measured_before() -> None:
    assert speeds_seen([PLAIN, DRAFT], "plain", "w") == {1: 100.0, 2: 190.0, 4: 360.0}
    assert speeds_seen([PLAIN], "another", "w") == {}


def test_progress_counts_and_tells_what_is_left() -> None:
    planned = [PlannedPoint(1, None, 0, 4, 1), PlannedPoint(2, None, 0, 8, 2), PlannedPoint(1, None, 1, 4, 1)]
    run = RunProgress(planned)
    run.take({"kind": "point", "point": 0, "at_s": 1.0})
    assert run.load == "C=1, repeat 1"
    assert run.left_s() is None, "nothing is known before a point ended"
    for n in range(5):
        run.take({"kind": "request", "point": 0, "warmup": n == 0, "error": "reset" if n == 4 else None})
    run.take({"kind": "point-end", "point": 0, "at_s": 6.0})
    assert (run.requests_done, run.failed) == (5, 1)
    # 5 s for a point like the third; a second a request for the other.
    assert run.left_s() == pytest.approx(5.0 + 10.0)
    run.take({"kind": "skipped", "point": 2, "at_s": 6.0})
    assert run.left_s() == pytest.approx(10.0)
    run.take({"kind": "point", "point": 1, "at_s": 6.0})
    run.take({"kind": "progress", "point": 1, "at_s": 7.0, "point_s": 1.0, "tokens": 100, "in_flight": 2})
    run.take({"kind": "progress", "point": 1, "at_s": 9.0, "point_s": 3.0, "tokens": 300, "in_flight": 2})
    assert run.tok_s == pytest.approx(100.0)
    assert run.left_s() == pytest.approx(10.0 - 3.0)
    view = BenchView("b", "x", "", "local", "measuring", requests_done=1, requests=2, tok_s=1234.0, accept_length=3.1,
                     eta_s=250.0, failed=1, problem="the link is down")  # fmt: skip
    assert progress_text(view) == (
        "x: measuring, 1/2 requests, 1 failed, 1,234 tok/s, accept 3.10, 4 min left, the link is down"
    )


def test_a_crossing_that_noise_hides_is_no_fact() -> None:
    assert crossing_text([Crossing(2.4, 1.9, 2.8, helps_below=True)]) == "C<2.4 (1.9-2.8)"
    assert crossing_text([Crossing(2.4, None, None, helps_below=True)]) == "C<2.4?"
