"""Actions on measurements: start one, end one, look at all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specconsole.ui.formatters import styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specconsole.core.measuring.run_plan import BenchOrder
    from specconsole.core.views.launch import LaunchView
    from specconsole.services.measuring_commands import MeasuringCommands
    from specconsole.ui.screens.console import ConsoleScreen


async def bench(screen: ConsoleScreen) -> None:
    """Form, then what it will take, then the start."""
    from specconsole.ui.forms.bench_form import BenchForm

    view, measuring = screen.desk.launch, screen.desk.commands.measuring
    if view is None or measuring is None:
        return

    def ordered(order: BenchOrder | None) -> None:
        if order is not None:
            screen.console_app.errands.start(
                f"look at {view.name}",
                lambda _: measuring.budget(view.launch_id, order),
                lambda lines: _confirm(screen, measuring, view, order, lines),
            )

    screen.app.push_screen(BenchForm(view.name, measuring.workloads()), ordered)


def _confirm(
    screen: ConsoleScreen, measuring: MeasuringCommands, view: LaunchView, order: BenchOrder, lines: Sequence[str]
) -> None:
    from specconsole.ui.forms.confirm import Confirm

    def answered(said: bool | None) -> None:
        if said:
            screen.console_app.errands.start(
                f"bench {view.name}",
                lambda _: measuring.start(view.launch_id, order),
                lambda _: screen.console_app.say("how far it is stands under the results", title=f"bench {view.name}"),
            )

    shown = [styled(line, "$warning" if line.startswith("note:") else "") for line in lines]
    screen.app.push_screen(Confirm(f"measure {view.name}?", shown, yes="measure it"), answered)


async def end_bench(screen: ConsoleScreen) -> None:
    """Ends a run; which one is asked when there are several."""
    from specconsole.ui.forms.confirm import Confirm
    from specconsole.ui.forms.picker import Picker

    measuring = screen.desk.commands.measuring
    running = list(measuring.running()) if measuring is not None else []
    if measuring is None or not running:
        screen.console_app.say("nothing is being measured from this console")
        return

    def ask(bench_id: str | None) -> None:
        text = dict(running).get(bench_id or "")
        if bench_id is None or text is None:
            return

        def answered(said: bool | None) -> None:
            if said:
                screen.console_app.errands.start(
                    "end bench", lambda _: measuring.cancel(bench_id), lambda told: screen.console_app.say(told)
                )

        lines = [styled(text), styled("What was measured so far is kept.")]
        screen.app.push_screen(Confirm("end this benchmark?", lines, yes="end it"), answered)

    if len(running) == 1:
        ask(running[0][0])
    else:
        screen.app.push_screen(Picker("end which benchmark", running), ask)


async def results_open(screen: ConsoleScreen) -> None:
    """The results in full."""
    from specconsole.ui.screens.results import ResultsScreen

    if not screen.desk.board.measured:
        screen.console_app.say("nothing is measured yet; b on a launch that answers")
        return

    def left(place: tuple[str, int] | None) -> None:
        if place is None:
            return
        launch_id, line = place
        screen.desk.select(launch_id)
        screen.refresh_facts()
        screen.refresh_log()
        screen.log_pane.view.reveal(line)
        screen.show_pane("log")

    screen.app.push_screen(ResultsScreen(screen.desk), left)
