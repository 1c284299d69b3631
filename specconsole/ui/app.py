"""The window's application: themes, the tick, notifications, what is remembered. Services live outside of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events, on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.theme import Theme

from specconsole.ui.driver import HangUpDriver
from specconsole.ui.errands import Errands
from specconsole.ui.formatters import safe, safe_lines
from specconsole.ui.keymap import ACTIONS, Action
from specconsole.ui.memory import restore, snapshot
from specconsole.ui.notices import Notices
from specconsole.ui.questions import Questions
from specconsole.ui.screens.console import ConsoleScreen
from specconsole.ui.terminal import POP_TITLE, PUSH_TITLE, clipboard_sequence, on_end_signals, title_sequence
from specconsole.ui.theme_files import DEFAULT_THEME, VARIABLE_DEFAULTS
from specconsole.ui.typed_ahead import Lap, TypedAhead
from specconsole.ui.window_state import WindowState

if TYPE_CHECKING:
    from specconsole.errors import ConsentNeededError
    from specconsole.services.board import Board
    from specconsole.services.commands import Commands, LaunchOrder
    from specconsole.ui.desk import Desk

TICK_S = 0.2
"""The board is sampled five times a second; nothing changes on the screen more often."""
STATE_EVERY_TICKS = 50
Severity = Literal["information", "warning", "error"]


class ConsoleApp(App[None]):
    """`desk` holds the board and the commands; `themes`, `actions` and `state` are read beforehand.

    `more_themes` is called in a thread after the first paint: all themes there are, and what is wrong with others.
    `save` is called in a thread with the state when it changed; whoever runs the app saves `state` at the end.
    """

    TITLE = "specconsole"
    # Read with the module, before any loop runs.
    CSS = (Path(__file__).parent / "screens" / "console.tcss").read_text("utf-8")
    # Ours is opened by an action of the key table.
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "screen.act('copy')", show=False),
        Binding("ctrl+q", "quit", show=False, priority=True),
    ]

    def __init__(
        self,
        desk: Desk,
        themes: Sequence[Theme],
        *,
        actions: Sequence[Action] = ACTIONS,
        state: WindowState | None = None,
        save: Callable[[WindowState], None] | None = None,
        more_themes: Callable[[], tuple[Sequence[Theme], Sequence[str]]] | None = None,
        welcome: str = "",
    ) -> None:
        # Before the stylesheet is read, which uses the themes' own variables.
        self._own_themes = {theme.name: theme for theme in themes}
        self.desk = desk
        self._actions = actions
        self.state = state or WindowState()
        self._save = save
        self._more_themes = more_themes
        self._welcome = welcome
        self._first_order: LaunchOrder | None = None
        self.late_errands: list[str] = []
        """Names of what was called off because the window was left before it had ended."""
        self.painted = asyncio.Event()
        """Set with the first paint: what takes long to start may begin."""
        super().__init__(driver_class=HangUpDriver)
        for theme in themes:
            self.register_theme(theme)
        self._begin_with_theme(self.state.theme if self.state.theme in self.available_themes else DEFAULT_THEME)
        self.errands = Errands(self._say, self._ask_consent)
        self.screen_of_all = ConsoleScreen(desk, actions)
        restore(self.screen_of_all, self.state)
        self._saving: asyncio.Future[None] | None = None
        self._notices = Notices(desk.board, self._say, self.bell)
        self._board_version = -1
        self._ticks = 0
        self._last_second = -1
        self._titled = ""
        self._questions = Questions(self)
        self._ahead = TypedAhead(self._has_focus, self._give_key, time.monotonic)
        self._faults: set[str] = set()

    # Themes

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(VARIABLE_DEFAULTS)

    def _begin_with_theme(self, name: str) -> None:
        """Without the reactive's watcher: that would have the whole stylesheet read twice before the first paint."""
        if name not in self.available_themes:
            return
        self.set_reactive(App.theme, name)
        self.update_classes(
            {f"-theme-{name}": True, "-dark-mode": self.current_theme.dark, "-light-mode": not self.current_theme.dark},
            update=False,
        )
        self.stylesheet.set_variables(self.get_css_variables())

    async def _read_more_themes(self) -> None:
        if self._more_themes is None:
            return
        themes, problems = await asyncio.to_thread(self._more_themes)
        for theme in themes:
            self.register_theme(theme)
        self._own_themes |= {theme.name: theme for theme in themes}
        for problem in problems:
            self._say(problem, "configuration", "warning")

    def theme_names(self) -> list[str]:
        """Ours first, then Textual's own."""
        own = sorted(self._own_themes)
        return [*own, *sorted(name for name in self.available_themes if name not in self._own_themes)]

    # Life

    def get_default_screen(self) -> Screen[None]:
        return self.screen_of_all

    def on_mount(self) -> None:
        on_end_signals(self.exit)
        self._write_terminal(PUSH_TITLE)
        self.set_interval(TICK_S, self.tick)
        if self._welcome:
            self.say(self._welcome, title="specconsole", timeout=15)
        self.call_after_refresh(self._first_paint)

    def _first_paint(self) -> None:
        if not self.screen_of_all.log_pane.search_line.is_attached:
            # On a loaded machine a refresh can come before the last pane stands.
            self.call_after_refresh(self._first_paint)
            return
        self.painted.set()
        self.screen_of_all.log_pane.search_line.make_field()
        self._reading_themes = asyncio.get_running_loop().create_task(self._read_more_themes(), name="themes")

    def on_unmount(self) -> None:
        self.remember()
        self._write_terminal(POP_TITLE)
        self.screen_of_all.log_pane.close()

    def connect(self, board: Board, commands: Commands, hosts: Iterable[str] = ()) -> None:
        """The services stand: from now on their board and commands. On `hosts` nobody has looked for launches yet."""
        self.desk.board, self.desk.commands = board, commands
        self.desk.starting, self.desk.unseen = False, set(hosts)
        self._notices.turn_to(board)
        self._board_version = -1
        if self._first_order is not None:
            self._place(self._first_order)
            self._first_order = None

    def looked_on(self, host: str) -> None:
        """The launches of a host are on the board."""
        self.desk.unseen.discard(host)
        self._board_version = -1

    def order_first(self, order: LaunchOrder) -> None:
        """Places this order as soon as the services stand."""
        self._first_order = order

    def _place(self, order: LaunchOrder) -> None:
        def placed(launch_id: str) -> None:
            self.desk.select(launch_id)
            self.screen_of_all.refresh_facts()

        self.errands.start(f"launch {order.profile}", lambda _: self.desk.commands.launch(order), placed)

    def tick(self) -> None:
        """Samples the board; repaints what differs. Cheap when nothing changed."""
        self._ticks += 1
        self._ahead.look()
        try:
            self._take_in()
        except Exception as error:  # noqa: BLE001  # whatever one view holds, the others and the keys go on
            self.fault("what is shown", error)

    def _take_in(self) -> None:
        board, screen = self.desk.board, self.screen_of_all
        second = int(self.desk.wall_s())
        if board.version != self._board_version:
            self._board_version = board.version
            screen.refresh_facts()
            self._notices.take()
            self._questions.look()
            self._update_title()
        else:
            screen.refresh_log()
            if second != self._last_second:
                screen.refresh_clock()
                screen.footer.update()
        if second != self._last_second:
            self._last_second = second
            screen.errands_line.show(self.errands.progress)
        if self._ticks % STATE_EVERY_TICKS == 0:
            self.remember()

    # Telling the person

    def say(self, text: str, *, title: str = "", severity: Severity = "information", timeout: float = 6.0) -> None:
        """A toast; the text is data, never markup."""
        self.notify(safe_lines(text), title=safe(title), severity=severity, timeout=timeout, markup=False)

    def _say(self, text: str, title: str, severity: str) -> None:
        level: Severity = "error" if severity == "error" else "warning" if severity == "warning" else "information"
        self.say(text, title=title, severity=level, timeout=12.0 if level != "information" else 6.0)

    def _ask_consent(self, error: ConsentNeededError, again: Callable[[], None]) -> None:
        """A key would go where others see it: the person says whether it may."""
        from specconsole.ui.forms.consent import ask_consent

        ask_consent(self, error, again)

    def copy_text(self, text: str) -> None:
        """To the terminal's clipboard, because the person asked."""
        sequence, cut = clipboard_sequence(text)
        self._clipboard = text
        self._write_terminal(sequence)
        lines = text.count("\n") + 1
        note = " (cut: terminals take 75 kB)" if cut else ""
        self.say(f"{lines} line{'s' if lines > 1 else ''} to the terminal's clipboard{note}", timeout=3)

    def copy_to_clipboard(self, text: str) -> None:
        """What Textual's own inputs copy goes the same way."""
        self.copy_text(text)

    def _update_title(self) -> None:
        title = str(self.screen_of_all.title_content())
        if title != self._titled:
            self._titled = title
            self._write_terminal(title_sequence(title))

    def _write_terminal(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    async def on_event(self, event: events.Event) -> None:
        """Lets keys in one by one. Leaving is never held up."""
        if not isinstance(event, events.Key) or event.is_forwarded or event.key == "ctrl+q":
            await super().on_event(event)
        elif not self._ahead.holds(event):
            await self._let_in(event)

    async def _let_in(self, key: events.Key) -> None:
        await super().on_event(key)
        self._ahead.went_in()

    def _has_focus(self) -> MessagePump:
        return (self.focused or self.screen) if self._screen_stack else self

    def _give_key(self, key: events.Key) -> None:
        self.call_next(self._let_in, key)

    @on(Lap)
    def _lap(self, lap: Lap) -> None:
        self._ahead.came_back(lap.number)

    def fault(self, where: str, error: Exception) -> None:
        """Says a fault of ours once; the window goes on."""
        text = f"{type(error).__name__}: {error}"
        if (key := f"{where} {text}") not in self._faults:
            self._faults.add(key)
            self.log.error(key, exc_info=True)
            self.say(f"{text}\nthe window goes on; please report this", title=f"a fault in {where}",
                     severity="error", timeout=20)  # fmt: skip

    def on_key(self, event: events.Key) -> None:
        """Keys typed ahead. Textual gives a key to what had the focus when it came; a field that got the focus since
        takes its own keys, so a letter that bubbles up to here while a field is in focus was meant for that field."""
        from textual.widgets import Input

        field = self.focused
        if isinstance(field, Input) and event.is_printable and event.character:
            event.prevent_default()
            field.insert_text_at_cursor(event.character)

    # Memory

    def remember(self) -> None:
        """Takes them up in `state`, and writes them down beside the loop when they differ."""
        state = snapshot(self.screen_of_all, self.theme)
        if state != self.state:
            self.state = state
            if self._save is not None:
                self._saving = asyncio.get_running_loop().run_in_executor(None, self._save, state)
