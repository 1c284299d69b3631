"""Every launch so far, over the window: searched as one types, opened, compared, noted on, launched again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from specconsole.core.views.history import HistoryQuery, HistoryRow
from specconsole.errors import SpecconsoleError
from specconsole.ui.formatters import fit, row, styled
from specconsole.ui.text.history_text import DETAIL_LINES, count_text, detail_lines, head_line, table_line
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.services.history_commands import HistoryCommands
    from specconsole.ui.app import ConsoleApp
    from specconsole.ui.desk import Desk

SHOWN = 500
"""Launches that are listed at once, the newest; the filter reaches all."""
LOOK_EVERY_S = 2.0
_KEYS = (
    ("⏎", "open"), ("/", "filter"), ("space", "mark"), ("d", "compare"), ("n", "note"), ("t", "tags"), ("u", "undo"),
    ("R", "relaunch"), ("e", "edit"), ("esc", "leave"),
)  # fmt: skip
_CHANGING = ("note", "tags", "undo", "relaunch", "edit")
_HINTS = {
    "filter": "words: profile, flag, cause, host, tag, note ...",
    "note": "a note that stands with this launch",
    "tags": "best -old puts best on and takes old off",
}


@dataclass(frozen=True, slots=True)
class HistoryChoice:
    """What the person wants of a launch when leaving: `open`, or an action's id."""

    launch_id: str
    action_id: str = "open"


@dataclass(slots=True)
class HistoryState:
    """What the window remembers of the screen while it is open."""

    wanted: str = ""
    marked_id: str = ""
    chosen_id: str = ""
    rows: tuple[HistoryRow, ...] = field(default=())
    more: bool = False


class _Table(TextPane, can_focus=True):
    def __init__(self, state: HistoryState) -> None:
        super().__init__(id="history")
        self.state = state
        self._first = 0

    def place(self) -> int:
        """The chosen row's; 0 when it is not there."""
        ids = [one.launch_id for one in self.state.rows]
        return ids.index(self.state.chosen_id) if self.state.chosen_id in ids else 0

    def build(self, width: int, height: int) -> Sequence[Content]:
        rows = self.state.rows
        room = max(1, height - DETAIL_LINES - 2)
        place = self.place()
        self._first = max(0, min(max(self._first, place - room + 1), place, len(rows) - room))
        lines = [head_line(width)]
        for n, one in enumerate(rows[self._first : self._first + room], self._first):
            marked = one.launch_id == self.state.marked_id
            lines.append(table_line(one, width, chosen=n == place, marked=marked))
        if not rows:
            lines.append(fit(styled("   no launch fits; / changes the filter", "$muted"), width))
        lines += [fit(Content(""), width)] * (height - len(lines) - DETAIL_LINES)
        return [*lines, *detail_lines(rows[place] if rows else None, width)]


