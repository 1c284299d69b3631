"""The services around a real llama.cpp server: what the board says against what the server and /proc say."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specconsole.core.launching.lifecycle import ENDED
from specconsole.core.views.launch import LaunchView
from specconsole.demo.models import ModelFiles
from specconsole.errors import RefusedError
from specconsole.services.commands import LaunchOrder
from specconsole.wiring import Console, open_supervisor, state_folder
from tests.cli.console import write_profile
from tests.support.llama import MODULE
from tests.support.waiting import environ_of, is_alive

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


@pytest.fixture
def profile(tmp_path: Path, slow_llama_models: ModelFiles) -> Path:
    return write_profile(
        tmp_path, "tiny", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=10,
        model=str(slow_llama_models.target), draft_model=str(slow_llama_models.draft),
    )  # fmt: skip


@pytest.fixture
async def console() -> AsyncIterator[Console]:
    async with open_supervisor(("local",)) as console:
        yield console
        for view in list(console.board.launches.values()):
            if view.state not in ENDED:
                await console.commands.stop(view.launch_id)


def answers(view: LaunchView) -> bool:
    return view.state == "answers" or view.state in ENDED


async def test_a_start_is_told_step_by_step_and_kept_for_the_next(console: Console, profile: Path) -> None:
    launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
    seen: list[tuple[str, str]] = []

    def watch(view: LaunchView) -> bool:
        if not seen or seen[-1] != (view.state, view.health):
            seen.append((view.state, view.health))
        return answers(view)

    view = await console.supervisor.wait(launch_id, watch, timeout_s=90)
    assert view.state == "answers", view
    states = list(dict.fromkeys(state for state, _ in seen))
    assert states == [state for state in ("preparing", "starting", "loading", "answers") if state in states]
    # llama.cpp's port opens before its model is loaded: 503 (or refused before) is seen, never an answer.
    assert ("answers", "503") not in seen
    assert {"503", "refused"} & {health for _, health in seen}
    pid = console.supervisor.find(launch_id).record.process
    assert pid is not None
    assert environ_of(pid.pid)[b"SPECCONSOLE_LAUNCH"] == launch_id.encode()
    assert view.answered_after_s is not None
    assert view.age_s is not None
    assert 0 < view.answered_after_s <= view.age_s + 3
    assert [fact.kind for fact in console.board.facts if fact.subject == launch_id].count("answers") == 1
    again = await console.commands.relaunch(launch_id, {"ctx_size": 512})
    first, second = console.board.launches[launch_id], console.board.launches[again]
    assert first.state == "stopped"
    assert not is_alive(pid.pid)
    second = await console.supervisor.wait(again, answers, timeout_s=90)
    assert second.state == "answers"
    assert "--ctx-size 512" in second.command
    assert second.last_start_s == pytest.approx(view.answered_after_s, abs=0.01)
    assert second.history_note.startswith("last: 0:")

    def stored() -> list[tuple[str]]:
        with sqlite3.connect(state_folder() / "store.sqlite") as db:
            return db.execute("SELECT DISTINCT launch_id FROM phase_samples ORDER BY launch_id").fetchall()

    assert await asyncio.to_thread(stored) == [(launch_id,), (again,)]


async def test_a_server_killed_from_outside_is_failed_at_once(console: Console, profile: Path) -> None:
    launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
    await console.supervisor.wait(launch_id, answers, timeout_s=90)
    process = console.supervisor.find(launch_id).record.process
    assert process is not None
    os.kill(process.pid, 9)
    view = await console.supervisor.wait(launch_id, lambda view: view.state in ENDED, timeout_s=30)
    await console.supervisor.find(launch_id).settled()
    view = console.board.launches[launch_id]
    assert (view.state, view.exit_status, view.left_over) == ("failed", 137, ())
    assert view.reading is not None
    assert view.reading.failure is not None
    assert view.reading.failure.failure_class == "killed"


async def test_a_server_told_to_end_by_hand_is_stopped_and_not_failed(console: Console, profile: Path) -> None:
    launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
    await console.supervisor.wait(launch_id, answers, timeout_s=90)
    process = console.supervisor.find(launch_id).record.process
    assert process is not None
    os.kill(process.pid, 15)
    view = await console.supervisor.wait(launch_id, lambda view: view.state in ENDED, timeout_s=30)
    assert (view.state, view.exit_status) == ("stopped", 0)


async def test_three_at_once_get_ports_of_their_own(console: Console, profile: Path) -> None:
    ids = await asyncio.gather(*(console.commands.launch(LaunchOrder(str(profile), "local")) for _ in range(3)))
    views = [await console.supervisor.wait(one, answers, timeout_s=120) for one in ids]
    assert {view.state for view in views} == {"answers"}
    assert len({view.port for view in views}) == 3
    for one in ids:
        event = await console.commands.stop_telling(one, lambda _: None)
        assert event.clean
        assert not event.killed, "our own question kept it from ending"


async def test_a_second_console_sees_and_follows_what_the_first_started(console: Console, profile: Path) -> None:
    launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
    await console.supervisor.wait(launch_id, answers, timeout_s=90)
    async with open_supervisor(("local",), read_only=True) as other:
        await other.supervisor.discovered("local")
        view = await other.supervisor.wait(launch_id, answers, timeout_s=30)
        assert view.state == "answers"
        assert view.answered_after_s == pytest.approx(console.board.launches[launch_id].answered_after_s, abs=0.01)
        with pytest.raises(RefusedError, match="read-only"):
            await other.commands.stop(launch_id)
        await console.commands.stop(launch_id)
        ended = await other.supervisor.wait(launch_id, lambda view: view.state in ENDED, timeout_s=30)
        assert ended.state == "stopped"


async def test_a_console_that_only_looks_leaves_the_launchs_folder_as_it_was(profile: Path) -> None:
    async with open_supervisor(("local",)) as first:
        launch_id = await first.commands.launch(LaunchOrder(str(profile), "local"))
        folder = Path(first.supervisor.find(launch_id).record.folder)
    before = await asyncio.to_thread(os.listdir, folder)
    async with open_supervisor(("local",), read_only=True) as other:
        await other.supervisor.discovered("local")
        view = await other.supervisor.wait(launch_id, answers, timeout_s=90)
        assert view.state == "answers"
    assert sorted(await asyncio.to_thread(os.listdir, folder)) == sorted(before)
    async with open_supervisor(("local",)) as last:
        await last.supervisor.discovered("local")
        await last.commands.stop(launch_id)
