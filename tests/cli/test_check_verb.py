"""`specconsole check` on real files, ports and servers: each fault is found before anything loads, and no other.

The whole checkpoints and GGUF files of these tests load in real servers elsewhere in this suite; here one thing at a
time is broken in a copy of them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specconsole.demo.models import ModelFiles, ModelShape, build_tensors, successor_tables
from specconsole.demo.vocabulary import build_vocabulary
from tests.cli.console import Done, Verbs, write_profile
from tests.engines.support.checkpoints import Checkpoints, write_checkpoints, write_eagle3
from tests.support.fixtures_gpus import FakeGpus

SERVER = [sys.executable, "-m", "specconsole.demo.llama_server"]
# No engine's own command: nobody asks it for flags, so that an engine that is not installed here is no finding.
SCRIPT = [sys.executable, "serve.py"]
TREE = {"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4}
EAGLE3 = {"speculative_algorithm": "EAGLE3", "max_running_requests": 48, **TREE}
SHAPE = ModelShape(layers=8)


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    return write_checkpoints(tmp_path_factory.mktemp("checkpoints"), shape=SHAPE, shards=4)


@pytest.fixture
def models(whole: Checkpoints, tmp_path: Path) -> Checkpoints:
    """A copy to break."""
    shutil.copytree(whole.target.parent, tmp_path / "models")
    return Checkpoints(*(tmp_path / "models" / name for name in ("target", "draft", "eagle3")))


Sglang = Callable[..., Path]


@pytest.fixture
def sglang(tmp_path: Path, models: Checkpoints) -> Sglang:
    def write(**args: Any) -> Path:
        return write_profile(
            tmp_path, "s", SCRIPT, engine="sglang", engine_version="0.5.17", model=str(models.target),
            draft_model=str(models.eagle3), args={**EAGLE3, **args},
        )  # fmt: skip

    return write


def stops(done: Done) -> dict[str, str]:
    """What forbids the start: check/name -> text. Witness that the exit status says the same."""
    found = {f"{one['check']}/{one['name']}": one["text"] for one in done.json["findings"] if one["severity"] == "stop"}
    assert (done.status == 1) == bool(found), done.json
    return found


def only(done: Done, what: str) -> str:
    found = stops(done)
    assert list(found) == [what]
    return found[what]


def test_nothing_stands_against_what_is_whole(
    verbs: Verbs, sglang: Sglang, llama_models: ModelFiles, tmp_path: Path
) -> None:
    done = verbs("check", str(sglang()), "--json")
    assert stops(done) == {}
    said = {one["text"] for one in done.json["findings"] if one["severity"] == "ok"}
    assert {"model: 4 shards are whole", "draft: fits the target as EAGLE3"} <= said
    path = write_profile(tmp_path, "l", SERVER, engine="llamacpp", model=str(llama_models.target),
                         draft_model=str(llama_models.draft), args={"ctx_size": 4096})  # fmt: skip
    done = verbs("check", str(path))
    assert (done.status, "1 settings are flags of llamacpp" in done.out) == (0, True)
    assert done.out.splitlines()[-1].endswith("nothing stands against it")


def test_a_port_that_is_taken(verbs: Verbs, llama_models: ModelFiles, tmp_path: Path, sglang: Sglang) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path = write_profile(tmp_path, "l", SERVER, engine="llamacpp", model=str(llama_models.target), port=port)
        assert f"pid {os.getpid()}" in only(verbs("check", str(path), "--json"), "port/")
        # The ports beside the server's own as well.
        text = only(verbs("check", str(sglang(nccl_port=port)), "--json"), "port/--nccl-port")
        assert f"port {port} is held by pid {os.getpid()}" in text


def test_a_missing_shard(verbs: Verbs, sglang: Sglang, models: Checkpoints) -> None:
    (models.target / "model-00002-of-00004.safetensors").unlink()
    text = only(verbs("check", str(sglang()), "--json"), "model/shards-missing")
    assert "1 of 4 shards missing: model-00002-of-00004.safetensors" in text


def test_a_shard_that_is_a_link_to_nowhere(verbs: Verbs, sglang: Sglang, models: Checkpoints) -> None:
    """As in a hub's cache whose download was broken off; a circle of links is the same."""
    shard = models.target / "model-00003-of-00004.safetensors"
    shard.unlink()
    shard.symlink_to("blobs/none")
    assert shard.name in only(verbs("check", str(sglang()), "--json"), "model/links")
    shard.unlink()
    shard.symlink_to(shard.name)
    assert shard.name in only(verbs("check", str(sglang()), "--json"), "model/links")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[:-1000], "1000 bytes are missing"),
        (lambda data: b"\xff" * 8 + data[8:], "its header claims"),
        (lambda data: data[:8] + b"#" + data[9:], "its header is no JSON"),
        (lambda _: b"version https://git-lfs.github.com/spec/v1\n", "a git-lfs pointer"),
        (lambda _: b"", "only 0 bytes long"),
    ],
)
def test_a_damaged_shard(
    verbs: Verbs, sglang: Sglang, models: Checkpoints, damage: Callable[[bytes], bytes], says: str
) -> None:
    shard = models.target / "model-00004-of-00004.safetensors"
    shard.write_bytes(damage(shard.read_bytes()))
    text = only(verbs("check", str(sglang()), "--json"), "model/shard-damaged")
    assert shard.name in text
    assert says in text