class HistoryScreen(ModalScreen[HistoryChoice | None]):
    """Asks `desk.commands.history`; leaves with what is to be done with a launch."""

    DEFAULT_CSS = """
    HistoryScreen { align: center middle; background: $background 60%; }
    HistoryScreen #history-box { width: 98%; height: 96%; border: round $primary; background: $surface;
        border-title-color: $primary; border-title-style: bold; }
    HistoryScreen #history { height: 1fr; }
    HistoryScreen #history-line { display: none; height: 1; border: none; background: $panel; padding: 0 1; }
    HistoryScreen #history-keys { height: auto; width: 1fr; color: $muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", show=False),
        Binding("q", "back", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("home,g", "move(-100000)", show=False),
        Binding("end", "move(100000)", show=False),
        Binding("enter", "choose('open')", show=False),
        Binding("slash", "write('filter')", show=False),
        Binding("n", "write('note')", show=False),
        Binding("t", "write('tags')", show=False),
        Binding("u", "undo", show=False),
        Binding("space", "mark", show=False),
        Binding("d", "compare", show=False),
        Binding("R", "choose('relaunch')", show=False),
        Binding("e", "choose('edit')", show=False),
    ]

    def __init__(self, desk: Desk, state: HistoryState | None = None) -> None:
        super().__init__()
        self.desk = desk
        self.state = state or HistoryState()
        self.table = _Table(self.state)
        self._writing = ""
        self._asked = 0
        self._looks: set[asyncio.Task[None]] = set()

    def compose(self) -> ComposeResult:
        with Vertical(id="history-box"):
            yield self.table
            yield Input(id="history-line")
            parts: list[str | tuple[str, str]] = []
            for key, label in _KEYS:
                if label in _CHANGING and self.desk.commands.read_only:
                    continue
                parts += [(key, "bold $primary"), f" {label}  "]
            yield Static(row(*parts), id="history-keys")

    def on_mount(self) -> None:
        self.table.focus()
        self.look()
        self.set_interval(LOOK_EVERY_S, self.look)

    def on_unmount(self) -> None:
        for look in self._looks:
            look.cancel()

    @property
    def commands(self) -> HistoryCommands:
        assert self.desk.commands.history is not None
        return self.desk.commands.history

    @property
    def _app(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    # ---------------------------------------------------------------- rows

    def look(self) -> None:
        """Asks for the launches that fit; an answer that a newer question has overtaken is dropped."""
        self._asked += 1
        look = asyncio.get_running_loop().create_task(self._take(self._asked), name="history")
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)

    async def _take(self, number: int) -> None:
        try:
            page = await self.commands.page(HistoryQuery(self.state.wanted, limit=SHOWN))
        except SpecconsoleError as error:
            self._app.say(str(error), title="history", severity="error")
            return
        if number == self._asked and self.is_attached:
            self.state.rows, self.state.more = page.rows, page.more
            if self.chosen is not None:
                self.state.chosen_id = self.chosen.launch_id
            self._fresh()

    def _fresh(self) -> None:
        title = count_text(self.state.rows, self.state.wanted, more=self.state.more)
        self.query_one("#history-box").border_title = styled(title)
        self.table.update()

    @property
    def chosen(self) -> HistoryRow | None:
        rows = self.state.rows
        return rows[self.table.place()] if rows else None

    # ---------------------------------------------------------------- keys

    def action_back(self) -> None:
        if self._writing == "filter":
            self.state.wanted = ""
            self.look()
        if self._writing:
            self._stop_writing()
        elif self.state.wanted:
            self.state.wanted = ""
            self.look()
        else:
            self.dismiss(None)

    def action_move(self, steps: int) -> None:
        rows = self.state.rows
        if rows:
            place = max(0, min(self.table.place() + steps, len(rows) - 1))
            self.state.chosen_id = rows[place].launch_id
            self.table.update()

    def action_mark(self) -> None:
        """Marks the chosen launch for comparing; once more takes the mark off."""
        if self.chosen is not None:
            mine = self.chosen.launch_id
            self.state.marked_id = "" if self.state.marked_id == mine else mine
            self.table.update()

    def action_compare(self) -> None:
        chosen, marked = self.chosen, self.state.marked_id
        if chosen is None:
            return
        if not marked or marked == chosen.launch_id:
            self.state.marked_id = chosen.launch_id
            self.table.update()
            self._app.say(f"{chosen.profile} is marked; choose the other one and press d again", title="compare")
            return
        compare(self._app, self.commands, marked, chosen.launch_id)

    def action_choose(self, action_id: str) -> None:
        if self.chosen is not None:
            self.dismiss(HistoryChoice(self.chosen.launch_id, action_id))

    def action_undo(self) -> None:
        if (chosen := self._writable()) is not None:
            self._change(f"undo on {chosen.profile}", lambda: self.commands.undo(chosen.launch_id))

    def _writable(self) -> HistoryRow | None:
        if self.desk.commands.read_only:
            self._app.say("this console is read-only", title="notes", severity="warning")
            return None
        return self.chosen

    def action_write(self, what: str) -> None:
        """Opens the line for a filter, a note or tags."""
        if what != "filter" and self._writable() is None:
            return
        self._writing = what
        line = self.query_one("#history-line", Input)
        line.placeholder = _HINTS[what]
        line.value = self.state.wanted if what == "filter" else ""
        line.display = True
        line.focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if self._writing == "filter" and event.value != self.state.wanted:
            self.state.wanted = event.value.strip()
            self.look()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        what, text, chosen = self._writing, event.value.strip(), self.chosen
        self._stop_writing()
        if what == "filter" or chosen is None or not text:
            return
        launch_id = chosen.launch_id
        if what == "note":
            self._change(f"note on {chosen.profile}", lambda: self.commands.note(launch_id, text))
        else:
            self._change(f"tags of {chosen.profile}", lambda: self.commands.tag_line(launch_id, text))

    def _change(self, name: str, work: Callable[[], Coroutine[Any, Any, str]]) -> None:
        def done(why_not: str) -> None:
            if why_not:
                self._app.say(f"kept here; the launch's folder gets it later: {why_not}", title=name)
            if self.is_attached:
                self.look()

        self._app.errands.start(name, lambda _: work(), done)

    def _stop_writing(self) -> None:
        self._writing = ""
        self.query_one("#history-line", Input).display = False
        self.table.focus()


def compare(app: ConsoleApp, commands: HistoryCommands, left_id: str, right_id: str) -> None:
    """Puts the difference of two launches on the screen as soon as it is known; esc calls it off."""
    from specconsole.ui.screens.difference import DifferenceScreen

    app.errands.start(
        "compare", lambda _: commands.difference(left_id, right_id), lambda found: _show(app, DifferenceScreen(found))
    )


def _show(app: ConsoleApp, screen: ModalScreen[None]) -> None:
    app.push_screen(screen)
