"""Actions of the window itself: panes, help, palette, themes, lists, leaving."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specconsole.ui.screens.console import ConsoleScreen


async def quit(screen: ConsoleScreen) -> None:
    """Leaves; nothing on any host is touched."""
    screen.app.exit()


async def help(screen: ConsoleScreen) -> None:
    from specconsole.ui.screens.help import HelpScreen

    screen.app.push_screen(HelpScreen(*screen.help_of_focus()))


async def palette(screen: ConsoleScreen) -> None:
    from specconsole.ui.palette import open_palette

    open_palette(screen)


async def cancel(screen: ConsoleScreen) -> None:
    session, errands = screen.log_pane.session, screen.console_app.errands
    if session is not None and session.range.ends is not None:
        session.range.clear()
        screen.log_pane.view.redraw()
    elif session is not None and session.search is not None:
        session.end_search()
    elif session is not None and session.marked_line is not None:
        session.marked_line = None
        screen.log_pane.view.redraw()
    elif errands.progress:
        name = list(errands.progress)[-1]
        errands.cancel(name)
        screen.console_app.say(f"{name}: called off; what it did so far stands", severity="warning")


async def jump(screen: ConsoleScreen) -> None:
    from specconsole.ui.screens.jump import JumpScreen

    def to(name: str | None) -> None:
        if name is None:
            return
        if name.startswith("launch:"):
            screen.desk.select(name.removeprefix("launch:"))
            screen.refresh_facts()
        else:
            screen.show_pane(name)

    screen.app.push_screen(JumpScreen(screen.jump_targets()), to)


async def theme(screen: ConsoleScreen) -> None:
    from specconsole.ui.forms.picker import Picker

    app = screen.console_app
    before = app.theme

    def chosen(name: str | None) -> None:
        app.theme = name or before

    def looked_at(name: str) -> None:
        app.theme = name

    names = [(name, name) for name in app.theme_names()]
    screen.app.push_screen(Picker("theme", names, before, looked_at=looked_at), chosen)


async def card(screen: ConsoleScreen) -> None:
    screen.desk.folded_cards ^= {screen.desk.launch_id}


async def pane_log(screen: ConsoleScreen) -> None:
    screen.show_pane("log")


async def pane_launches(screen: ConsoleScreen) -> None:
    screen.show_pane("launches")


async def pane_results(screen: ConsoleScreen) -> None:
    screen.show_pane("results")


async def pane_hosts(screen: ConsoleScreen) -> None:
    screen.show_pane("hosts")


async def next_launch(screen: ConsoleScreen) -> None:
    screen.desk.step_launch(1)


async def previous_launch(screen: ConsoleScreen) -> None:
    screen.desk.step_launch(-1)


async def list_down(screen: ConsoleScreen) -> None:
    screen.desk.step_launch(1)


async def list_up(screen: ConsoleScreen) -> None:
    screen.desk.step_launch(-1)


async def list_open(screen: ConsoleScreen) -> None:
    if screen.desk.launch_id and screen.desk.launch_id not in screen.desk.tabs:
        screen.desk.tabs.append(screen.desk.launch_id)
    screen.show_pane("log")


async def close_tab(screen: ConsoleScreen) -> None:
    """Closes the tab and goes to the one beside it."""
    tabs, launch_id = screen.desk.tabs, screen.desk.launch_id
    if launch_id not in tabs:
        screen.console_app.say("this log is not kept in a tab; enter on a launch keeps it")
        return
    place = tabs.index(launch_id)
    tabs.remove(launch_id)
    if tabs:
        screen.desk.launch_id = tabs[min(place, len(tabs) - 1)]


async def host_down(screen: ConsoleScreen) -> None:
    screen.desk.step_host(1)


async def host_up(screen: ConsoleScreen) -> None:
    screen.desk.step_host(-1)


async def results_down(screen: ConsoleScreen) -> None:
    screen.results.scroll(rows=1)


async def results_up(screen: ConsoleScreen) -> None:
    screen.results.scroll(rows=-1)


async def results_right(screen: ConsoleScreen) -> None:
    screen.results.scroll(columns=1)


async def results_left(screen: ConsoleScreen) -> None:
    screen.results.scroll(columns=-1)
