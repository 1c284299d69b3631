"""Actions on the launch history: the screen of it, and comparing two launches."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specconsole.ui.screens.console import ConsoleScreen
    from specconsole.ui.screens.history import HistoryChoice


async def history(screen: ConsoleScreen) -> None:
    """Every launch so far."""
    from specconsole.ui.screens.history import HistoryScreen

    def left(choice: HistoryChoice | None) -> None:
        if choice is not None:
            _bring(screen, choice)

    screen.app.push_screen(HistoryScreen(screen.desk), left)


def _bring(screen: ConsoleScreen, choice: HistoryChoice) -> None:
    """Puts a launch of the history on the board, selects it, and goes on with what is wanted."""
    commands = screen.desk.commands.history
    assert commands is not None

    def brought(why_not: str) -> None:
        launch_id = choice.launch_id
        screen.desk.select(launch_id)
        if choice.action_id == "open":
            if launch_id not in screen.desk.tabs:
                screen.desk.tabs.append(launch_id)
            if why_not:
                screen.console_app.say(f"as it was last seen here: {why_not}", title="history", severity="warning")
        screen.refresh_facts()
        if choice.action_id == "open":
            screen.show_pane("log")
        elif why_not:
            screen.console_app.say(
                f"it can't be done: {why_not}", title=choice.action_id, severity="warning", timeout=12
            )
        else:
            screen.call_later(screen.action_act, choice.action_id)

    screen.console_app.errands.start("history", lambda _: commands.open(choice.launch_id), brought)


async def diff(screen: ConsoleScreen) -> None:
    """Compares the selected launch with another one of the window's list; `h` compares with any earlier one."""
    from specconsole.ui.forms.picker import Picker
    from specconsole.ui.screens.history import compare
    from specconsole.ui.screens.settings_diff import SettingsDiff

    view, commands = screen.desk.launch, screen.desk.commands.history
    others = [other for other in screen.desk.launches() if view is not None and other.launch_id != view.launch_id]
    if view is None or not others:
        screen.console_app.say("there is no other launch to compare with; h shows earlier ones")
        return

    def chosen(launch_id: str | None) -> None:
        other = screen.desk.board.launches.get(launch_id or "")
        if other is None:
            return
        if commands is None:
            screen.app.push_screen(SettingsDiff(view, other))
        else:
            compare(screen.console_app, commands, view.launch_id, other.launch_id)

    choices = [(other.launch_id, f"{other.name} @ {other.host} ({other.state})") for other in others]
    screen.app.push_screen(Picker(f"compare {view.name} with", choices), chosen)


async def note(screen: ConsoleScreen) -> None:
    """Writes a note on the selected launch."""
    _write(screen, "note on", "a note that stands with this launch", tags=False)


async def tags(screen: ConsoleScreen) -> None:
    """Puts tags on the selected launch, or takes them off."""
    _write(screen, "tags of", "best -old puts best on and takes old off", tags=True)


def _write(screen: ConsoleScreen, title: str, hint: str, *, tags: bool) -> None:
    from specconsole.ui.forms.one_line import OneLine

    view, commands = screen.desk.launch, screen.desk.commands.history
    if view is None or commands is None:
        return

    def written(text: str | None) -> None:
        if not text:
            return

        def kept(why_not: str) -> None:
            where = f"kept here; the launch's folder gets it later: {why_not}" if why_not else "kept; h shows it"
            screen.console_app.say(where, title=view.name)

        def work(_: object) -> Coroutine[Any, Any, str]:
            return commands.tag_line(view.launch_id, text) if tags else commands.note(view.launch_id, text)

        screen.console_app.errands.start(f"{title} {view.name}", work, kept)

    screen.app.push_screen(OneLine(f"{title} {view.name}", view.launch_id, hint), written)
