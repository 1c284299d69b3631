"""A start that cannot go well: refused before anything is loaded, and, launched all the same, read as the same cause.

llama.cpp where it has the fault (a tenth of a second), else vLLM; a draft without `d2t` is SGLang's (test_traps.py).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from specconsole.core.launching.preflight import Finding
from specconsole.demo.models import ModelFiles
from specconsole.demo.vocabulary import build_vocabulary
from specconsole.errors import SpecconsoleError
from specconsole.services.commands import LaunchOrder
from specconsole.wiring import Console
from tests.engines import engines, watched, witness
from tests.engines.conftest import need
from tests.engines.engines import Recipe
from tests.engines.support.checkpoints import SHAPE, Checkpoints, write_eagle3
from tests.support.sshd_lab import SshdLab
from tests.support.waiting import free_port


@dataclass(frozen=True)
class Fault:
    """What is wrong, what says so before, and what the log then says."""

    engine: str
    check: tuple[str, str]
    """`check` and `name` of the finding that stops the start."""
    read_as: tuple[str, ...]
    """Failure classes that name the same cause."""
    evidence: str
    """What the line of the cause says, in the server's words."""


FAULTS = {
    "port-taken": Fault("llamacpp", ("port", ""), ("port-in-use",), "bind"),
    "no-such-model": Fault("llamacpp", ("model", ""), ("model-not-found",), "No such file"),
    "truncated-file": Fault("llamacpp", ("model", "shard-damaged"), ("checkpoint-corrupt",), "not within"),
    "unknown-flag": Fault("llamacpp", ("flag", "no_such_flag"), ("bad-argument",), "unrecognized arguments"),
    "missing-shard": Fault("vllm", ("model", "shards-missing"), ("model-not-found", "checkpoint-corrupt"), "missing"),
    "truncated-shard": Fault("vllm", ("model", "shard-damaged"), ("checkpoint-corrupt",), "not fully covered"),
    "draft-of-another-width": Fault("vllm", ("draft", "fc-shape"), ("draft-mismatch",), ""),
    "context-too-long": Fault("vllm", ("rule", "context-beyond-model"), ("context-too-long",), "max_model_len"),
    "memory-too-small": Fault("vllm", ("memory", "estimate"), ("kv-cache-too-small",), "KV cache is needed"),
    "unknown-flag-vllm": Fault("vllm", ("flag", "no_such_flag"), ("bad-argument",), "unrecognized arguments"),
    "bad-combination": Fault("vllm", ("rule", "draft-parallel"), ("bad-argument",), "cannot be other value"),
}


class Port:
    """A port that is somebody else's, but for the moment of our start."""

    def __init__(self) -> None:
        self.number = free_port()
        self._holder: socket.socket | None = None
        self.take()

    def take(self) -> None:
        self._holder = socket.socket()
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._holder.bind(("127.0.0.1", self.number))
        self._holder.listen()

    def leave(self) -> None:
        if self._holder is not None:
            self._holder.close()


@pytest.fixture
def taken() -> Iterator[Port]:
    port = Port()
    yield port
    port.leave()


@pytest.fixture
def profiles(
    tmp_path: Path, checkpoints: Checkpoints, llama_models: ModelFiles, taken: Port
) -> dict[str, Callable[[], Path]]:
    """Fault -> what writes its profile."""
    llama = engines.llamacpp(llama_models.target, None)
    vllm = engines.vllm("none", checkpoints)
    # A port is refused with or without preflight: it is taken while the server is on its way.
    late = replace(llama, command=("sh", "-c", f'sleep 3; exec {shlex.join(llama.command)} "$@"', "sh"))

    def other_model(recipe: Recipe, path: Path) -> Path:
        return replace(recipe, model=str(path)).write(tmp_path)

    def cut(path: Path) -> Path:
        os.truncate(path, path.stat().st_size // 2)
        return path

    def copied(change: Callable[[Path], object]) -> Path:
        folder = tmp_path / "target"
        shutil.copytree(checkpoints.target, folder)
        change(folder / "model-00009-of-00032.safetensors")
        return folder

    def drafting(**config: object) -> Path:
        return vllm.write(tmp_path, args={"speculative_config": json.dumps({"num_speculative_tokens": 3, **config})})

    def wide() -> Path:
        words = build_vocabulary()
        embedding = np.random.default_rng(1).standard_normal((words.size, SHAPE.hidden), dtype=np.float32)
        write_eagle3(tmp_path / "wide", SHAPE, words, embedding, np.arange(words.size), hidden_in_config=512)
        return drafting(method="eagle3", model=str(tmp_path / "wide"))

    return {
        "port-taken": lambda: late.write(tmp_path, port=taken.number),
        "no-such-model": lambda: other_model(llama, tmp_path / "none.gguf"),
        "truncated-file": lambda: other_model(llama, cut(Path(shutil.copy(llama_models.target, tmp_path)))),
        "unknown-flag": lambda: llama.write(tmp_path, args={"no_such_flag": 3}),
        "missing-shard": lambda: other_model(vllm, copied(Path.unlink)),
        "truncated-shard": lambda: other_model(vllm, copied(cut)),
        "draft-of-another-width": wide,
        "context-too-long": lambda: vllm.write(tmp_path, args={"max_model_len": 99_999}),
        "memory-too-small": lambda: vllm.write(
            tmp_path, args={"max_model_len": 400_000}, env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}
        ),
        "unknown-flag-vllm": lambda: vllm.write(tmp_path, args={"no_such_flag": 3}),
        "bad-combination": lambda: drafting(
            method="eagle3", model=str(checkpoints.eagle3), draft_tensor_parallel_size=2
        ),
    }


@pytest.mark.parametrize("name", FAULTS)
async def test_it_is_refused_before_and_read_the_same_after(
    console: Console, sshd: SshdLab, profiles: dict[str, Callable[[], Path]], taken: Port, name: str
) -> None:
    fault = FAULTS[name]
    need(fault.engine)
    host, profile = sshd.accounts[0], profiles[name]()
    findings: list[Finding] = []
    await console.commands.preflight(LaunchOrder(str(profile), host), findings.append, lambda text: None)
    stops = [(one.check, one.name) for one in findings if one.severity == "stop"]
    assert stops == [fault.check], findings
    there = set(console.board.launches)
    with pytest.raises(SpecconsoleError):
        await console.commands.launch(LaunchOrder(str(profile), host))
    assert set(console.board.launches) == there, "nothing was started"

    taken.leave()
    start = await watched.start(console, host, profile, preflight=False)
    taken.take()
    view = await watched.until(console, start, lambda view: view.state == "failed")
    assert "answers" not in start.states
    assert view.reading is not None
    failure = view.reading.failure
    assert failure is not None, view.reading
    assert failure.failure_class in fault.read_as, failure
    assert fault.evidence in (failure.line or ""), failure
    await console.commands.stop_telling(start.launch_id, lambda event: None)
    assert witness.left_of(start.launch_id, start.session) == {}
