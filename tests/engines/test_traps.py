"""The traps that real engines set in their life cycle, each sprung on a real server of theirs."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from specconsole.core.views.launch import LaunchView
from specconsole.demo.models import ModelFiles, ModelShape, write_models
from specconsole.demo.vocabulary import build_vocabulary
from specconsole.errors import BadInputError, RefusedError
from specconsole.services.commands import LaunchOrder
from specconsole.wiring import Console
from tests.engines import engines, watched, witness
from tests.engines.conftest import need
from tests.engines.support.checkpoints import SHAPE, Checkpoints, write_checkpoints, write_eagle3
from tests.support.sshd_lab import SshdLab


@contextmanager
def held_port() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield int(holder.getsockname()[1])


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
async def test_a_port_that_is_taken_is_refused_before_anything_is_loaded(
    console: Console, sshd: SshdLab, tmp_path: Path, checkpoints: Checkpoints, engine: str
) -> None:
    need(engine)
    recipe = engines.vllm("none", checkpoints) if engine == "vllm" else engines.sglang("none", checkpoints)
    with held_port() as port:
        profile = recipe.write(tmp_path, port=port)
        began_s = time.monotonic()
        with pytest.raises(RefusedError, match=str(port)):
            await console.commands.launch(LaunchOrder(str(profile), sshd.accounts[0]))
        assert time.monotonic() - began_s < 20
    assert not [view for view in console.board.launches.values() if view.port == port]


async def test_sglang_whose_port_is_taken_while_it_loads_reads_port_in_use(
    console: Console, sshd: SshdLab, tmp_path: Path, checkpoints: Checkpoints
) -> None:
    need("sglang")
    start = await watched.start(console, sshd.accounts[0], engines.sglang("none", checkpoints).write(tmp_path))
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", start.port))
        thief.listen()
        view = await console.supervisor.wait(start.launch_id, lambda view: failed_as(view) is not None, timeout_s=400)
        assert failed_as(view) == "port-in-use"
        assert view.state != "answers"
        left = await asyncio.to_thread(witness.left_of, start.launch_id, start.session)
        event = await console.commands.stop_telling(start.launch_id, lambda event: None)
        assert await asyncio.to_thread(witness.left_of, start.launch_id, start.session) == {}
        # It hung (0.5.17): then it took the stop to end it.
        assert not left or event.alive == 0


def failed_as(view: LaunchView) -> str | None:
    failure = view.reading.failure if view.reading is not None else None
    return failure.failure_class if failure is not None else None


async def test_vllm_with_a_draft_that_kills_it_never_counts_as_answering(
    console: Console, sshd: SshdLab, tmp_path: Path
) -> None:
    """Four layers: two of the three that the head taps are one (0.32 starts healthy and dies at the first request).

    Refused before a start; started all the same, the log must say the same.
    """
    need("vllm")
    models = write_checkpoints(tmp_path / "models", shape=replace(SHAPE, layers=4), shards=4)
    profile = engines.vllm("eagle3", models).write(tmp_path)
    with pytest.raises(BadInputError, match="coincide"):
        await console.commands.launch(LaunchOrder(str(profile), sshd.accounts[0]))
    start = await watched.start(console, sshd.accounts[0], profile, preflight=False)
    states: set[str] = set()

    def over(view: LaunchView) -> bool:
        states.add(view.state)
        return view.state == "failed"

    view = await console.supervisor.wait(start.launch_id, over, timeout_s=400)
    assert "answers" not in states
    assert failed_as(view) in ("draft-mismatch", "code-error", "device-error")
    assert view.reading is not None
    assert view.reading.failure is not None
    # What it taps is two layers wide and not three; which kernel says so depends on the CPU.
    assert any(words in (view.reading.failure.line or "") for words in ("shape", "512 vs 768"))


async def test_sglang_with_drafts_that_do_not_fit(
    console: Console, sshd: SshdLab, tmp_path: Path, checkpoints: Checkpoints
) -> None:
    """Without the map back (`d2t`) it serves at accept length 1.00; of another width it dies in its warm-up."""
    need("sglang")
    vocabulary = build_vocabulary()
    embedding = np.random.default_rng(1).standard_normal((vocabulary.size, SHAPE.hidden), dtype=np.float32)
    away = np.arange(vocabulary.size)
    write_eagle3(tmp_path / "no-map", SHAPE, vocabulary, embedding, away, draft_vocabulary=256)
    write_eagle3(tmp_path / "wide", SHAPE, vocabulary, embedding, away, hidden_in_config=512)
    recipe = engines.sglang("eagle3", checkpoints)

    useless = replace(recipe, draft_model=str(tmp_path / "no-map")).write(tmp_path, name="no-map")
    assert await forbidden(console, useless, sshd.accounts[0]) == [("draft", "d2t-missing")]
    start = await watched.start(console, sshd.accounts[0], useless, preflight=False)
    await watched.answers(console, start)
    await asyncio.to_thread(witness.complete, start.port, 200)
    view = await console.supervisor.wait(start.launch_id, lambda view: bool(warnings_of(view)), timeout_s=60)
    assert "speculation-useless" in warnings_of(view)
    assert view.reading is not None
    assert view.reading.metrics is not None
    assert view.reading.metrics.accept_length == pytest.approx(1.0, abs=0.05)
    await watched.stop(console, start)

    wide = replace(recipe, draft_model=str(tmp_path / "wide")).write(tmp_path, name="wide")
    assert await forbidden(console, wide, sshd.accounts[0]) == [("draft", "hidden-size"), ("draft", "fc-shape")]
    start = await watched.start(console, sshd.accounts[0], wide, preflight=False)
    view = await console.supervisor.wait(start.launch_id, lambda view: failed_as(view) is not None, timeout_s=400)
    assert failed_as(view) == "draft-mismatch"
    event = await console.commands.stop_telling(start.launch_id, lambda event: None)
    assert event.alive == 0


async def forbidden(console: Console, profile: Path, host: str) -> list[tuple[str, str]]:
    """What preflight says against a start."""
    findings = await console.commands.preflight(LaunchOrder(str(profile), host), lambda one: None, lambda text: None)
    return [(one.check, one.name) for one in findings if one.severity == "stop"]


def warnings_of(view: LaunchView) -> set[str]:
    return {warning.warning_class for warning in view.reading.warnings} if view.reading is not None else set()


async def test_llamacpp_with_another_vocabulary_runs_without_speculation_and_it_is_said(
    console: Console, sshd: SshdLab, tmp_path: Path, llama_models: ModelFiles
) -> None:
    other = await asyncio.to_thread(write_models, tmp_path / "other", ModelShape(seed=11), name="other")
    broken = tmp_path / "draft.gguf"
    # One token spelled otherwise makes it another vocabulary; every length stays as it was.
    broken.write_bytes(other.draft.read_bytes().replace("Ġdraft".encode(), "Ġdrafs".encode()))
    start = await watched.start(
        console, sshd.accounts[0], engines.llamacpp(llama_models.target, broken).write(tmp_path)
    )
    await watched.answers(console, start)
    await console.supervisor.find(start.launch_id).account.settled()
    account = console.board.launches[start.launch_id].account
    assert account is not None
    assert account.effective.speculation.on is False
    assert account.speculation_off
    facts = [fact.text for fact in console.board.facts if fact.subject == start.launch_id]
    assert any("without speculation" in text for text in facts)
    await watched.stop(console, start)
