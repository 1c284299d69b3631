"""The results screen's lines: the table of all results, and one point taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from textual.content import Content

from specconsole.core.measuring.compare import Cell, Row, Table, compare
from specconsole.core.measuring.figures_text import cell_text, load_text, number
from specconsole.core.measuring.launch_spread import launch_spread, spread_text
from specconsole.core.measuring.marks import MARKS
from specconsole.core.measuring.metrics import METRICS
from specconsole.core.measuring.result import Result
from specconsole.core.measuring.rows import baseline_of, merge_launches, same_workload
from specconsole.core.measuring.series import plots
from specconsole.core.measuring.verdict_text import left_out_text, pays_text, verdict_lines
from specconsole.ui.formatters import bar, fit, row, styled, wrapped

METRIC_ORDER = (
    "output_tok_s", "decode_tok_s", "accept_length", "step_ms", "ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms",
    "itl_p99_ms", "e2e_p50_ms", "e2e_p99_ms", "request_rate_per_s", "goodput_per_s", "total_tok_s", "running_mean",
)  # fmt: skip
NARROW = 100
"""Below this many cells of width the columns are set closer."""
_STYLES = {"better": "$success", "worse": "$error", "noise": "$muted", "unknown": ""}
GROUPS: tuple[tuple[str, Callable[[Result], str]], ...] = (
    ("", lambda r: ""),
    ("profile", lambda r: r.name),
    ("engine", lambda r: r.conditions.engine),
    ("model", lambda r: r.conditions.model or "unknown"),
    ("draft", lambda r: r.conditions.draft_model or ("none" if r.conditions.speculative is False else "unknown")),
    ("host", lambda r: r.conditions.host or "unknown"),
    ("workload", lambda r: r.conditions.workload),
)
"""What rows can be put together by."""


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
    group: int = 0
    """Place in `GROUPS`; 0: not grouped."""
    hidden: frozenset[str] = field(default_factory=frozenset)

    @property
    def grouped_by(self) -> str:
        return GROUPS[self.group][0]

    def group_of(self, result: Result) -> str:
        """The heading that a row stands under; "" without groups."""
        return GROUPS[self.group][1](result)

    @property
    def metric_id(self) -> str:
        return METRIC_ORDER[self.metric % len(METRIC_ORDER)]


def table_of(results: Sequence[Result], state: TableState, pinned: str | None) -> Table:
    """Filtered, sorted, compared; `state`'s row and column are brought inside."""
    seen = [result for result in results if result.result_id not in state.hidden]
    chosen = tuple(seen) if state.every_workload else same_workload(seen)
    rows = merge_launches(chosen)
    baseline = baseline_of(rows, pinned, results)
    words = state.wanted.lower()
    rows = tuple(r for r in rows if not words or words in searched(r) or r.result_id == baseline)
    table = compare(rows, METRICS[state.metric_id], baseline_id=baseline)
    ordered = list(table.rows)
    if state.sorted_by is not None and state.sorted_by < len(table.loads):
        place = state.sorted_by
        higher = table.metric.better != "lower"

        def key(one: Row) -> float:
            value = one.cells[place].value
            return float("inf") if value is None else -value.mean if higher else value.mean

        ordered.sort(key=key)
    if state.group:
        # Sorting is stable: within a group the order stays.
        ordered.sort(key=lambda one: state.group_of(one.result))
    table = Table(table.metric, table.loads, table.baseline_id, tuple(ordered))
    state.row = max(0, min(state.row, len(table.rows) - 1))
    state.column = max(0, min(state.column, len(table.loads) - 1))
    return table


def searched(result: Result) -> str:
    """What a filter looks into, in lower case."""
    c = result.conditions
    words = (result.name, result.note, result.result_id, c.workload, c.engine, c.model, c.draft_model, c.host)
    return " ".join(word for word in words if word).lower()


def table_lines(table: Table, state: TableState, width: int) -> list[Content]:
    """Header and rows; the chosen cell stands out by its colours and by the brackets around it."""
    name_cells, cell = (26, 18) if width >= NARROW else (24, 16)
    room = max(1, (width - name_cells) // cell)
    first = max(0, min(state.column - room + 1, len(table.loads) - room))
    shown = range(first, min(len(table.loads), first + room))
    arrows = {n: "▾" if n == state.sorted_by else "" for n in shown}
    some = table.rows[0].result if table.rows else None
    head = f"{f'{table.metric.label} [{table.metric.unit}]'[: name_cells - 1]:<{name_cells}}"
    head += "".join(f"{load_text(table.loads[n], some) + arrows[n]:>{cell - 1}} " for n in shown)
    if shown and (first > 0 or shown[-1] + 1 < len(table.loads)):
        head = f"{head.rstrip()}  {first + 1}-{shown[-1] + 1} of {len(table.loads)}"
    lines = [fit(styled(head, "$muted"), width)]
    heading = ""
    for place, one in enumerate(table.rows):
        label = state.group_of(one.result)
        if state.group and label != heading:
            heading = label
            lines.append(fit(row((f"{state.grouped_by} ", "$muted"), (label, "bold $accent")), width))
        lines.append(fit(_row(one, table, state, shown, (name_cells, cell), chosen=place == state.row), width))
    return lines


def _row(one: Row, table: Table, state: TableState, shown: range, cells: tuple[int, int], *, chosen: bool) -> Content:
    name_cells, width = cells
    name = one.result.name + (" ◂ baseline" if one.result.result_id == table.baseline_id else "")
    if one.result.conditions.simulated:
        name = f"SIMULATED {name}"
    name = f"{'▸' if chosen else ' '} {name}"
    parts: list[str | tuple[str, str]] = [(f"{name[: name_cells - 1]:<{name_cells}}", "bold" if chosen else "")]
    for n in shown:
        cell = one.cells[n]
        text = cell_text(cell)
        if chosen and n == state.column:
            parts.append((f"{f'[{text}]':>{width}}", f"bold {_STYLES[cell.tendency]}".strip()))
        else:
            parts.append((f"{text:>{width - 1}} ", _STYLES[cell.tendency]))
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
        lines += wrapped(f"note: {result.note}", width)
    if not chosen.comparable:
        why = next(d for d in chosen.unfair if d.weight == "refuses")
        lines += wrapped(f"not compared with the baseline: {why.what} differs. {why.why}", width, "$warning")
    if cell is not None:
        said = verdict_lines(cell)
        if not said and table.baseline_id not in (None, result.result_id) and chosen.comparable:
            plain = next(one for one in table.rows if one.result.result_id == table.baseline_id)
            other = next((one for one in plain.cells if one.load == cell.load), None)
            said = [text for text in (left_out_text(cell, other),) if text]
        lines += [line for text in said for line in wrapped(text, width)]
        lines += _marks(cell)
        told = spread_text(launch_spread(result.at(cell.load), table.metric))
        if told:
            lines += wrapped(told, width, "$muted")
    if where := pays_text(chosen):
        lines.append(row("decode is faster ", (where, "bold $success")))
    for one in [d for d in chosen.unfair if d.weight == "warns"][:4]:
        lines += wrapped(f"{one.what} differs from the baseline: {one.a} / {one.b}"[: width * 2], width, "$warning")
    c = result.conditions
    facts = [c.engine, c.version or "version unknown", c.host, *c.gpu_names, f"{c.workload} {c.workload_hash}", c.cache]
    lines += wrapped(", ".join(fact for fact in facts if fact), width, "$muted")
    lines += wrapped(f"{table.metric.label}: {table.metric.definition}", width, "$muted")
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
