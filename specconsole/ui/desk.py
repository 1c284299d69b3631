"""What lies before the person: the board, which launch and host are selected, which tabs are open, the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specconsole.core.views.host import HostView
    from specconsole.core.views.launch import LaunchView
    from specconsole.services.board import Board
    from specconsole.services.commands import Commands


ENDED_LISTED = 12
"""Ended launches in the window's list."""


@dataclass(slots=True)
class Desk:
    """One for the window; panes read it, the screen changes it."""

    board: Board
    commands: Commands
    monotonic_s: Callable[[], float]
    wall_s: Callable[[], float]
    badge: str = ""
    """Shown in the header all the time: `recording`, `simulated`, `read-only`."""
    starting: bool = False
    """The services do not stand yet: what the board does not show may be there all the same."""
    unseen: set[str] = field(default_factory=set)
    """Hosts on which nobody has looked for launches yet."""
    launch_id: str = ""
    host_name: str = ""
    tabs: list[str] = field(default_factory=list)
    """Launches whose log is kept open, in order."""
    folded_cards: set[str] = field(default_factory=set)
    waiting_tabs: list[str] = field(default_factory=list)
    """Tabs of the last time whose launch the board has not shown yet."""
    wanted_launch_id: str = ""
    """The launch that was selected the last time, until the board shows it or the person selects another."""

    def launches(self) -> list[LaunchView]:
        """Newest first; those that did not start yet on top. Of those that ended the newest only, and what is selected
        or kept in a tab: the history has them all."""
        ordered = sorted(
            self.board.launches.values(),
            key=lambda view: (-(view.started_at_s if view.started_at_s is not None else 1e18), view.launch_id),
        )
        ended = [view.launch_id for view in ordered if view.state in ("stopped", "failed", "gone")]
        hidden = set(ended[ENDED_LISTED:]) - {self.launch_id, self.wanted_launch_id, *self.tabs, *self.waiting_tabs}
        return [view for view in ordered if view.launch_id not in hidden]

    @property
    def launches_not_listed(self) -> int:
        """Ended ones that only the history shows."""
        return len(self.board.launches) - len(self.launches())

    def hosts(self) -> list[HostView]:
        """In the order they were added."""
        return list(self.board.hosts.values())

    @property
    def launch(self) -> LaunchView | None:
        """The selected launch."""
        return self.board.launches.get(self.launch_id)

    @property
    def host(self) -> HostView | None:
        """The selected host."""
        return self.board.hosts.get(self.host_name)

    @property
    def launch_host(self) -> HostView | None:
        """The host of the selected launch, or the selected one."""
        launch = self.launch
        return (self.board.hosts.get(launch.host) if launch is not None else None) or self.host

    def waits_for(self) -> str:
        """What still comes before an empty board means that there is nothing; "" when nothing does."""
        if self.starting:
            return "starting"
        coming = sorted(name for name in self.unseen if self._may_come(name))
        return f"looking on {', '.join(coming)}" if coming else ""

    def not_seen(self) -> list[str]:
        """Hosts whose launches are not known because they can't be reached."""
        return sorted(name for name in self.unseen if not self.starting and not self._may_come(name))

    def _may_come(self, name: str) -> bool:
        host = self.board.hosts.get(name)
        return host is None or host.state in ("connecting", "up")

    def reads(self) -> str:
        """Where the selected launch's weights come from just now; "" when nothing is known."""
        launch = self.launch
        host = self.board.hosts.get(launch.host) if launch is not None else None
        if launch is None or launch.reading is None or host is None or launch.reading.phase != "weights":
            return ""
        # Loaded when weights are: the first paint need not pay for it.
        from specconsole.core.hardware.evidence import loading_text

        return loading_text(host, launch.reading.server.model)

    def card_is_open(self) -> bool:
        """Whether the selected launch's card, if it has one, is unfolded."""
        return self.launch_id not in self.folded_cards

    def settle(self) -> bool:
        """Selects something that exists; True when the selection changed."""
        before = (self.launch_id, self.host_name)
        if self.wanted_launch_id in self.board.launches:
            self.launch_id, self.wanted_launch_id = self.wanted_launch_id, ""
        for tab in [tab for tab in self.waiting_tabs if tab in self.board.launches]:
            self.waiting_tabs.remove(tab)
            if tab not in self.tabs:
                self.tabs.append(tab)
        if self.launch is None:
            launches = self.launches()
            self.launch_id = launches[0].launch_id if launches else ""
        if self.host is None:
            hosts = self.hosts()
            self.host_name = hosts[0].name if hosts else ""
        self.tabs = [tab for tab in self.tabs if tab in self.board.launches]
        return before != (self.launch_id, self.host_name)

    def select(self, launch_id: str) -> None:
        """Selects a launch because the person wants it."""
        self.launch_id, self.wanted_launch_id = launch_id, ""

    def step_launch(self, step: int) -> None:
        """Selects the launch `step` places further in the list, around its ends."""
        ids = [view.launch_id for view in self.launches()]
        if ids:
            place = ids.index(self.launch_id) if self.launch_id in ids else 0
            self.select(ids[(place + step) % len(ids)])

    def step_host(self, step: int) -> None:
        """Selects the host `step` places further, around the ends."""
        names = [view.name for view in self.hosts()]
        if names:
            place = names.index(self.host_name) if self.host_name in names else 0
            self.host_name = names[(place + step) % len(names)]
