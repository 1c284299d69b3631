"""What the looks before a start say, and what a real llama.cpp server then says and takes: one cause, the same bytes.

Faults that a server refuses are in tests/engines/test_faults_named.py; here is what it bends, and memory.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from specconsole.demo.models import ModelFiles, ModelShape, write_models
from tests.cli.console import Verbs, write_profile

pytestmark = pytest.mark.faults

SERVER = [sys.executable, "-m", "specconsole.demo.llama_server"]
# What it would touch at most, should it try: the machine is not ours alone.
LIMITED = ["sh", "-c", 'ulimit -v 6000000; exec "$@"', "sh", *SERVER]
MIB = 1 << 20
LONG = 1 << 24


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


def launch(verbs: Verbs, path: Path) -> tuple[dict[str, Any], str]:
    """The launch after its start, without any look before it, and its log; stopped."""
    [launch] = verbs("launch", str(path), "--no-preflight", "--wait", "--timeout", "100", "--json").json
    log = verbs("logs", launch["launch_id"]).out
    verbs("stop", launch["launch_id"])
    return launch, log


def finding(verbs: Verbs, path: Path, name: str) -> dict[str, Any]:
    [found] = [one for one in verbs("check", str(path), "--json").json["findings"] if one["name"] == name]
    return dict(found)


def test_a_kv_cache_that_no_memory_holds(verbs: Verbs, tmp_path: Path) -> None:
    """The estimate is what the server then tries to take, to the mebibyte."""
    models = write_models(tmp_path / "long", shape=ModelShape(context_tokens=LONG))
    path = write_profile(tmp_path, "l", LIMITED, engine="llamacpp", model=str(models.target), args={"ctx_size": LONG})
    found = finding(verbs, path, "estimate")
    assert (found["check"], found["severity"]) == ("memory", "stop")
    started, log = launch(verbs, path)
    assert started["state"] == "failed"
    assert "memory" in started["reading"]["failure"]["class"]
    taken = re.search(r"attempted to allocate ([\d.]+) MB", log)
    assert taken is not None
    estimate = re.search(r"KV ([\d.]+)", found["text"])
    assert estimate is not None
    assert float(estimate[1]) * 1024 == pytest.approx(float(taken[1]), abs=6)
    # The context that is offered fits, by the same reckoning.
    again = finding_with(verbs, path, found["fix"])
    assert again["severity"] == "ok"


def finding_with(verbs: Verbs, path: Path, fix: dict[str, Any]) -> dict[str, Any]:
    words = [word for key, value in fix.items() for word in ("--set", f"{key}={value}")]
    done = verbs("check", str(path), *words, "--json").json["findings"]
    [found] = [one for one in done if one["name"] == "estimate"]
    return dict(found)


@pytest.mark.parametrize(
    ("args", "capped"),
    [({"ctx_size": 16384, "parallel": 2}, True), ({"ctx_size": 8192, "parallel": 2}, False)],
)
def test_a_context_beyond_the_models_training(
    verbs: Verbs, llama_models: ModelFiles, tmp_path: Path, args: dict[str, int], capped: bool
) -> None:
    path = write_profile(tmp_path, "l", SERVER, engine="llamacpp", model=str(llama_models.target), args=args)
    said = [
        one for one in verbs("check", str(path), "--json").json["findings"] if one["name"] == "context-over-training"
    ]
    started, log = launch(verbs, path)
    assert started["state"] == "answers"
    read = [one["class"] for one in started["reading"]["warnings"]]
    assert (bool(said), "setting-overridden" in read, "- capping" in log) == (capped, capped, capped)


def test_a_draft_of_another_vocabulary(verbs: Verbs, llama_models: ModelFiles, tmp_path: Path) -> None:
    """A head cut by 600 tokens: the look says so, and the server refuses the draft or goes on without it."""
    from specconsole.core.launching.gguf_header import parse_gguf

    path = write_profile(tmp_path, "l", SERVER, engine="llamacpp", model=str(llama_models.target),
                         draft_model=str(other_vocabulary(tmp_path, llama_models)))  # fmt: skip
    sizes = [
        parse_gguf(one.read_bytes()).metadata["tokenizer.ggml.tokens"]
        for one in (llama_models.target, other_vocabulary(tmp_path, llama_models))
    ]
    assert abs(sizes[0] - sizes[1]) > 128
    found = finding(verbs, path, "vocabulary")
    assert (found["severity"], str(sizes[1]) in found["text"]) == ("warning", True)
    started, log = launch(verbs, path)
    failure = started["reading"]["failure"]
    assert "vocab" in log
    assert failure is None or "draft" in failure["class"] or "vocab" in failure["line"]


def other_vocabulary(folder: Path, models: ModelFiles) -> Path:
    """The draft with 600 tokens more."""
    import gguf

    path = folder / "draft.gguf"
    if path.exists():
        return path
    reader = gguf.GGUFReader(models.draft)
    writer = gguf.GGUFWriter(path, "llama")
    more = 600
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = field.contents()
        if name == "tokenizer.ggml.tokens":
            value = [*value, *(f"<extra {n}>" for n in range(more))]
        elif name in ("tokenizer.ggml.token_type", "tokenizer.ggml.scores"):
            value = [*value, *([value[-1]] * more)]
        elif name.endswith("vocab_size"):
            value += more
        writer.add_key_value(name, value, field.types[0], field.types[-1] if len(field.types) > 1 else None)
    import numpy as np

    for tensor in reader.tensors:
        data = tensor.data
        if tensor.name in ("token_embd.weight", "output.weight"):
            data = np.concatenate([data, data[:more]])
        writer.add_tensor(tensor.name, data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
