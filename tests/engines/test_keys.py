"""Keys that real engines print, in their logs and to whoever asks: on no screen, in no file and no export of ours."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from specconsole.wiring import Console
from tests.engines import engines, secrecy, watched, witness
from tests.engines.conftest import need
from tests.engines.engines import Recipe
from tests.engines.secrecy import KEY, TOKEN
from tests.engines.support.checkpoints import Checkpoints
from tests.support.sshd_lab import SshdLab
from tests.support.tmux import Tmux


def printing(recipe: Recipe, name: str, folder: Path) -> Path:
    """A profile whose command prints a token and gives the key as a flag, as people do; `exec` keeps the process
    ours."""
    words = " ".join(recipe.command)
    # A limit that cannot be raised makes vLLM warn of an `OSError` that it does not have.
    script = f'ulimit -n 4096; echo "downloading with token $HF_TOKEN"; exec {words} --api-key "${name}" "$@"'
    return replace(recipe, command=("sh", "-c", script, "sh")).write(
        folder, secrets={name: "env:PLANTED", "HF_TOKEN": "env:PLANTED_TOKEN"}
    )


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED", KEY)
    monkeypatch.setenv("PLANTED_TOKEN", TOKEN)


async def test_sglang_prints_its_key_and_we_do_not(
    console: Console, sshd: SshdLab, tmp_path: Path, checkpoints: Checkpoints, start_tmux: Callable[..., Tmux]
) -> None:
    need("sglang")
    profile = printing(engines.sglang("none", checkpoints), "SGLANG_API_KEY", tmp_path)
    start = await watched.start(console, sshd.accounts[0], profile)
    await watched.answers(console, start)
    assert KEY in witness.get(start.port, "/server_info", key=KEY)[1], "the trap: it tells it to whoever may ask"
    printed = (KEY, TOKEN)
    await secrecy.kept(console, start, printed=printed)
    await secrecy.sent(console, start, tmp_path)
    await asyncio.to_thread(
        secrecy.shown,
        start_tmux,
        sshd.accounts[0],
        tmp_path / "window",
        profile.stem,
        held="server_args",
        printed=printed,
    )
    event, _ = await watched.stop(console, start)
    # 137 (or -9): it ends its own tree with KILL, which is a clean stop all the same.
    assert event.exit_status in (0, 137)


async def test_vllm_prints_a_token_and_we_do_not(
    console: Console, sshd: SshdLab, tmp_path: Path, checkpoints: Checkpoints, start_tmux: Callable[..., Tmux]
) -> None:
    """And two of its words that mean nothing: an `OSError` in a healthy start, exit status 0 after a crash."""
    need("vllm")
    profile = printing(engines.vllm("none", checkpoints), "VLLM_API_KEY", tmp_path)
    start = await watched.start(console, sshd.accounts[0], profile)
    view = await watched.answers(console, start)
    assert witness.get(start.port, "/v1/models")[0] == 401, "the server does ask for its key"
    assert "OSError: [Errno 24]" in Path(view.log_path or "").read_text(errors="replace")
    assert view.reading is not None
    assert (view.reading.failure, view.reading.suspect) == (None, None)
    # 0.32 stars the key in its arguments line by itself.
    await secrecy.kept(console, start, printed=(TOKEN,))
    await secrecy.sent(console, start, tmp_path)
    await asyncio.to_thread(
        secrecy.shown,
        start_tmux,
        sshd.accounts[0],
        tmp_path / "window",
        profile.stem,
        held="non-default args",
        printed=(TOKEN,),
    )

    (engine,) = witness.pids_named(start.launch_id, "EngineCore")
    os.kill(engine, signal.SIGKILL)
    view = await console.supervisor.wait(start.launch_id, lambda view: view.state == "failed", timeout_s=120)
    assert console.supervisor.find(start.launch_id).record.exit_status == 0, "the trap: its front ends in order"
    assert view.reading is not None
    assert view.reading.failure is not None
    event = await console.commands.stop_telling(start.launch_id, lambda event: None)
    assert event.alive == 0
    assert await asyncio.to_thread(witness.left_of, start.launch_id, start.session) == {}
