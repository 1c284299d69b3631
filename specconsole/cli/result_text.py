"""Results for a terminal, for a pipe, and as JSON (schemas: docs/json.md)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from specconsole.core.measuring.compare import Cell, Row, Table, compare
from specconsole.core.measuring.figures_text import cell_text, load_text, point_text
from specconsole.core.measuring.marks import MARKS
from specconsole.core.measuring.metrics import METRICS, PROBE, find_metric, probe_names
from specconsole.core.measuring.verdict_text import left_out_text, pays_text, verdict_lines
from specconsole.errors import BadInputError

if TYPE_CHECKING:
    from specconsole.core.measuring.result import Result

SCHEMA = 1


def result_json(result: Result) -> dict[str, Any]:
    """The object `result` of docs/json.md."""
    shape = asdict(result)
    for raw, point in zip(shape["points"], result.points, strict=True):
        raw["marks"] = list(point.all_marks)
        raw["values"] = {key: metric.value(point) for key, metric in METRICS.items()}
        raw["values"] |= {PROBE + name: value for name, value in point.probes.items()}
    return {"schema": SCHEMA, **shape}


def comparison(rows: Sequence[Result], metric_id: str, baseline_id: str | None) -> Table:
    metric = find_metric(metric_id, rows)
    if metric is None:
        known = ", ".join(PROBE + name for name in probe_names(rows)) or "no result here has probes"
        raise BadInputError(f"--metric can't be {metric_id}", try_=known)
    return compare(rows, metric, baseline_id=baseline_id)


def table_text(rows: Sequence[Result], metric_id: str, baseline_id: str | None) -> list[str]:
    """The table, the economics below it, and what its marks mean."""
    table = comparison(rows, metric_id, baseline_id)
    if not table.rows:
        return ["nothing was measured"]
    metric = table.metric
    head = [f"{metric.label} [{metric.unit}]", *(load_text(load, rows[0]) for load in table.loads)]
    body = [[_name(row, table), *(cell_text(cell) for cell in row.cells)] for row in table.rows]
    lines = _columns([head, *body])
    for row in table.rows:
        lines += _economics(row, table)
    marks = dict.fromkeys(mark for row in table.rows for cell in row.cells for mark in cell.marks)
    lines += [f"  {MARKS[m].sign} {MARKS[m].meaning}" for m in marks if m in MARKS]
    lines += [f"  {text}" for text in _unfair(table)]
    return lines


def _name(row: Row, table: Table) -> str:
    name = row.result.name
    if row.result.conditions.simulated:
        name += " SIMULATED"
    return f"{name} (baseline)" if row.result.result_id == table.baseline_id else name


def _economics(row: Row, table: Table) -> list[str]:
    """A line a load: accept length, step, break-even, ceiling, speed-ups; then where it pays."""
    plain = next((other for other in table.rows if other.result.result_id == table.baseline_id), None)
    if plain is None or plain is row or not row.comparable or row.result.conditions.speculative is False:
        return []
    lines = ["", f"{row.result.name} against the baseline:"]
    head = ["", "accept", "ms/step", "breaks even at", "ceiling", "decode", "end to end", ""]
    body = [head]
    for cell in row.cells:
        verdict = cell.verdict
        if verdict is None:
            why = left_out_text(cell, next((c for c in plain.cells if c.load == cell.load), None))
            body.append([load_text(cell.load, row.result), *["–"] * 6, why])
            continue
        noise = "" if cell.tendency != "noise" else "≈ within noise"
        word = "no draft can pay here" if verdict.can_pay is False else "pays" if verdict.pays else "does not pay"
        body.append(
            [
                load_text(cell.load, row.result), f"{verdict.accept_length:.2f}", f"{verdict.step_time_s * 1e3:.2f}",
                f"{verdict.break_even_length:.2f}", str(verdict.ceiling or "–"), f"{verdict.decode_speed_up:.2f}x",
                "–" if cell.end_to_end_speed_up is None else f"{cell.end_to_end_speed_up:.2f}x", noise or word,
            ]
        )  # fmt: skip
    lines += _columns(body)
    if where := pays_text(row):
        lines.append(f"decode is faster {where if where.startswith('at') else 'at ' + where}")
    return lines


def _unfair(table: Table) -> list[str]:
    found: list[str] = []
    for row in table.rows:
        for one in row.unfair:
            if one.weight == "refuses":
                found.append(
                    f"{row.result.name} is not compared: {one.what} differs ({one.why or f'{one.a} / {one.b}'})"
                )
            elif one.weight == "warns":
                found.append(f"{row.result.name}: {one.what} differs: {_short(one.a)} / {_short(one.b)}")
            elif "one start" in one.what:
                found.append(f"{one.what}: {one.why}")
    return list(dict.fromkeys(found))


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return [
        "  ".join(
            [f"{row[0]:<{widths[0]}}", *(f"{text:>{w}}" for text, w in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()
        for row in rows
    ]


def list_text(results: Sequence[Result]) -> list[str]:
    """A line a result, the newest last."""
    if not results:
        return ["nothing measured yet (specconsole bench LAUNCH)"]
    body = [["id", "when", "of", "workload", "loads", "points", "ended", ""]]
    for r in results:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(r.started_at_s))
        loads = ",".join(f"{load:g}" for load in r.loads)
        notes = " ".join(part for part in (r.imported_from and f"[{r.imported_from}]", r.note) if part)
        body.append([r.result_id, when, r.name, r.conditions.workload, loads, str(len(r.points)), r.ended, notes])
    widths = [max(len(row[n]) for row in body) for n in range(len(body[0]))]
    return ["  ".join(f"{text:<{w}}" for text, w in zip(row, widths, strict=True)).rstrip() for row in body]


def show_text(result: Result, cells: Sequence[Cell]) -> list[str]:
    """Everything about one result."""
    c = result.conditions
    lines = [
        f"{result.result_id}  {result.name}  {result.ended}",
        f"  workload {c.workload} ({c.workload_hash}), cache: {c.cache}, sampling {dict(c.sampling)}",
        f"  {c.engine} {c.version or 'of unknown version'} on {c.host or '?'}"
        + (f", {', '.join(c.gpu_names)}" if c.gpu_names else "")
        + (f"; client on {c.client_host}" if c.client_host else "")
        + ("; through the tunnel" if c.through_tunnel else ""),
        f"  model {c.model or '?'}" + (f", draft {c.draft_model}" if c.draft_model else "")
        + (f", {c.num_steps} draft steps" if c.num_steps else "")
        + (f"; SIMULATED ({c.simulated})" if c.simulated else ""),
        f"  repeats span {result.launches} start{'s' if result.launches != 1 else ''} of the server",
    ]  # fmt: skip
    if c.command:
        lines.append(f"  $ {c.command}")
    if result.note:
        lines.append(f"  note: {result.note}")
    for load in result.loads:
        lines += ["", f"{load_text(load, result)}:"]
        for point in result.at(load):
            lines.append(f"  repeat {point.repeat + 1}: {point_text(point)}")
            lines += [f"    {MARKS[m].sign} {MARKS[m].meaning}" for m in point.all_marks if m in MARKS]
        for cell in cells:
            if cell.load == load:
                lines += [f"  {text}" for text in verdict_lines(cell)]
    return lines
