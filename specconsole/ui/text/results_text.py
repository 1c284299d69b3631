"""Measured results as a table; until there are some, how to get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from specconsole.ui.formatters import fit, row, styled

if TYPE_CHECKING:
    from specconsole.core.views.result import ResultRow, ResultsView

_ARROWS = {1: ("↑", "$success"), -1: ("↓", "$error"), 0: (" ", "")}
_CELL = 8
NAME_CELLS = 16


def title_note(results: ResultsView) -> str:
    """For the pane's title: the workload, and what the last columns belong to."""
    if not results.rows:
        return ""
    parts = [results.workload] if results.workload else []
    if results.detail_concurrency is not None:
        parts.append(f"accept, ms/step, break-even at C={results.detail_concurrency}")
    return " · ".join(parts)


def how_to(width: int, *, can_measure: str) -> list[Content]:
    """What the pane says while nothing is measured; `can_measure` is why it can't be done now, or ""."""
    lines = [styled("nothing measured yet", "$muted")]
    if can_measure:
        lines.append(styled(can_measure, "$muted"))
    else:
        lines.append(row(("press ", "$muted"), ("b", "bold $primary"), (" on a launch that answers", "$muted")))
    lines.append(row(("or  ", "$muted"), "specconsole bench LAUNCH", ("  measures it from a shell", "$muted")))
    return [fit(line, width) for line in lines]


def table(results: ResultsView, width: int, *, first_column: int, compact: bool) -> list[Content]:
    """Header and rows; `first_column` is the first concurrency shown, `compact` leaves the last columns out."""
    details = [] if compact else ["accept", "ms/step", "breaks even at"]
    detail_cells = [8, 9, 18]
    room = width - NAME_CELLS - (0 if compact else sum(detail_cells))
    shown = results.concurrencies[first_column : first_column + max(1, room // _CELL)]
    head = f"{'tok/s':<{NAME_CELLS}}" + "".join(f"{f'C={level}':>{_CELL - 2}}  " for level in shown)
    head += "".join(f"{text:>{cells}}" for text, cells in zip(details, detail_cells, strict=False))
    lines = [fit(styled(head, "$muted"), width)]
    lines += [fit(_row(item, shown, compact), width) for item in results.rows]
    if results.note:
        lines.append(fit(styled(results.note, "$warning"), width))
    return lines


def _row(item: ResultRow, shown: tuple[int, ...], compact: bool) -> Content:
    values = dict(item.tok_s_by_concurrency)
    against = dict(item.against_baseline)
    parts: list[str | tuple[str, str]] = [
        (f"{item.name[: NAME_CELLS - 1]:<{NAME_CELLS}}", "bold" if item.running else "")
    ]
    for level in shown:
        value = values.get(level)
        text = "…" if item.running and level not in values else "–" if value is None else f"{value:,.0f}"
        arrow, style = _ARROWS[against.get(level, 0)]
        parts += [f"{text:>{_CELL - 2}} ", (arrow, style)]
    if not compact:
        accept = "–" if item.accept_length is None else f"{item.accept_length:.2f}"
        step = "–" if item.step_ms is None else f"{item.step_ms:.1f}"
        parts += [f"{accept:>8}{step:>9}{item.breaks_even_at or '–':>18}"]
    return row(*parts)
