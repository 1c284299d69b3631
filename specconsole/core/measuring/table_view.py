"""Results and running benchmarks -> the table of the window's results pane."""

from __future__ import annotations

from collections.abc import Sequence

from specconsole.core.measuring.compare import Row, compare
from specconsole.core.measuring.metrics import METRICS
from specconsole.core.measuring.progress import BenchView
from specconsole.core.measuring.result import Result
from specconsole.core.measuring.rows import baseline_of, merge_launches, same_workload
from specconsole.core.measuring.verdict_text import crossing_text
from specconsole.core.views.result import ResultRow, ResultsView

_TENDENCIES = {"better": 1, "worse": -1, "noise": 0, "unknown": 0}


def results_view(
    results: Sequence[Result], running: Sequence[BenchView], pinned: str | None = None, metric_id: str = "output_tok_s"
) -> ResultsView:
    """The newest workload's results against the baseline, and how far running benchmarks are."""
    rows = merge_launches(same_workload(results))
    note = "; ".join(progress_text(view) for view in running if not view.over)
    if not rows:
        return ResultsView(note=note)
    table = compare(rows, METRICS[metric_id], baseline_id=baseline_of(rows, pinned, results))
    levels = tuple(int(load) for load in table.loads if load == int(load))
    detail = levels[0] if levels else None
    busy = {view.launch_id for view in running if not view.over} - {""}
    if not note and (unfair := _unfair(table.rows)):
        note = unfair
    return ResultsView(
        workload=rows[-1].conditions.workload,
        concurrencies=levels,
        detail_concurrency=detail,
        rows=tuple(_row(row, detail, busy) for row in table.rows),
        note=note,
    )


def _row(row: Row, detail: int | None, busy: set[str]) -> ResultRow:
    values = [
        (int(cell.load), None if cell.value is None else cell.value.mean)
        for cell in row.cells
        if cell.load == int(cell.load) and row.result.at(cell.load)
    ]
    at = next((cell for cell in row.cells if cell.load == detail), None)
    lengths = [p.acceptance.accept_length for p in row.result.at(float(detail or 0)) if p.acceptance.accept_length]
    steps = [s for p in row.result.at(float(detail or 0)) if (s := METRICS["step_ms"].value(p)) is not None]
    even = ""
    if at is not None and at.verdict is not None:
        even = f"{at.verdict.break_even_length:.2f}"
        if where := crossing_text(row.crossings):
            even += f" · {where.split(' (')[0]}"
        elif at.verdict.can_pay is False:
            even += " · never"
    launches = {point.launch_id for point in row.result.points}
    return ResultRow(
        name=row.result.name,
        tok_s_by_concurrency=tuple(values),
        against_baseline=tuple((int(c.load), _TENDENCIES[c.tendency]) for c in row.cells if c.load == int(c.load)),
        accept_length=sum(lengths) / len(lengths) if lengths else None,
        step_ms=sum(steps) / len(steps) if steps else None,
        breaks_even_at=even,
        launch_id=row.result.points[-1].launch_id or None,
        running=bool(launches & busy),
    )


def _unfair(rows: Sequence[Row]) -> str:
    """Why a row stands without a ratio."""
    for row in rows:
        if not row.comparable:
            first = next(d for d in row.unfair if d.weight == "refuses")
            return f"{row.result.name} is not compared: other {first.what}" + (f" ({first.why})" if first.why else "")
    return ""


def progress_text(view: BenchView) -> str:
    """One line: `demo C=2, repeat 1: 12/27 requests, 812 tok/s, accept 3.1, 20 s left`."""
    where = f" {view.load}" if view.load else ""
    parts = [f"{view.requests_done}/{view.requests} requests"]
    if view.failed:
        parts.append(f"{view.failed} failed")
    if view.tok_s is not None:
        parts.append(f"{view.tok_s:,.0f} tok/s")
    if view.accept_length is not None:
        parts.append(f"accept {view.accept_length:.2f}")
    if view.eta_s is not None:
        parts.append(f"{seconds_text(view.eta_s)} left")
    if view.problem:
        parts.append(view.problem)
    return f"{view.name}{where}: {view.state}, {', '.join(parts)}"


def seconds_text(seconds: float) -> str:
    """`42 s`, `7 min`, `3.2 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
