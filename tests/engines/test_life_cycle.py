"""Every engine with every speculation: started by a profile over a real sshd, watched, asked, measured, stopped.

Witnesses: the server's own /metrics and `usage`, read here without product code; /proc for what is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from specconsole.core.reading.reading import Reader
from specconsole.core.views.launch import LaunchView
from specconsole.demo.models import ModelFiles
from specconsole.wiring import Console
from tests.engines import engines, watched, witness
from tests.engines.conftest import need
from tests.engines.engines import Recipe
from tests.engines.support.checkpoints import Checkpoints
from tests.engines.tables import table_row
from tests.support.sshd_lab import SshdLab

TOKENS = 240
LOADING = ("distributed", "weights", "kv-cache", "compile", "graph-capture", "warm-up")

STATES: dict[str, Callable[[LaunchView], bool]] = {
    "starting": lambda view: view.state == "starting",
    "loading": lambda view: view.reading is not None and view.reading.phase in LOADING,
    "warm-up": lambda view: view.reading is not None and view.reading.phase in ("warm-up", "ready"),
}


async def broken_off(console: Console, host: str, recipe: Recipe, folder: Path, state: str) -> None:
    """Stopped on its way up: nothing may be left, whatever the engine makes of a signal there."""
    start = await watched.start(console, host, recipe.write(folder))
    await watched.until(console, start, STATES[state])
    event, took_s = await watched.stop(console, start)
    killed = " (KILL)" if event.killed else ""
    table_row(recipe.engine, recipe.speculation).stops[f"{state}{killed}"] = took_s


async def lives(console: Console, host: str, recipe: Recipe, folder: Path, *, starts: int = 2) -> None:
    """Full starts: all but the last are stopped idle, the last is asked, measured and stopped with a stream open."""
    row = table_row(recipe.engine, recipe.speculation)
    profile = recipe.write(folder)
    for number in range(starts):
        start = await watched.start(console, host, profile)
        view = await watched.answers(console, start)
        row.answered_s = view.answered_after_s
        # Imports are silent for 15 to 20 s and more, in each of its processes.
        assert "stalled" not in start.states
        if number:
            assert start.told, "no estimate although it was started before"
        if number:
            row.eta_error = start.eta_error()
        assert view.reading is not None
        weights = [phase for phase in start.phases if phase.startswith("weights")]
        assert weights or recipe.engine == "llamacpp", start.phases
        if number < starts - 1:
            _, row.stops["idle"] = await watched.stop(console, start)
            continue
        await measured(console, start, recipe)
        await accounted(console, start, recipe)
        stream = await asyncio.to_thread(witness.open_stream, start.port, 1500, model=_model(recipe))
        try:
            _, row.stops["stream open"] = await watched.stop(console, start)
        finally:
            stream.close()


async def measured(console: Console, start: watched.Start, recipe: Recipe) -> None:
    """Accept length while it works: what the log pane shows against the server's counters over the same requests."""
    row = table_row(recipe.engine, recipe.speculation)
    before = await asyncio.to_thread(witness.counters, start.port)
    read_before = console.supervisor.find(start.launch_id).intake.reader.offset
    shown: list[float] = []

    def note(view: object) -> bool:
        reading = console.board.launches[start.launch_id].reading
        found = reading.metrics.accept_length if reading is not None and reading.metrics is not None else None
        if found is not None and (not shown or shown[-1] != found):
            shown.append(found)
        return asked.done()

    asked = asyncio.ensure_future(asyncio.to_thread(_requests, start.port, _model(recipe)))
    await console.supervisor.wait(start.launch_id, note, timeout_s=600)
    assert await asked == 3 * TOKENS
    # vLLM says it every ten seconds only.
    await console.supervisor.wait(start.launch_id, lambda view: bool(note(view) and shown), timeout_s=30)
    after = await asyncio.to_thread(witness.counters, start.port)
    row.accept_counters = witness.accept_length(recipe.engine, before, after)
    read = await asyncio.to_thread(_windows, console, start, read_before)
    # vLLM's windows are of ten seconds, whatever was done in them; the others' are of equal work.
    row.accept_ours = read[-1] if recipe.engine == "vllm" else sum(read) / len(read)
    assert shown[-1] in read
    assert row.accept_ours == pytest.approx(row.accept_counters, rel=0.25)


def _windows(console: Console, start: watched.Start, begin: int) -> list[float]:
    """Every accept length that the product read from the log since `begin`, in order."""
    spool = console.supervisor.find(start.launch_id).intake.spool
    assert spool is not None
    log = spool.raw(0, spool.size_bytes)
    reader = Reader(engine=console.board.launches[start.launch_id].engine)
    reader.feed(log[:begin])
    found: list[float] = []
    for line in log[begin:].splitlines(keepends=True):
        reader.feed(line)
        metrics = reader.reading().metrics
        if b"accept" in line.lower() and metrics is not None and metrics.accept_length is not None:
            found.append(metrics.accept_length)
    return found


def _requests(port: int, model: str) -> int:
    return sum(witness.complete(port, TOKENS, model=model) for _ in range(3))


async def accounted(console: Console, start: watched.Start, recipe: Recipe) -> None:
    """What it really runs with, by its own account."""
    await console.supervisor.find(start.launch_id).account.settled()
    account = console.board.launches[start.launch_id].account
    assert account is not None
    found = account.effective
    assert found.speculation.on is True
    assert not account.speculation_off
    assert found.build.get("version"), found.build
    assert found.kv_tokens is not None
    assert found.context is not None
    if recipe.engine != "llamacpp":
        assert found.build.get("torch", "").startswith("2.13.0"), found.build
        wanted = {"eagle3": "eagle3", "draft": "standalone" if recipe.engine == "sglang" else "draft_model"}
        assert (found.speculation.algorithm or "").lower() == wanted.get(recipe.speculation, recipe.speculation)
    odd = [report for report in account.reports if report.state in ("overridden", "ignored")]
    assert odd == [], odd


def _model(recipe: Recipe) -> str:
    return "tiny" if recipe.engine != "llamacpp" else ""


async def test_llamacpp_with_a_draft(
    console: Console, sshd: SshdLab, tmp_path: Path, slow_llama_models: ModelFiles
) -> None:
    recipe = engines.llamacpp(slow_llama_models.target, slow_llama_models.draft)
    await lives(console, sshd.accounts[0], recipe, tmp_path)


@pytest.mark.parametrize("speculation", ["eagle3", "draft", "ngram"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
async def test_a_start_is_watched_measured_and_stopped(
    console: Console, sshd: SshdLab, tmp_path: Path, checkpoints: Checkpoints, checkpoints_64: Checkpoints,
    engine: str, speculation: str,
) -> None:  # fmt: skip
    need(engine)
    make: Callable[[str, Checkpoints], Recipe] = {"vllm": engines.vllm, "sglang": engines.sglang}[engine]
    recipe = make(speculation, checkpoints_64 if speculation == "draft" else checkpoints)
    for state in {"draft": ["starting"], "ngram": ["loading", "warm-up"]}.get(speculation, []):
        await broken_off(console, sshd.accounts[0], recipe, tmp_path, state)
    # The second start of a kind is foretold from the first.
    await lives(console, sshd.accounts[0], recipe, tmp_path)
