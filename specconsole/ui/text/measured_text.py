"""The results screen's lines: the table of all results, and one point taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textual.content import Content

from specconsole.core.measuring.compare import Cell, Row, Table, compare
from specconsole.core.measuring.figures_text import cell_text, load_text, number, point_text
from specconsole.core.measuring.marks import MARKS
from specconsole.core.measuring.metrics import METRICS
from specconsole.core.measuring.request_figures import acceptance_over_time, histogram, outliers, records_of
from specconsole.core.measuring.result import MeasuredPoint, Result
from specconsole.core.measuring.rows import baseline_of, merge_launches, same_workload
from specconsole.core.measuring.series import plots
from specconsole.core.measuring.verdict_text import pays_text, verdict_lines
from specconsole.ui.formatters import bar, fit, row, styled

METRIC_ORDER = (
    "output_tok_s", "decode_tok_s", "accept_length", "step_ms", "ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms",
    "itl_p99_ms", "e2e_p50_ms", "e2e_p99_ms", "request_rate_per_s", "goodput_per_s", "total_tok_s", "running_mean",
)  # fmt: skip
NAME_CELLS = 26
CELL = 18
_STYLES = {"better": "$success", "worse": "$error", "noise": "$muted", "unknown": ""}
_SPARKS = "▁▂▃▄▅▆▇█"


@dataclass(slots=True)
class TableState:
    """What the person chose."""

    metric: int = 0
    row: int = 0
    column: int = 0
    sorted_by: int | None = None
    """The column that rows are sorted by; None: as measured."""
    wanted: str = ""
    """Text that a row's name or note must hold."""
    every_workload: bool = False
    hidden: set[str] = field(default_factory=set)

    @property
    def metric_id(self) -> str:
        return METRIC_ORDER[self.metric % len(METRIC_ORDER)]


def table_of(results: Sequence[Result], state: TableState, pinned: str | None) -> Table:
    """Filtered, sorted, compared; `state`'s row and column are brought inside."""
    chosen = tuple(results) if state.every_workload else same_workload(results)
    rows = merge_launches(chosen)
    baseline = baseline_of(rows, pinned)
    words = state.wanted.lower()
    rows = tuple(
        r
        for r in rows
        if r.result_id not in state.hidden
        and (not words or words in f"{r.name} {r.note} {r.conditions.workload}".lower() or r.result_id == baseline)
    )
    table = compare(rows, METRICS[state.metric_id], baseline_id=baseline)
    if state.sorted_by is not None and state.sorted_by < len(table.loads):
        place = state.sorted_by
        higher = table.metric.better != "lower"

        def key(one: Row) -> float:
            value = one.cells[place].value
            return float("inf") if value is None else -value.mean if higher else value.mean

        table = Table(table.metric, table.loads, table.baseline_id, tuple(sorted(table.rows, key=key)))
    state.row = max(0, min(state.row, len(table.rows) - 1))
    state.column = max(0, min(state.column, len(table.loads) - 1))
    return table


