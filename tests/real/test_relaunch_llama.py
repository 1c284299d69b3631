"""Relaunching real llama.cpp servers: exactly as launched, from the history; after a failure, with what is proposed."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.views.launch import LaunchView
from specconsole.demo.models import ModelFiles
from specconsole.errors import RefusedError
from specconsole.services.commands import LaunchOrder
from specconsole.ui.text.card_text import change_text, proposed_change
from specconsole.wiring import open_supervisor
from tests.cli.console import write_profile
from tests.support.llama import MODULE
from tests.support.waiting import free_port

pytestmark = [pytest.mark.faults, pytest.mark.timeout(180)]


def answers(view: LaunchView) -> bool:
    return view.state == "answers"


def failed(view: LaunchView) -> bool:
    return view.state == "failed" and proposed_change(view) != {}


def asked(view: LaunchView) -> dict[str, Any]:
    assert view.log_path is not None
    shape: dict[str, Any] = json.loads((Path(view.log_path).parent / "requested.json").read_text())
    return shape


def status_of(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
        return int(answer.status)


async def test_an_ended_launch_is_started_again_exactly_as_it_was(tmp_path: Path, llama_models: ModelFiles) -> None:
    profile = write_profile(
        tmp_path, "tiny", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=10,
        model=str(llama_models.target), draft_model=str(llama_models.draft), args={"ctx_size": 512},
    )  # fmt: skip
    overrides = {"ctx_size": 1024, "parallel": 3, "env.OMP_NUM_THREADS": "1"}
    async with open_supervisor(("local",)) as console:
        first_id = await console.commands.launch(LaunchOrder(str(profile), "local", overrides))
        first = await console.supervisor.wait(first_id, answers, timeout_s=90)
        wanted = asked(first)
        await console.commands.stop(first_id)
    profile.unlink()
    # Another console, long after: the launch is not watched until it is opened from the history.
    async with open_supervisor(()) as console:
        await console.supervisor.host("local")
        assert first_id not in console.board.launches
        again_id = await console.commands.relaunch(first_id, {})
        again = await console.supervisor.wait(again_id, answers, timeout_s=90)
        try:
            got = asked(again)
            for key in ("argv", "env", "port", "settings", "model", "draft_model", "profile"):
                assert got[key] == wanted[key], key
            assert "--parallel" in got["argv"]
            pid = again.processes[0][0]
            assert Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1] == wanted["argv"]
            difference = await console.history.difference(first_id, again_id)
            assert [row.key for row in difference.rows if row.section in ("flags", "settings") and row.differs] == []
        finally:
            await console.commands.stop(again_id)


async def test_a_launch_on_a_host_that_is_not_there_is_shown_and_not_started(
    tmp_path: Path, llama_models: ModelFiles
) -> None:
    profile = write_profile(
        tmp_path, "tiny", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=10, model=str(llama_models.target)
    )
    async with open_supervisor(("local",)) as console:
        first_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
        view = await console.supervisor.wait(first_id, answers, timeout_s=90)
        folder = Path(str(view.log_path)).parent
        size = (folder / "server.log").stat().st_size
        await console.commands.stop(first_id)
    log = (folder / "server.log").read_text()
    async with open_supervisor(()) as console:
        # Not even this machine is open here.
        assert "not watched here" in await console.history.open(first_id)
        shown = console.board.launches[first_id]
        assert (shown.state, shown.stale_since_s is not None, shown.name) == ("stopped", True, "tiny")
        assert shown.reading is not None
        assert shown.reading.engine == "llamacpp"
        source = console.commands.line_source(first_id)
        assert source is not None
        assert source.size_bytes >= size
        assert source.lines(0, 3) == log.splitlines()[:3]
        with pytest.raises(RefusedError, match="local is not watched here"):
            await console.commands.relaunch(first_id, {})
    shutil.rmtree(folder)
    async with open_supervisor(()) as console:
        await console.supervisor.host("local")
        assert "folder is gone" in await console.history.open(first_id)
        with pytest.raises(RefusedError, match="folder is gone"):
            await console.commands.relaunch(first_id, {})
        assert console.commands.line_source(first_id) is not None


async def test_a_port_that_was_taken_meanwhile_is_answered_by_a_free_one(
    tmp_path: Path, llama_models: ModelFiles
) -> None:
    port = free_port()
    waits = ["sh", "-c", f'while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exec "$@"', "sh"]
    profile = write_profile(
        tmp_path, "late", [*waits, sys.executable, "-m", MODULE], engine="llamacpp", grace_s=10, port=port,
        model=str(llama_models.target),
    )  # fmt: skip
    async with open_supervisor(("local",)) as console:
        launch_id = await console.commands.launch(LaunchOrder(str(profile), "local", preflight=False))
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
            taken.listen()
            (tmp_path / "go").touch()
            view = await console.supervisor.wait(launch_id, failed, timeout_s=90)
            assert view.reading is not None
            assert view.reading.failure is not None
            assert view.reading.failure.failure_class == "port-in-use"
            change = dict(proposed_change(view))
            assert list(change) == ["port"]
            assert change["port"] != port
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", change["port"]))
            assert view.reading.failure.advice is not None
            assert f"port {port} -> {change['port']}" in view.reading.failure.advice.text
            assert change_text(change, {"port": port}) == f"port {port} -> {change['port']}"
            again_id = await console.commands.relaunch(launch_id, change)
            again = await console.supervisor.wait(again_id, answers, timeout_s=90)
            assert again.port == change["port"]
            assert await asyncio.to_thread(status_of, change["port"]) == 200
        await console.commands.stop(again_id)
