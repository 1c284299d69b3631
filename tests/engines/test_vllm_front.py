"""vLLM's front says 200 whatever its engine does: what looking behind it costs, and what it brings to light."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

from specconsole.wiring import Console
from tests.engines import engines, watched, witness
from tests.engines.conftest import need
from tests.engines.support.checkpoints import Checkpoints
from tests.support.sshd_lab import SshdLab

PROBE_TOKENS = 16
REQUESTS, TOKENS = "vllm:request_success_total", "vllm:generation_tokens_total"


async def test_vllm_behind_a_healthy_front(
    console: Console, sshd: SshdLab, tmp_path: Path, checkpoints: Checkpoints
) -> None:
    """One server for three traps: what a look costs while idle, a frozen engine, KILL of its front and orphans."""
    need("vllm")
    start = await watched.start(console, sshd.accounts[0], engines.vllm("none", checkpoints).write(tmp_path))
    await watched.answers(console, start)
    await asyncio.to_thread(_idle_costs_little, start)

    (engine,) = witness.pids_named(start.launch_id, "EngineCore")
    os.kill(engine, signal.SIGSTOP)
    frozen_s = time.monotonic()
    try:
        view = await console.supervisor.wait(start.launch_id, lambda view: view.state == "not-answering", timeout_s=240)
        assert witness.get(start.port, "/health")[0] == 200, "its front says 200 all the while"
        assert "health is 200" in view.health_detail
        # A minute until the next look, thirty seconds for it, and twice: one that fails is no verdict.
        assert time.monotonic() - frozen_s < 180
    finally:
        os.kill(engine, signal.SIGCONT)
    await console.supervisor.wait(start.launch_id, lambda view: view.state == "answers", timeout_s=240)

    os.kill(start.session, signal.SIGKILL)  # the API server leads its session
    view = await console.supervisor.wait(start.launch_id, lambda view: view.state == "failed", timeout_s=60)
    left = await asyncio.to_thread(witness.left_of, start.launch_id, start.session)
    assert any("EngineCore" in command for command in left.values()), "KILL of the front leaves the engine"
    assert any("EngineCore" in line for line in view.left_over), view.left_over
    event = await console.commands.stop_telling(start.launch_id, lambda event: None)
    assert event.alive == 0
    assert await asyncio.to_thread(witness.left_of, start.launch_id, start.session) == {}


def _idle_costs_little(start: watched.Start) -> None:
    """By the server's own counters: one request of sixteen tokens, about a minute after the one that proved it."""
    before, began_s = witness.counters(start.port), time.monotonic()
    witness.wait_for(lambda: witness.counters(start.port)[TOKENS] != before[TOKENS], 120, "a look behind the front")
    took_s = time.monotonic() - began_s
    witness.wait_for(lambda: witness.counters(start.port)[REQUESTS] != before[REQUESTS], 30, "it is whole")
    after = witness.counters(start.port)
    assert after[TOKENS] - before[TOKENS] == PROBE_TOKENS
    assert after[REQUESTS] - before[REQUESTS] == 1
    assert took_s > 45, "not more than once a minute"