def table_lines(table: Table, state: TableState, width: int) -> list[Content]:
    """Header and rows; the chosen cell stands out by its colours and by the brackets around it."""
    room = max(1, (width - NAME_CELLS) // CELL)
    first = max(0, min(state.column - room + 1, len(table.loads) - room))
    shown = range(first, min(len(table.loads), first + room))
    arrows = {n: "▾" if n == state.sorted_by else "" for n in shown}
    some = table.rows[0].result if table.rows else None
    head = f"{f'{table.metric.label} [{table.metric.unit}]':<{NAME_CELLS}}"
    head += "".join(f"{load_text(table.loads[n], some) + arrows[n]:>{CELL}}" for n in shown)
    lines = [fit(styled(head, "$muted"), width)]
    for place, one in enumerate(table.rows):
        lines.append(fit(_row(one, table, state, shown, chosen=place == state.row), width))
    return lines


def _row(one: Row, table: Table, state: TableState, shown: range, *, chosen: bool) -> Content:
    name = one.result.name + (" ◂ baseline" if one.result.result_id == table.baseline_id else "")
    if one.result.conditions.simulated:
        name = f"SIMULATED {name}"
    name = f"{'▸' if chosen else ' '} {name}"
    parts: list[str | tuple[str, str]] = [(f"{name[: NAME_CELLS - 1]:<{NAME_CELLS}}", "bold" if chosen else "")]
    for n in shown:
        cell = one.cells[n]
        text = cell_text(cell)
        if chosen and n == state.column:
            parts.append((f"{f'[{text}]':>{CELL}}", f"bold {_STYLES[cell.tendency]}".strip()))
        else:
            parts.append((f"{text:>{CELL - 1}} ", _STYLES[cell.tendency]))
    return row(*parts)


def below_lines(table: Table, state: TableState, width: int) -> list[Content]:
    """What is known of the chosen cell: economics, marks, fairness, conditions."""
    if not table.rows:
        return [styled("no row; / changes the filter, u shows hidden rows", "$muted")]
    chosen = table.rows[state.row]
    cell = chosen.cells[state.column] if table.loads else None
    result = chosen.result
    head = f"{result.name}  {result.result_id}  {result.ended}, repeats span {result.launches} start(s) of the server"
    lines = [styled(head, "bold")]
    if result.note:
        lines.append(styled(f"note: {result.note}"))
    if not chosen.comparable:
        why = next(d for d in chosen.unfair if d.weight == "refuses")
        lines.append(styled(f"not compared with the baseline: {why.what} differs. {why.why}", "$warning"))
    if cell is not None:
        lines += [styled(text) for text in verdict_lines(cell)]
        lines += _marks(cell)
    if where := pays_text(chosen):
        lines.append(row("decode is faster ", (where, "bold $success")))
    for one in [d for d in chosen.unfair if d.weight == "warns"][:4]:
        lines.append(styled(f"{one.what} differs from the baseline: {one.a} / {one.b}"[: width * 2], "$warning"))
    c = result.conditions
    facts = [c.engine, c.version or "version unknown", c.host, *c.gpu_names, f"{c.workload} {c.workload_hash}", c.cache]
    lines.append(styled(", ".join(fact for fact in facts if fact), "$muted"))
    lines.append(styled(f"{table.metric.label}: {table.metric.definition}", "$muted"))
    return [fit(line, width) for line in lines]


def _marks(cell: Cell) -> list[Content]:
    return [row((f"{MARKS[m].sign:<3}", "$warning"), MARKS[m].meaning) for m in cell.marks if m in MARKS]


def plot_lines(table: Table, width: int) -> list[Content]:
    """Throughput, decode speed and acceptance by position as bars, a group a plot: no line needs colour to be read."""
    lines: list[Content] = []
    for plot in plots([one.result for one in table.rows], ("throughput", "decode", "acceptance")):
        lines.append(styled(f"{plot.title} [{plot.y_label}]", "bold"))
        most = max(y for line in plot.lines for _, y in line.points) or 1.0
        for x in sorted({x for line in plot.lines for x, _ in line.points}):
            for line in plot.lines:
                y = dict(line.points).get(x)
                if y is not None:
                    label = f"{plot.x_label[:8]} {x:g}"
                    text = f"{label:<12}{line.name[:20]:<21}"
                    lines.append(
                        row((text, "$muted"), (bar(y / most, max(8, width - 48)), "$primary"), f" {number(y)}")
                    )
        lines.append(Content(""))
    return lines or [styled("there is nothing to draw yet", "$muted")]


def point_lines(
    result: Result, point: MeasuredPoint, requests: Sequence[Mapping[str, Any]], width: int
) -> list[Content]:
    """One point: its numbers, where its requests lie, acceptance as it went, what stands out."""
    lines = [styled(f"{result.name}, {load_text(point.load, result)}, repeat {point.repeat + 1}", "bold")]
    lines += [styled(part) for part in point_text(point).split("; ")]
    lines += [row((f"{MARKS[m].sign:<3}", "$warning"), MARKS[m].meaning) for m in point.all_marks if m in MARKS]
    records = records_of(requests)
    if not records:
        return [*lines, styled("its requests are not kept here", "$muted")]
    good = [record for record in records if record.error is None]
    for label, values in (
        ("TTFT", [r.ttft_s for r in good]),
        ("TPOT", [r.tpot_s for r in good]),
        ("E2E", [r.e2e_s for r in good]),
    ):
        known = [value * 1e3 for value in values if value is not None]
        bins = histogram(known, 8)
        if not bins:
            continue
        lines += [Content(""), styled(f"{label} of {len(known)} requests [ms]", "bold")]
        most = max(one.count for one in bins)
        for one in bins:
            span = f"{number(one.low):>8} to {number(one.high):<8}"
            drawn = bar(one.count / most, max(8, width - 30))
            lines.append(row((span, "$muted"), " ", (drawn, "$primary"), f" {one.count}"))
    over_time = acceptance_over_time(records, max(8, min(48, width - 40)))
    if over_time:
        heights = [value for _, value in over_time]
        low, high = min(heights), max(heights)
        drawn = "".join(_SPARKS[round((v - low) / ((high - low) or 1.0) * (len(_SPARKS) - 1))] for v in heights)
        lines += [
            Content(""),
            row(("accept length over time ", "bold"), (drawn, "$primary"), f" {low:.2f} to {high:.2f}"),
        ]
    lines += [Content(""), styled("what stands out", "bold")]
    strange = outliers(records)
    for outlier in strange[:20]:
        record = outlier.record
        lines.append(styled(f"request {record.body} at {record.start_s:.2f} s: {outlier.what}", "$warning"))
    if not strange:
        lines.append(styled("nothing: no failure, none far slower than the rest", "$muted"))
    return lines
