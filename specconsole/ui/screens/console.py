"""The console: one screen for the day. It samples the board, lays out by size, and sends keys to the deeds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

from specconsole.errors import SpecconsoleError
from specconsole.ui import availability
from specconsole.ui.deeds import find_deed
from specconsole.ui.keymap import Action, bindings
from specconsole.ui.messages import ActionAsked, HostPicked, LaunchPicked
from specconsole.ui.widgets.card_pane import CardPane
from specconsole.ui.widgets.footer_line import FooterLine
from specconsole.ui.widgets.hosts_pane import HostsPane
from specconsole.ui.widgets.log_pane import LogPane
from specconsole.ui.widgets.panes import ErrandsLine, HeaderLine, LaunchesPane, PhasePane, SmallTop
from specconsole.ui.widgets.results_pane import ResultsPane

if TYPE_CHECKING:
    from specconsole.ui.app import ConsoleApp
    from specconsole.ui.desk import Desk

SMALL_BELOW = (110, 30)
"""Columns and rows under which the panes become tabs."""
DEED_PATIENCE_S = 0.1
"""How long a key waits for its own effect before the next one is let in."""
SCOPES: dict[str, str] = {"log": "log", "hosts": "hosts", "launches": "launches", "results": "results"}


class ConsoleScreen(Screen[None]):
    """All panes. What a key does stands in `deeds`; what may be done, in `availability`."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, desk: Desk, actions: Sequence[Action]) -> None:
        super().__init__()
        self.desk = desk
        self.actions = tuple(actions)
        self.by_id = {action.action_id: action for action in actions}
        self.header = HeaderLine(desk)
        self.small_top = SmallTop(desk)
        self.hosts = HostsPane(desk)
        self.launches = LaunchesPane(desk)
        self.phase = PhasePane(desk)
        self.card = CardPane(desk)
        self.log_pane = LogPane(desk)
        self.results = ResultsPane(desk)
        self.footer = FooterLine(self.offered)
        self.errands_line = ErrandsLine()
        self.pane = "log"
        self.small = False
        self._deeds: set[asyncio.Task[None]] = set()
        self._bind()

    @property
    def console_app(self) -> ConsoleApp:
        return cast("ConsoleApp", self.app)

    def _bind(self) -> None:
        """Keys from the table, each on the pane that it belongs to."""
        for scope, widget in (("any", self), ("log", self.log_pane), ("launches", self.launches),
                              ("hosts", self.hosts), ("results", self.results)):  # fmt: skip
            for binding in bindings(self.actions, scope):  # type: ignore[arg-type]  # the five scopes, spelled above
                for single in binding.make_bindings([binding]):
                    widget._bindings.key_to_bindings.setdefault(single.key, []).append(single)

    def compose(self) -> ComposeResult:
        # Before there are children: a class set later styles them all once more.
        self._set_classes(self.app.size.width, self.app.size.height)
        self._show_tab(self.pane)
        self._size_left(self.app.size.height)
        yield self.header
        yield self.small_top
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self.hosts
                yield self.launches
            with Vertical(id="right"):
                yield self.phase
                yield self.card
                yield self.log_pane
                yield self.results
        yield self.errands_line
        yield self.footer

    def on_mount(self) -> None:
        self._lay_out(self.app.size.width, self.app.size.height)
        self.show_pane(self.pane)

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size.width, event.size.height)

    def _lay_out(self, width: int, height: int) -> None:
        self._set_classes(width, height)
        self._size_left(height)
        self.refresh_facts()

    def _set_classes(self, width: int, height: int) -> None:
        self.small = width < SMALL_BELOW[0] or height < SMALL_BELOW[1]
        self.results.compact = self.small
        self.set_class(self.small, "small")
        self.set_class(width >= 180, "wide")

    def _size_left(self, height: int) -> None:
        wanted = min(self.hosts.wanted_height(), max(6, height * 6 // 10))
        rows = None if self.small else max(4, wanted)
        if rows is None:
            self.hosts.styles.height = self.results.styles.height = "1fr"
        elif self.hosts.styles.height is None or self.hosts.styles.height.value != rows:
            self.hosts.styles.height = rows

    def _size_results(self, height: int) -> None:
        """As many rows as there are results, within a quarter of the screen."""
        rows = 2 + max(3, min(1 + len(self.desk.board.results.rows), height // 4))
        if self.results.styles.height is None or self.results.styles.height.value != rows:
            self.results.styles.height = rows

    # Facts

    def refresh_facts(self) -> None:
        """Takes in the board as it is now; every pane repaints what differs."""
        self.desk.settle()
        if not self.small:
            self._size_left(self.app.size.height)
            self._size_results(self.app.size.height)
        inner = self.app.size.width - (3 if self.small else self.left_width() + 4)
        self.card.fit_height(inner, small=self.small)
        for pane in (self.hosts, self.launches, self.phase, self.results):
            pane.update()
        self.log_pane.update()
        self.refresh_clock()
        self.footer.update()

    def left_width(self) -> int:
        return 46 if self.has_class("wide") else 36

    def refresh_log(self) -> None:
        """Takes in what the log has that is new, the board being as it was."""
        self.log_pane.update()
        self._refresh_note()

    def refresh_clock(self) -> None:
        """What changes with time alone."""
        self.header.update()
        self.phase.update()
        self._refresh_note()

    def _refresh_note(self) -> None:
        """On a small screen the log's state stands beside the tabs."""
        if self.small:
            self.small_top.note = self.log_pane.state_words() if self.pane == "log" else []
            self.small_top.update()

    # Keys

    @property
    def scope(self) -> str:
        """The pane in focus, as the key table calls it."""
        node: Widget | None = self.focused
        while node is not None:
            if node.id in SCOPES:
                return SCOPES[node.id]
            node = node.parent if isinstance(node.parent, Widget) else None
        return "any"

    def offered(self) -> list[tuple[Action, str]]:
        """The footer's actions of the moment, in order, with the reason why each can't be done."""
        scope = self.scope
        actions = [action for action in self.shown_actions() if action.footer and action.scope in ("any", scope)]
        # A pane's own keys come first: they are why the focus is there.
        actions.sort(key=lambda action: (action.footer >= 20, action.scope == "any" and scope not in ("any", "log"),
                                         action.footer))  # fmt: skip
        return [(action, self.reason(action)) for action in actions]

    def shown_actions(self) -> list[Action]:
        """Without what a read-only console or host leaves nothing of."""
        return [action for action in self.actions if not availability.hidden(action, self.desk)]

    def reason(self, action: Action) -> str:
        return availability.reason(action, self.desk, self.log_pane.session)

    async def action_act(self, action_id: str) -> None:
        """Does one action, or says why it can't be done."""
        action = self.by_id[action_id]
        why = self.reason(action)
        if why:
            self.console_app.say(why, title=f"{action.shown_key} {action.label}", severity="warning")
            return
        deed = asyncio.get_running_loop().create_task(find_deed(action_id)(self), name=action_id)
        self._deeds.add(deed)
        deed.add_done_callback(self._deed_ended)
        # Most are done at once. One that asks a slow host goes on beside the window, which stays alive meanwhile.
        await asyncio.wait((deed,), timeout=DEED_PATIENCE_S)
        if action.scope == "log" or action_id == "follow":
            # Moving in the log changes nothing else: the key is painted sooner.
            self.refresh_log()
            self.footer.update()
        else:
            self.refresh_facts()

    def _deed_ended(self, deed: asyncio.Task[None]) -> None:
        self._deeds.discard(deed)
        error = None if deed.cancelled() else deed.exception()
        if isinstance(error, SpecconsoleError):
            text = f"{error.what}\ntry: {error.try_}" if error.try_ else error.what
            self.console_app.say(text, title=error.where or deed.get_name(), severity="error", timeout=12)
        elif isinstance(error, Exception):
            self.console_app.fault(deed.get_name(), error)

    def on_unmount(self) -> None:
        for deed in self._deeds:
            deed.cancel()

    @on(ActionAsked)
    async def _asked(self, message: ActionAsked) -> None:
        await self.action_act(message.action_id)

    @on(LaunchPicked)
    def _launch_picked(self, message: LaunchPicked) -> None:
        self.desk.select(message.launch_id)
        if message.keep and message.launch_id not in self.desk.tabs:
            self.desk.tabs.append(message.launch_id)
        self.refresh_facts()

    @on(HostPicked)
    def _host_picked(self, message: HostPicked) -> None:
        self.desk.host_name = message.name
        self.refresh_facts()

    def show_pane(self, name: str) -> None:
        """Puts the focus on a pane; on a small screen it is also the tab that is shown."""
        self._show_tab(name)
        target: Widget = {"log": self.log_pane.view, "launches": self.launches, "results": self.results,
                          "hosts": self.hosts}[name]  # fmt: skip
        target.focus(scroll_visible=False)

    def _show_tab(self, name: str) -> None:
        self.pane = name
        for other in SmallTop.TABS:
            self.set_class(other == name, f"tab-{other}")
        self.small_top.tab = name

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        scope = self.scope
        if scope in SCOPES.values() and scope != self.pane:
            self.show_pane(scope)
        for pane in (self.hosts, self.launches):
            pane.update()
        self.footer.update()

    def jump_targets(self) -> list[tuple[str, str, int, int]]:
        """(name, label, column, row) of panes, tabs and launches that are on the screen."""
        found: list[tuple[str, str, int, int]] = []
        panes: dict[str, Widget] = {"log": self.log_pane, "launches": self.launches, "results": self.results,
                                    "hosts": self.hosts}  # fmt: skip
        for name, pane in panes.items():
            if self.small:
                # The letter covers the tab's number; its name stands beside it.
                found.append((name, "", self.small_top.tab_column(name), self.small_top.region.y + 3))
            elif pane.region.width:
                found.append((name, name, pane.region.x + 2, pane.region.y))
        if self.launches.region.width:
            inner = self.launches.content_region
            for line, view in enumerate(self.launches.on_screen()):
                found.append((f"launch:{view.launch_id}", view.name[:20], inner.x, inner.y + line))
        return found

    def help_of_focus(self) -> tuple[str, str, list[Action]]:
        """(pane, what it is, its actions) for the help."""
        scope = self.scope
        pane: Widget = {"log": self.log_pane, "launches": self.launches, "hosts": self.hosts,
                        "results": self.results}.get(scope, self.phase)  # fmt: skip
        about = getattr(pane, "HELP", "") or ""
        return scope, about, [action for action in self.shown_actions() if action.scope in ("any", scope)]

    def title_content(self) -> Content:
        """For the terminal's own title bar."""
        launch = self.desk.launch
        if launch is None:
            return Content("specconsole")
        phase = launch.reading.phase if launch.reading is not None and launch.state in ("starting", "loading") else ""
        return Content(f"{launch.name}: {phase or launch.state} · specconsole")
