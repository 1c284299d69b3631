"""vLLM stopped while it compiles: its compilers have names that say nothing of it, and TERM is ignored."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from specconsole.wiring import Console
from tests.engines import engines, watched, witness
from tests.engines.conftest import need
from tests.engines.support.checkpoints import Checkpoints
from tests.support.sshd_lab import SshdLab

COMPILERS = ("cc1plus", "g++", "c++", "compile_worker")


async def test_compilers_go_with_the_server_that_started_them(
    console: Console, sshd: SshdLab, tmp_path: Path, checkpoints: Checkpoints
) -> None:
    need("vllm")
    recipe = engines.vllm("none", checkpoints)
    args = {key: value for key, value in recipe.args.items() if key != "enforce_eager"}
    # A cache of its own: whatever was compiled before, it compiles.
    recipe = replace(recipe, args=args, env={**recipe.env, "VLLM_CACHE_ROOT": str(tmp_path / "cache")})
    start = await watched.start(console, sshd.accounts[0], recipe.write(tmp_path))
    await watched.until(console, start, lambda view: view.reading is not None and view.reading.phase == "compile")
    seen: dict[int, str] = {}

    def compilers() -> bool:
        found = witness.left_of(start.launch_id, start.session)
        seen.update({pid: line for pid, line in found.items() if any(word in line for word in COMPILERS)})
        return bool(seen)

    await asyncio.to_thread(witness.wait_for, compilers, 240, "a compiler runs")
    assert "stalled" not in start.states
    event, _ = await watched.stop(console, start)
    assert event.alive == 0
    assert not [pid for pid in seen if await asyncio.to_thread(Path(f"/proc/{pid}").exists)]
