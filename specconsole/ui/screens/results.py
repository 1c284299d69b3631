"""Every result, over the window: a table to sort, filter and compare in, and a point taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from specconsole.core.measuring.compare import Table
from specconsole.core.measuring.result import MeasuredPoint, Result
from specconsole.ui.formatters import row, styled
from specconsole.ui.text.measured_text import (
    GROUPS,
    METRIC_ORDER,
    TableState,
    below_lines,
    plot_lines,
    table_lines,
    table_of,
)
from specconsole.ui.text.opened_point import OpenPoint, point_lines
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.services.bench_log import LogPart
    from specconsole.ui.app import ConsoleApp
    from specconsole.ui.desk import Desk

_KEYS = {
    "table": (
        ("↑↓←→", "cell"), ("m", "metric"), ("p", "baseline"), ("s", "sort"), ("g", "group"), ("/", "filter"),
        ("x", "hide"), ("u", "unhide"), ("w", "all workloads"), ("⏎", "requests"), ("v", "plots"), ("n", "note"),
        ("esc", "leave"),
    ),
    "point": (
        ("←→", "repeat"), ("↑↓", "outlier"), ("⏎", "the log then"), ("o", "open the log there"), ("space", "on"),
        ("pgup", "back"), ("esc", "table"),
    ),
    "plots": (("↑↓", "scroll"), ("v", "table"), ("esc", "table")),
}  # fmt: skip


class _Lines(TextPane, can_focus=True):
    """Lines that a function makes, scrolled by `top`."""

    def __init__(self, make: Callable[[int], Sequence[Content]]) -> None:
        super().__init__(id="measured")
        self.make = make
        self.top = 0

    def build(self, width: int, height: int) -> Sequence[Content]:
        lines = list(self.make(width))
        self.top = max(0, min(self.top, len(lines) - height))
        return lines[self.top :]


class ResultsScreen(ModalScreen[tuple[str, int] | None]):
    """Reads the board's results; asks `desk.commands.measuring` for what is not there.

    Gives (launch, line of its log) when the person wants to go there.
    """

    DEFAULT_CSS = """
    ResultsScreen { align: center middle; background: $background 60%; }
    ResultsScreen #results-box { width: 98%; height: 96%; border: round $primary; background: $surface;
        border-title-color: $primary; border-title-style: bold; }
    ResultsScreen #measured { height: 1fr; }
    ResultsScreen #results-line { display: none; height: 3; border: tall $primary; background: $background; }
    ResultsScreen #results-keys { height: auto; width: 1fr; color: $muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", show=False),
        Binding("down,j", "move(1, 0)", show=False),
        Binding("up,k", "move(-1, 0)", show=False),
        Binding("right,l", "move(0, 1)", show=False),
        Binding("left,h", "move(0, -1)", show=False),
        Binding("pagedown,space", "page(8)", show=False),
        Binding("pageup", "page(-8)", show=False),
        Binding("m", "metric(1)", show=False),
        Binding("M", "metric(-1)", show=False),
        Binding("p", "pin", show=False),
        Binding("s", "sort", show=False),
        Binding("g", "group", show=False),
        Binding("o", "log", show=False),
        Binding("x", "hide", show=False),
        Binding("u", "unhide", show=False),
        Binding("w", "workloads", show=False),
        Binding("v", "plots", show=False),
        Binding("n", "write('note')", show=False),
        Binding("slash", "write('filter')", show=False),
        Binding("enter", "open", show=False),
    ]

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self.state = TableState(hidden=desk.board.hidden_results)
        self._table = table_of(desk.board.measured, self.state, desk.board.baseline_id)
        self._seen: tuple[object, ...] = ()
        self._lines = _Lines(self._make)
        self._view = "table"
        """`table`, `plots`, or `point`."""
        self._point: OpenPoint | None = None
        self._writing = ""

    def compose(self) -> ComposeResult:
        with Vertical(id="results-box"):
            yield self._lines
            yield Input(id="results-line")
            yield Static(self._keys(), id="results-keys")

    def _keys(self) -> Content:
        parts: list[str | tuple[str, str]] = []
        for key, label in _KEYS[self._view]:
            if label == "note" and self.desk.commands.read_only:
                continue
            parts += [(key, "bold $primary"), f" {label}  "]
        return row(*parts)

    def on_mount(self) -> None:
        self._lines.focus()
        self._retitle()
        self.set_interval(0.5, self._take)

    def _take(self) -> None:
        """The board may have new results."""
        now = (id(self.desk.board.measured), self.desk.board.baseline_id, self.desk.board.hidden_results)
        if now != self._seen:
            self._seen = now
            self._fresh()

    def _fresh(self) -> None:
        self.state.hidden = self.desk.board.hidden_results
        self._table = table_of(self.desk.board.measured, self.state, self.desk.board.baseline_id)
        self._retitle()
        self._lines.update()

    def _retitle(self) -> None:
        metric = self._table.metric
        hidden = f", {len(self.state.hidden)} hidden" if self.state.hidden else ""
        wanted = f", with {self.state.wanted!r}" if self.state.wanted else ""
        grouped = f", by {self.state.grouped_by}" if self.state.group else ""
        title = f"results: {metric.label} [{metric.unit}]{grouped}{wanted}{hidden}"
        if self._view == "point" and self._point is not None:
            title = f"requests of {self._point.result.name}"
        self.query_one("#results-box").border_title = styled(title)

    def _make(self, width: int) -> Sequence[Content]:
        if self._view == "point" and self._point is not None:
            return point_lines(self._point, width)
        if self._view == "plots":
            return plot_lines(self._table, width)
        above = table_lines(self._table, self.state, width)
        return [*above, Content(""), *below_lines(self._table, self.state, width)]

    def _show(self, view: str) -> None:
        self._view = view
        self._lines.top = 0
        self.query_one("#results-keys", Static).update(self._keys())
        self._retitle()
        self._lines.update()

    # Keys

    def action_back(self) -> None:
        if self._writing:
            self._stop_writing()
        elif self._view != "table":
            self._show("table")
        else:
            self.dismiss(None)

    def action_move(self, rows: int, columns: int) -> None:
        if self._view == "point" and self._point is not None:
            self._move_in_point(self._point, rows, columns)
            return
        if self._view != "table":
            self.action_page(rows)
            return
        self.state.row += rows
        self.state.column += columns
        self._fresh()

    def _move_in_point(self, opened: OpenPoint, rows: int, columns: int) -> None:
        if columns and 0 <= opened.place + columns < len(opened.repeats):
            opened.place += columns
            opened.take(())
            self._ask_requests(opened)
        elif rows and not opened.strange:
            self.action_page(rows)
        else:
            opened.choose(rows)
        self._lines.update()

    def action_page(self, lines: int) -> None:
        self._lines.top = max(0, self._lines.top + lines)
        self._lines.update()

    def action_metric(self, step: int) -> None:
        self.state.metric = (self.state.metric + step) % len(METRIC_ORDER)
        self._fresh()

    def action_sort(self) -> None:
        self.state.sorted_by = None if self.state.sorted_by == self.state.column else self.state.column
        self._fresh()

    def action_workloads(self) -> None:
        self.state.every_workload = not self.state.every_workload
        self._fresh()

    def action_plots(self) -> None:
        self._show("table" if self._view == "plots" else "plots")

    def action_group(self) -> None:
        self.state.group = (self.state.group + 1) % len(GROUPS)
        self._fresh()

    def action_hide(self) -> None:
        """The row goes with all results that went into it; what is measured later shows again."""
        chosen = self._chosen()
        if chosen is not None:
            members = [r for r in self.desk.board.measured if any(same(a, b) for a in r.points for b in chosen.points)]
            parts = {result.result_id for result in members}
            self._hide(self.state.hidden | parts)

    def action_unhide(self) -> None:
        self._hide(frozenset())

    def _hide(self, result_ids: frozenset[str]) -> None:
        measuring = self.desk.commands.measuring
        if measuring is not None:
            self._app.errands.start("hide", lambda _: measuring.hide(result_ids), lambda _: self._fresh())

    def action_pin(self) -> None:
        chosen, measuring = self._chosen(), self.desk.commands.measuring
        if chosen is None or measuring is None:
            return
        pinned = self.desk.board.baseline_id is not None and self._table.baseline_id == chosen.result_id
        wanted = None if pinned else chosen.result_id
        self._app.errands.start("baseline", lambda _: measuring.pin(wanted), lambda _: self._fresh())

    def action_open(self) -> None:
        """The chosen cell's requests, of several repeats the slowest one's first; there, the log of an outlier."""
        if self._view == "point" and self._point is not None:
            self._ask_log(self._point)
            return
        chosen = self._chosen()
        if self._view != "table" or chosen is None or not self._table.loads:
            return
        repeats = chosen.at(self._table.loads[self.state.column])
        if not repeats:
            return
        slowest = min(range(len(repeats)), key=lambda n: repeats[n].metrics.output_tok_s or 0.0)
        self._point = OpenPoint(chosen, repeats, slowest)
        self._ask_requests(self._point)

    def _ask_requests(self, opened: OpenPoint) -> None:
        measuring = self.desk.commands.measuring
        if measuring is None:
            return
        point = opened.point
        owner = next((r for r in self.desk.board.measured if any(same(p, point) for p in r.points)), opened.result)
        index = next((n for n, p in enumerate(owner.points) if same(p, point)), 0)

        def came(requests: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
            # Points are numbered by their place in the plan; those that measured nothing have no record.
            known = sorted(requests)
            if self._point is opened and opened.point is point:
                opened.take(requests[known[index]] if index < len(known) else ())
                self._show("point")

        self._app.errands.start("requests", lambda _: measuring.requests(owner.result_id), came)

    def _ask_log(self, opened: OpenPoint) -> None:
        measuring, outlier = self.desk.commands.measuring, opened.outlier
        if measuring is None or outlier is None:
            return
        record, launch_id = outlier.record, opened.point.launch_id
        start, stop = record.log_from, record.log_to
        if start is None or stop is None:
            self._app.say("the server's log was not at hand when this was measured")
            return

        def came(part: LogPart) -> None:
            if opened.outlier is outlier:
                opened.log_lines, opened.log_first_line, opened.log_cut = part.lines, part.first_line, part.cut
                self._lines.update()

        self._app.errands.start("log", lambda _: measuring.log_part(launch_id, start, stop), came)

    def action_log(self) -> None:
        """Leaves for the log pane, at the first line that is shown."""
        opened = self._point
        if self._view == "point" and opened is not None and opened.log_first_line is not None:
            self.dismiss((opened.point.launch_id, opened.log_first_line))

    def action_write(self, what: str) -> None:
        """Opens the line for a filter or a note."""
        if what == "note" and (self._chosen() is None or self.desk.commands.read_only):
            return
        self._writing = what
        field = self.query_one("#results-line", Input)
        field.value = self.state.wanted if what == "filter" else ""
        field.placeholder = "rows whose name or note holds this" if what == "filter" else "a note that stands with it"
        field.display = True
        field.focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        what, text = self._writing, event.value.strip()
        self._stop_writing()
        chosen, measuring = self._chosen(), self.desk.commands.measuring
        if what == "filter":
            self.state.wanted = text
            self._fresh()
        elif text and chosen is not None and measuring is not None:
            self._app.errands.start("note", lambda _: measuring.note(chosen.result_id, text))

    def _stop_writing(self) -> None:
        self._writing = ""
        self.query_one("#results-line", Input).display = False
        self._lines.focus()

    def _chosen(self) -> Result | None:
        table: Table = self._table
        return table.rows[self.state.row].result if table.rows else None

    @property
    def _app(self) -> ConsoleApp:
        from typing import cast

        return cast("ConsoleApp", self.app)


def same(a: MeasuredPoint, b: MeasuredPoint) -> bool:
    """Whether two are one point: a merged row numbers its repeats anew."""
    return a.at_s == b.at_s and a.load == b.load and a.launch_id == b.launch_id
