"""The log pane's actions: moving, searching, filtering, jumping, copying."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specconsole.core.views.log_line import Level
    from specconsole.ui.log.session import LogSession
    from specconsole.ui.screens.console import ConsoleScreen

LEVEL_STEPS: tuple[Level, ...] = ("debug", "info", "warning", "error")
LEFT_STEP_CELLS = 8


def _session(screen: ConsoleScreen) -> LogSession | None:
    return screen.log_pane.session


async def log_down(screen: ConsoleScreen) -> None:
    screen.log_pane.view.scroll_rows(1)


async def log_up(screen: ConsoleScreen) -> None:
    screen.log_pane.view.scroll_rows(-1)


async def log_page_down(screen: ConsoleScreen) -> None:
    screen.log_pane.view.scroll_rows(max(1, screen.log_pane.view.page_rows - 2))


async def log_page_up(screen: ConsoleScreen) -> None:
    screen.log_pane.view.scroll_rows(-max(1, screen.log_pane.view.page_rows - 2))


async def log_top(screen: ConsoleScreen) -> None:
    screen.log_pane.view.to_top()


async def log_end(screen: ConsoleScreen) -> None:
    screen.log_pane.view.set_follow(True)


async def log_left(screen: ConsoleScreen) -> None:
    screen.log_pane.view.scroll_columns(-LEFT_STEP_CELLS)


async def log_right(screen: ConsoleScreen) -> None:
    screen.log_pane.view.scroll_columns(LEFT_STEP_CELLS)


async def follow(screen: ConsoleScreen) -> None:
    session = _session(screen)
    screen.log_pane.view.set_follow(session is None or not session.port.follow)


async def wrap(screen: ConsoleScreen) -> None:
    view = screen.log_pane.view
    view.wrap = not view.wrap
    if view.session is not None:
        view.session.left = 0
    view.redraw()


async def find(screen: ConsoleScreen) -> None:
    if screen.pane != "log":
        screen.show_pane("log")
    screen.log_pane.search_line.open()


async def next_match(screen: ConsoleScreen) -> None:
    screen.log_pane.search_line.step(1)


async def previous_match(screen: ConsoleScreen) -> None:
    screen.log_pane.search_line.step(-1)


async def ranks(screen: ConsoleScreen) -> None:
    launch, session = screen.desk.launch, _session(screen)
    if launch is None or launch.reading is None or session is None:
        return
    from specconsole.ui.forms.picker import Picker

    names = sorted({rank.rank for rank in launch.reading.ranks}, key=lambda rank: (len(rank), rank))
    choices = [("", "all ranks"), *((name, name) for name in names)]
    current = next(iter(session.ranks), "")

    def chosen(name: str | None) -> None:
        if name is not None:
            wanted = frozenset({name}) if name else frozenset()
            session.choose(ranks=wanted, least=session.least, fold=session.fold)
            screen.refresh_facts()

    screen.app.push_screen(Picker("lines of which rank?", choices, current), chosen)


async def level(screen: ConsoleScreen) -> None:
    session = _session(screen)
    if session is not None:
        place = LEVEL_STEPS.index(session.least) if session.least in LEVEL_STEPS else 0
        least = LEVEL_STEPS[(place + 1) % len(LEVEL_STEPS)]
        session.choose(ranks=session.ranks, least=least, fold=session.fold)


async def fold(screen: ConsoleScreen) -> None:
    session = _session(screen)
    if session is not None:
        session.choose(ranks=session.ranks, least=session.least, fold=not session.fold)


async def error(screen: ConsoleScreen) -> None:
    """To the cause; without one to what is suspect, then to the last warning of the reading."""
    launch = screen.desk.launch
    reading = launch.reading if launch is not None else None
    if reading is None:
        screen.console_app.say("nothing was read from this log yet")
        return
    failure = reading.failure or reading.suspect
    line_no = failure.line_no if failure is not None else None
    if line_no is None and reading.warnings:
        line_no = reading.warnings[-1].line_no
    if line_no is None:
        screen.console_app.say(
            "this log states no cause" if failure is not None else "no error and no warning was read"
        )
        return
    if screen.pane != "log":
        screen.show_pane("log")
    screen.log_pane.view.reveal(line_no - 1)


async def next_phase(screen: ConsoleScreen) -> None:
    _to_phase(screen, 1)


async def previous_phase(screen: ConsoleScreen) -> None:
    _to_phase(screen, -1)


def _to_phase(screen: ConsoleScreen, step: int) -> None:
    session, view = _session(screen), screen.log_pane.view
    if session is None:
        return
    here = session.marked_line if session.marked_line is not None else session.top_line
    line = view.phase_start(here, step)
    if line is None:
        screen.console_app.say("this is the last phase" if step > 0 else "this is the first phase")
    else:
        view.reveal(line)


async def time(screen: ConsoleScreen) -> None:
    session = _session(screen)
    if session is None:
        return
    from specconsole.ui.forms.go_to_time import GoToTime

    def found(line: int | None) -> None:
        if line is not None:
            screen.log_pane.view.reveal(line)

    screen.app.push_screen(GoToTime(session.source), found)


async def select(screen: ConsoleScreen) -> None:
    session = _session(screen)
    if session is not None and session.range.by_keys:
        session.range.clear()
        screen.log_pane.view.redraw()
    else:
        screen.log_pane.view.start_selection()


async def copy(screen: ConsoleScreen) -> None:
    session = _session(screen)
    text = session.selected_text() if session is not None else ""
    if not text:
        screen.console_app.say("there is nothing to copy")
        return
    screen.console_app.copy_text(text)
    if session is not None:
        session.range.clear()
        screen.log_pane.view.redraw()
