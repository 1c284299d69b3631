"""Measuring from the window, by keys, on a real llama.cpp server; what the screen says against the store."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from specconsole.adapters.sqlite_store import SqliteStore
from specconsole.assets import shipped_folder
from specconsole.core.launching.lifecycle import ENDED
from specconsole.demo.models import ModelFiles
from specconsole.services.bench_store import BenchStore
from specconsole.services.commands import LaunchOrder
from specconsole.ui.app import ConsoleApp
from specconsole.ui.desk import Desk
from specconsole.ui.forms.bench_form import BenchForm
from specconsole.ui.forms.confirm import Confirm
from specconsole.ui.screens.results import ResultsScreen
from specconsole.ui.theme_files import read_themes
from specconsole.wiring import open_supervisor, state_folder
from tests.cli.console import write_profile
from tests.support.llama import MODULE
from tests.support.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(150), pytest.mark.may_block("Textual reads its own files")]


def text_of(screen: ResultsScreen) -> str:
    return "\n".join(str(line) for line in screen._lines._lines)


async def test_measured_ended_and_looked_at_by_keys(tmp_path: Path, llama_models: ModelFiles) -> None:
    profile = write_profile(
        tmp_path, "tiny", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=5,
        model=str(llama_models.target), draft_model=str(llama_models.draft), args={"spec_draft_n_max": 4},
    )  # fmt: skip
    themes, _ = read_themes([shipped_folder("themes")])
    async with open_supervisor(("local",), window=True) as console:
        desk = Desk(console.board, console.commands, monotonic_s=time.monotonic, wall_s=time.time)
        app = ConsoleApp(desk, themes)
        async with app.run_test(size=(160, 48)) as pilot:
            launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
            await console.supervisor.wait(launch_id, lambda v: v.state == "answers" or v.state in ENDED, timeout_s=60)
            desk.select(launch_id)
            await console.supervisor.find(launch_id).account.settled()

            await pilot.press("b")
            await until(lambda: isinstance(app.screen, BenchForm), what="the form is open")
            await pilot.pause()
            app.screen.query_one("#loads").value = "1, 2"  # type: ignore[attr-defined]  # an Input
            app.screen.query_one("#repeats").value = "2"  # type: ignore[attr-defined]  # an Input
            await pilot.press("ctrl+l")
            await until(lambda: isinstance(app.screen, Confirm), what="the budget is shown before it starts")
            await pilot.press("y")
            await until(lambda: bool(console.benches.views), what="the run has begun")
            assert console.board.launches[launch_id].running_benches == 1
            plan = await console.commands.stop_plan(launch_id)
            assert plan.running_benches == 1
            result = await console.benches.wait(console.benches.views[0].bench_id)
            assert result.ended == "done"
            await until(lambda: bool(console.board.results.rows), what="the table is on the board")
            assert console.board.launches[launch_id].running_benches == 0

            await pilot.press("3", "enter")
            await until(lambda: isinstance(app.screen, ResultsScreen), what="the results are open")
            screen = app.screen
            assert isinstance(screen, ResultsScreen)
            await pilot.pause()
            assert "tiny" in text_of(screen)
            await pilot.press("m", "m")
            await pilot.pause()
            mean = sum(p.acceptance.accept_length or 0 for p in result.at(1.0)) / 2
            assert f"{mean:.3g}" in text_of(screen), text_of(screen)
            await pilot.press("p")
            await until(lambda: console.board.baseline_id == result.result_id, what="the baseline is pinned")
            await pilot.press("n")
            await pilot.pause()
            await pilot.press(*"warm", "enter")
            await until(lambda: console.board.measured[-1].note == "warm", what="the note stands with it")
            await pilot.press("enter")
            await until(lambda: "accept length over time" in text_of(screen), what="its requests are shown")
            assert "TTFT of" in text_of(screen)
            await pilot.press("escape", "v")
            await until(lambda: "Acceptance by position" in text_of(screen), what="the plots are shown")
            await pilot.press("escape", "escape")

            # Where an outlier leads: out of the results, into its launch's log at that line.
            log = app.screen_of_all.log_pane
            await until(lambda: log.session is not None and log.session.source.line_count > 8, what="the log is there")
            await pilot.press("3", "enter")
            await until(lambda: isinstance(app.screen, ResultsScreen), what="the results are open again")
            app.screen.dismiss((launch_id, 7))
            await until(lambda: log.session is not None and log.session.marked_line == 7, what="the line is shown")
            assert app.screen_of_all.pane == "log"

            await pilot.press("b")
            await until(lambda: isinstance(app.screen, BenchForm), what="the form is open again")
            await pilot.pause()
            app.screen.query_one("#repeats").value = "300"  # type: ignore[attr-defined]  # an Input
            await pilot.press("ctrl+l")
            await until(lambda: isinstance(app.screen, Confirm), what="the budget is shown again")
            await pilot.press("y")
            await until(lambda: len(console.benches.views) == 2, what="the second run has begun")
            await until(lambda: bool(console.benches.views[1].points_done), what="it has a point")
            await pilot.press("3", "X")
            await until(lambda: isinstance(app.screen, Confirm), what="it asks first")
            await pilot.press("y")
            await until(lambda: console.benches.views[1].over, what="it has ended")
            assert console.benches.views[1].state == "cancelled"
        await console.commands.stop(launch_id, lambda _: None)
    store = await SqliteStore.open(state_folder() / "store.sqlite")
    try:
        kept = await BenchStore(store).results()
    finally:
        await store.aclose()
    assert [one.ended for one in kept] == ["done", "cancelled"]
    assert kept[0].points == result.points