def test_a_config_that_is_no_json(verbs: Verbs, sglang: Sglang, models: Checkpoints) -> None:
    (models.target / "config.json").write_text("{")
    assert "config.json is no JSON" in only(verbs("check", str(sglang()), "--json"), "model/config")


def write_broken_draft(path: Path, **changes: int) -> None:
    vocabulary = build_vocabulary()
    _, wrong = successor_tables(vocabulary, SHAPE)
    embedding = build_tensors(SHAPE, _noise(vocabulary.size), wrong, seed=1)["token_embd.weight"]
    shutil.rmtree(path)
    write_eagle3(path, SHAPE, vocabulary, embedding, wrong, **changes)


def _noise(rows: int) -> Any:
    import numpy as np

    return np.random.default_rng(0).standard_normal((rows, SHAPE.hidden), dtype=np.float32)


def test_a_draft_of_another_hidden_size(verbs: Verbs, sglang: Sglang, models: Checkpoints) -> None:
    write_broken_draft(models.eagle3, hidden_in_config=SHAPE.hidden * 2)
    found = stops(verbs("check", str(sglang()), "--json"))
    assert f"hidden size is {SHAPE.hidden * 2}, the target's {SHAPE.hidden}" in found["draft/hidden-size"]
    # The matrix that takes the target's hidden states is then of the wrong width as well; nothing else is wrong.
    assert set(found) <= {"draft/hidden-size", "draft/fc-shape"}


def add_map(file: Path, name: str, ids: list[int]) -> None:
    """Appends an I64 tensor to a safetensors file."""
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    extra = b"".join(one.to_bytes(8, "little", signed=True) for one in ids)
    header[name] = {"dtype": "I64", "shape": [len(ids)], "data_offsets": [len(body), len(body) + len(extra)]}
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + body + extra)


def test_a_drafts_map_that_is_missing_or_absolute(verbs: Verbs, sglang: Sglang, models: Checkpoints) -> None:
    size = build_vocabulary().size
    write_broken_draft(models.eagle3, draft_vocabulary=size - 64)
    assert "without d2t" in only(verbs("check", str(sglang()), "--json"), "draft/d2t-missing")
    file, before = models.eagle3 / "model.safetensors", (models.eagle3 / "model.safetensors").read_bytes()
    add_map(file, "d2t", list(range(64, size)))
    assert "absolute ids" in only(verbs("check", str(sglang()), "--json"), "draft/d2t-absolute")
    file.write_bytes(before)
    add_map(file, "d2t", [64] * (size - 64))
    assert stops(verbs("check", str(sglang()), "--json")) == {}


def test_a_context_that_is_too_long(verbs: Verbs, sglang: Sglang, llama_models: ModelFiles, tmp_path: Path) -> None:
    longest = SHAPE.context_tokens
    found = stops(verbs("check", str(sglang(context_length=longest + 1)), "--json"))
    assert f"context {longest + 1} is beyond the model's {longest} positions" in found["rule/context"]
    assert set(found) == {"rule/context", "rule/context-beyond-draft"}
    path = write_profile(tmp_path, "l", SERVER, engine="llamacpp", model=str(llama_models.target),
                         args={"ctx_size": 1 << 20})  # fmt: skip
    done = verbs("check", str(path))
    assert (done.status, "capped at the 4096 positions" in done.out) == (6, True)


