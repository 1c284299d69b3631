"""Carries the screen's state to the file and back: selection, tabs, scroll, switches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specconsole.ui.widgets.panes import SmallTop
from specconsole.ui.window_state import TabState, WindowState

if TYPE_CHECKING:
    from specconsole.core.views.log_line import Level
    from specconsole.ui.screens.console import ConsoleScreen


def snapshot(screen: ConsoleScreen, theme: str) -> WindowState:
    """The state as it is now."""
    desk, pane = screen.desk, screen.log_pane
    # What the board has not shown yet is not forgotten by leaving early.
    kept = [*desk.tabs, *(tab for tab in desk.waiting_tabs if tab not in desk.tabs)]
    places = pane.places() | {key: line for key, line in pane.waiting_places.items() if key not in pane.places()}
    return WindowState(
        theme=theme,
        selected_launch=desk.wanted_launch_id or desk.launch_id,
        selected_host=desk.host_name,
        pane=screen.pane,
        wrap=pane.view.wrap,
        fold=pane.session.fold if pane.session is not None else False,
        least_level=pane.session.least if pane.session is not None else "debug",
        tabs=[TabState(launch_id, places.get(launch_id)) for launch_id in kept]
        + [TabState(f"-{launch_id}", line) for launch_id, line in places.items() if launch_id not in kept][:12],
    )


def restore(screen: ConsoleScreen, state: WindowState) -> None:
    """Puts the state back as far as what it speaks of still exists; the rest waits for the board."""
    desk, pane = screen.desk, screen.log_pane
    desk.wanted_launch_id = state.selected_launch
    desk.host_name = state.selected_host or desk.host_name
    pane.view.wrap = state.wrap
    pane.first_level = _level(state.least_level)
    pane.first_fold = state.fold
    for tab in state.tabs:
        # A dash marks a place in a log that has no tab of its own.
        launch_id = tab.launch_id.removeprefix("-")
        if tab.launch_id == launch_id and launch_id not in desk.waiting_tabs:
            desk.waiting_tabs.append(launch_id)
        if tab.top_line is not None:
            pane.waiting_places[launch_id] = tab.top_line
    if state.pane in SmallTop.TABS:
        screen.pane = state.pane


def _level(name: str) -> Level:
    """The remembered level, if it is one."""
    if name != "debug":
        from specconsole.core.views.log_line import LEVELS

        for level in LEVELS:
            if level == name:
                return level
    return "debug"
