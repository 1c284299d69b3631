"""How a real llama.cpp server runs by its own account: on the board, in its folder, in the store, and elsewhere."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.views.launch import LaunchView
from specconsole.demo.models import ModelFiles
from specconsole.services.commands import LaunchOrder
from specconsole.wiring import open_supervisor, state_folder
from tests.cli.console import write_profile
from tests.support.llama import MODULE

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


def _props(port: int | None) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/props", timeout=10) as answer:
        return json.loads(answer.read())


def known(view: LaunchView) -> bool:
    return view.account is not None


async def test_the_account_is_found_kept_and_read_by_another_console(tmp_path: Path, llama_models: ModelFiles) -> None:
    profile = write_profile(
        tmp_path, "tiny", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=10,
        model=str(llama_models.target), draft_model=str(llama_models.draft), args={"ctx_size": 512, "parallel": 2},
    )  # fmt: skip
    async with open_supervisor(("local",)) as console:
        launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
        view = await console.supervisor.wait(launch_id, known, timeout_s=90)
        assert view.account is not None
        found = view.account.effective
        props = await asyncio.to_thread(_props, view.port)
        assert found.speculation.on is True
        assert found.running_cap == props["total_slots"] == 2
        assert found.context == props["default_generation_settings"]["n_ctx"]
        assert found.build["version"] == props["build_info"]
        assert found.build["python"] == sys.version.split()[0]
        assert not view.account.speculation_off
        assert {report.key: report.state for report in view.account.reports}["parallel"] == "as-asked"
        assert view.log_path is not None
        kept = Path(view.log_path).parent / "effective.json"
        assert json.loads(kept.read_text())["effective"]["running_cap"] == 2
        assert kept.stat().st_mode & 0o777 == 0o600
        with sqlite3.connect(state_folder() / "store.sqlite") as store:
            assert any("effective" in str(row) for row in store.iterdump())

    # Another console asks no server: what is kept is the answer.
    kept.write_text(kept.read_text().replace('"running_cap": 2', '"running_cap": 77'))
    async with open_supervisor(("local",)) as other:
        await other.supervisor.discovered("local")
        again = await other.supervisor.wait(launch_id, known, timeout_s=60)
        assert again.account is not None
        assert again.account.effective.running_cap == 77
        await other.commands.stop(launch_id)
        ended = await other.supervisor.wait(launch_id, lambda view: view.state == "stopped", timeout_s=30)
        assert ended.account is not None, "what it ran with outlives it"