def test_a_model_that_no_memory_holds(verbs: Verbs, sglang: Sglang, models: Checkpoints, fake_gpus: FakeGpus) -> None:
    """A sparse file of a terabyte: on the GPUs of a simulated nvidia-smi, and on the host where there are none."""
    shard = models.target / "model-00001-of-00004.safetensors"
    data = shard.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    end = len(data) - 8 - length
    header["huge"] = {"dtype": "BF16", "shape": [1 << 39], "data_offsets": [end, end + (1 << 40)]}
    text = json.dumps(header).encode()
    shard.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    os.truncate(shard, 8 + len(text) + end + (1 << 40))
    assert shard.stat().st_blocks * 512 < 1 << 24
    found = only(verbs("check", str(sglang()), "--json"), "memory/estimate")
    assert "the weights do not fit" in found
    fake_gpus.tool.unlink()
    assert "1024." in only(verbs("check", str(sglang()), "--json"), "memory/estimate")


def test_gpu_memory_that_others_hold_is_named(verbs: Verbs, sglang: Sglang, fake_gpus: FakeGpus) -> None:
    fake_gpus.set(gpus=[{"index": 0}], apps=[["GPU-fake-0", os.getpid(), "python", 3000]])
    done = verbs("check", str(sglang()), "--json")
    [holder] = [one["text"] for one in done.json["findings"] if one["name"] == "holders"]
    assert f"GPU 0: 2.9 GiB by pid {os.getpid()}" in holder
    assert "2 GPUs are asked for, and 1 are there" in only(
        verbs("check", str(sglang(tp_size=2)), "--json"), "gpu/count"
    )


def test_an_unknown_flag_by_the_servers_own_help(verbs: Verbs, llama_models: ModelFiles, tmp_path: Path) -> None:
    path = write_profile(tmp_path, "l", SERVER, engine="llamacpp", model=str(llama_models.target),
                         args={"ctx_sise": 4096})  # fmt: skip
    assert "no such flag" in only(verbs("check", str(path), "--json"), "flag/ctx_sise")
    done = verbs("check", str(path), "--set", "ctx_sise=null", "--set", "np=2")
    assert (done.status, "becomes --np, and the flag is -np, --parallel" in done.out) == (1, True)
    assert "asking local's" not in done.err, "the first look kept the server's help"


def test_a_bad_combination(verbs: Verbs, sglang: Sglang, llama_models: ModelFiles, tmp_path: Path) -> None:
    path = sglang()
    done = verbs("check", str(path), "--set", "speculative_eagle_topk=null", "--json")
    assert "speculative_eagle_topk missing" in only(done, "rule/all-three-or-none")
    done = verbs("check", str(path), "--set", "speculative_num_draft_tokens=9", "--json")
    assert (done.status, stops(done)) == (6, {})
    path = write_profile(tmp_path, "l", ["llama-server"], engine="llamacpp", model=str(llama_models.target),
                         args={"spec_type": "draft-simple"})  # fmt: skip
    assert "rule/draft-path-missing" in stops(verbs("check", str(path), "--json"))


@pytest.mark.parametrize(
    ("break_it", "finding", "server_says"),
    [
        ("cut", "is cut: its tensors need", "tensor 'blk."),
        ("flag", "no such flag", "unrecognized arguments: --ctx-sise"),
        ("no-gguf", "no GGUF file", "invalid magic characters"),
    ],
)
def test_launch_refuses_what_check_finds_and_the_real_server_agrees(
    verbs: Verbs, llama_models: ModelFiles, tmp_path: Path, break_it: str, finding: str, server_says: str
) -> None:
    model = tmp_path / "model.gguf"
    data = llama_models.target.read_bytes()
    model.write_bytes({"cut": data[: len(data) // 2], "no-gguf": b"nothing" * 1000}.get(break_it, data))
    args = {"ctx_sise": 4096} if break_it == "flag" else {}
    path = write_profile(tmp_path, "l", SERVER, engine="llamacpp", model=str(model), args=args)
    refused = verbs("launch", str(path))
    assert (refused.status, finding in refused.problem) == (2, True)
    assert verbs("status", "--json").json == []
    done = verbs("launch", str(path), "--no-preflight", "--wait", "--json")
    assert done.status == 1
    [launch] = done.json
    assert launch["state"] == "failed"
    assert server_says in verbs("logs", launch["launch_id"]).out
