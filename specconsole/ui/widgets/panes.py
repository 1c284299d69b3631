"""The small panes: header, launches, phase strip, the small screen's top, the footer's line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.content import Content

from specconsole.ui.formatters import clock_text, fit, joined_whole, row, spread, styled
from specconsole.ui.messages import ActionAsked, LaunchPicked
from specconsole.ui.text import host_text, launch_text
from specconsole.ui.widgets.gpu_lines import gpu_summary
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.core.views.launch import LaunchView
    from specconsole.ui.desk import Desk


class HeaderLine(TextPane):
    """Hosts with their state, and the time."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="header")
        self.desk = desk

    def build(self, width: int, height: int) -> Sequence[Content]:
        clock = clock_text(self.desk.wall_s())
        return [host_text.header(self.desk.hosts(), clock, width, self.desk.badge)]


class LaunchesPane(TextPane, can_focus=True):
    """Every launch with its mark and state, newest first."""

    HELP = (
        "Launches. ● starts, ✓ answers (proven by a request of ours), ! does not move or does not answer, ✗ failed, "
        "? its host can't be reached. Enter keeps the log open in a tab."
    )
    BORDER_TITLE: ClassVar[str] = "launches"

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="launches")
        self.desk = desk
        self._first = 0

    def build(self, width: int, height: int) -> Sequence[Content]:
        launches = self.desk.launches()
        if not launches:
            return [fit(line, width) for line in nothing_launched(self.desk)]
        ids = [view.launch_id for view in launches]
        place = ids.index(self.desk.launch_id) if self.desk.launch_id in ids else 0
        self._first = max(0, min(max(self._first, place - height + 1), place, len(ids) - height))
        lines = [
            launch_text.list_row(view, width, selected=view.launch_id == self.desk.launch_id, focused=self.has_focus)
            for view in self.on_screen()
        ]
        if len(lines) < height and (earlier := self.desk.launches_not_listed):
            lines.append(fit(row(("h", "bold $primary"), (f" shows {earlier} earlier", "$muted")), width))
        return lines

    def on_screen(self) -> list[LaunchView]:
        """The launches that the pane has room for, from the top."""
        return self.desk.launches()[self._first : self._first + max(1, self.size.height)]

    def on_click(self, event: events.Click) -> None:
        launches = self.desk.launches()
        place = self._first + event.y - (1 if self.styles.border_top[0] else 0)
        if 0 <= place < len(launches):
            self.post_message(LaunchPicked(launches[place].launch_id, keep=event.chain > 1))


class PhasePane(TextPane):
    """The phase strip and the line that says when the launch answers."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="phase")
        self.desk = desk

    def build(self, width: int, height: int) -> Sequence[Content]:
        launch = self.desk.launch
        if launch is None:
            waits = self.desk.waits_for()
            self.entitle(Content(waits or "no launch"))
            return [] if waits else [fit(nothing_launched(self.desk)[0], width)]
        self.entitle(launch_text.title(launch))
        return [launch_text.strip(launch, width), _outlook(self.desk, launch, width)]


def nothing_launched(desk: Desk) -> list[Content]:
    """What an empty list of launches means: not looked yet, not reachable, or nothing there."""
    if waits := desk.waits_for():
        return [styled(f"◌ {waits}", "$muted")]
    hint = row(("l", "bold $primary"), " starts a server, ", ("A", "bold $primary"), " watches one")
    if away := desk.not_seen():
        return [styled(f"not known: {', '.join(away)} can't be reached", "$warning"), hint]
    return [styled("nothing launched yet", "$muted"), hint]


def _outlook(desk: Desk, launch: LaunchView, width: int) -> Content:
    return launch_text.outlook(launch, width, desk.monotonic_s(), reads=desk.reads(), told=desk.card_is_open())


class ErrandsLine(TextPane):
    """What runs in the background at the person's wish; hidden when nothing does."""

    def __init__(self) -> None:
        super().__init__(id="errands")
        self._progress: dict[str, str] = {}

    def show(self, progress: Mapping[str, str]) -> None:
        self._progress = dict(progress)
        self.display = bool(progress)
        self.update()

    def build(self, width: int, height: int) -> Sequence[Content]:
        pieces = [row((f" {name} ", "bold"), (text, "$muted")) for name, text in self._progress.items()]
        return [spread(styled(" · ", "$rule").join(pieces), row((" esc ", "bold $primary"), "calls it off "), width)]


class SmallTop(TextPane):
    """On a small screen: one line of GPU bars, the phase line, the ETA line, and the tabs."""

    TABS: ClassVar[tuple[str, ...]] = ("log", "launches", "results", "hosts")

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="small-top")
        self.desk = desk
        self.tab = "log"
        self.note: list[str] = []
        """What the pane below says of itself, piece by piece, the first ones first where there is little room."""
        self._tab_at: list[tuple[int, int, str]] = []

    def build(self, width: int, height: int) -> Sequence[Content]:
        launch, host = self.desk.launch, self.desk.launch_host
        waits = self.desk.waits_for()
        no_host = f" ◌ {waits}" if waits else " no host yet; H adds one"
        gpu = gpu_summary(host, width) if host is not None else fit(styled(no_host, "$muted"), width)
        if launch is None:
            first, *_ = nothing_launched(self.desk)
            # Where the line above says already what is waited for, once is enough.
            words = row(" ", first, ("" if waits else "  l starts a server", "$muted"))
            two = [fit(Content("") if waits and host is None else words, width), fit(Content(""), width)]
        else:
            name = row(" ", launch_text.MARKS[launch.state], " ", (launch.name, "bold"), "  ")
            two = [
                name + launch_text.strip(launch, width - 1 - name.cell_length) + Content(" "),
                Content(" ") + _outlook(self.desk, launch, width - 2) + Content(" "),
            ]
        return [gpu, *two, self._tabs(width)]

    def _tabs(self, width: int) -> Content:
        parts: list[str | tuple[str, str]] = []
        place = 0
        self._tab_at = []
        for number, tab in enumerate(self.TABS, 1):
            text = f" {number} {tab} "
            parts += [(text, "bold $background on $primary" if tab == self.tab else "$muted on $panel"), " "]
            self._tab_at.append((place, place + len(text), tab))
            place += len(text) + 1
        tabs = row(*parts)
        room = width - 2 - tabs.cell_length
        return spread(tabs, styled(joined_whole(self.note, room) + " ", "$muted"), width)

    def tab_column(self, name: str) -> int:
        """Where a tab begins."""
        return next((start for start, _, tab in self._tab_at if tab == name), 0)

    def on_click(self, event: events.Click) -> None:
        if event.y == 3:
            for start, stop, tab in self._tab_at:
                if start <= event.x < stop:
                    self.post_message(ActionAsked(f"pane-{tab}"))
