"""How much of a model's file is taken to look at its head."""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from specconsole.adapters.local import LocalTransport
from specconsole.core.launching.engine_settings import judge_profile
from specconsole.core.launching.model_check import GpuRoom, judge_draft, judge_gpu_memory, judge_own_heads
from specconsole.core.launching.profile import Profile
from specconsole.demo.models import ModelFiles
from specconsole.ports import Completed
from specconsole.services.model_look import look_at_model, read_maps


class Counting(LocalTransport):
    """Counts what its commands print, unpacked."""

    printed_bytes = 0

    async def run_sh(self, *args: Any, **options: Any) -> Completed:
        done = await super().run_sh(*args, **options)
        self.printed_bytes += len(zlib.decompressobj(wbits=31).decompress(done.stdout))
        return done


async def test_a_huge_gguf_file_is_known_by_its_first_mebibytes(llama_models: ModelFiles, tmp_path: Path) -> None:
    huge = tmp_path / "huge.gguf"
    huge.write_bytes(llama_models.target.read_bytes())
    os.truncate(huge, 40 << 30)
    transport = Counting()
    found, model = await look_at_model(transport, "target", str(huge))
    assert found.files["huge.gguf"].size_bytes == 40 << 30
    assert model.facts.architecture == "llama"
    assert transport.printed_bytes < 3 << 20


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def write_shards(folder: Path, count: int, tokens: int) -> Path:
    """A model of sparse shards of 10 GiB each: the vocabulary in the first, one tensor in each."""
    pairs = [
        text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama"),
        text(b"llama.context_length") + struct.pack("<II", 4, 4096),
        text(b"tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, tokens)
        + b"".join(text(b"token %d" % n) for n in range(tokens)),
    ]  # fmt: skip
    for number in range(1, count + 1):
        mine = pairs if number == 1 else pairs[:1]
        tensor = text(b"blk.%d.ffn_up.weight" % number) + struct.pack("<IQIQ", 1, 1 << 30, 0, 0)
        head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(mine)) + b"".join(mine) + tensor
        path = folder / f"m-{number:05d}-of-{count:05d}.gguf"
        path.write_bytes(head)
        os.truncate(path, 10 << 30)
    return folder / f"m-00001-of-{count:05d}.gguf"


async def test_of_64_shards_no_weights_travel_and_reading_them_is_quick(tmp_path: Path) -> None:
    """128,000 tokens do not fit in the first two mebibytes, so the look is made twice; never the 63 others' weights."""
    first = write_shards(tmp_path, 64, 128_000)
    transport = Counting()
    start_s = time.process_time()
    found, model = await look_at_model(transport, "model", str(first))
    # A second or two of the processor were a regression; on an idle machine it takes a fifth of one.
    assert time.process_time() - start_s < 2.0
    assert [one.name for one in model.findings] == ["shards"]
    assert (model.weights_bytes, len(found.files)) == (64 * (10 << 30), 64)
    assert transport.printed_bytes < (2 << 20) + (12 << 20) + 2 * 64 * (64 << 10) + (1 << 20)
    # One of them missing, one cut short.
    (tmp_path / "m-00007-of-00064.gguf").unlink()
    os.truncate(tmp_path / "m-00009-of-00064.gguf", 1 << 30)
    _, broken = await look_at_model(transport, "model", str(first))
    assert {one.name for one in broken.findings} == {"shards-missing", "shard-damaged"}


GOOD = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 8, "vocab_size": 512}
ODD_VALUES = {
    "architectures": {"a": 1}, "hidden_size": "x", "num_hidden_layers": True, "vocab_size": -3,
    "max_position_embeddings": float("inf"), "rope_scaling": {"factor": float("nan"), "type": "linear"},
    "num_attention_heads": 0, "num_key_value_heads": 0, "kv_lora_rank": {}, "quantization_config": [],
    "draft_vocab_size": "many", "eagle_config": {"eagle_aux_hidden_state_layer_ids": [None, "a", []]},
}  # fmt: skip
ENTRIES = {
    "a\nb": {"dtype": "XX", "shape": [1], "data_offsets": [0, 2]}, "\x1b[31m": {"dtype": "BF16", "shape": [],
    "data_offsets": [18, 20]}, "d2t": {"dtype": "I64", "shape": [2], "data_offsets": [2, 18]},
}  # fmt: skip


def one_shard(folder: Path, name: str = "model.safetensors") -> None:
    head = json.dumps(ENTRIES).encode()
    (folder / name).write_bytes(struct.pack("<Q", len(head)) + head + b"\xff" * 20)


def broken_folder(folder: Path, kind: str) -> None:
    (folder / "config.json").write_text(json.dumps(ODD_VALUES if kind == "odd-values" else GOOD))
    if kind == "deep":
        (folder / "config.json").write_text("[" * 100_000)
    elif kind == "no-text":
        (folder / "config.json").write_bytes(b"\xff\xfe{}")
    elif kind == "circle":
        (folder / "a.safetensors").symlink_to("b.safetensors")
        (folder / "b.safetensors").symlink_to("a.safetensors")
    elif kind == "lies":
        (folder / "model.safetensors").write_bytes(b"\xff" * 7 + b"\x7f" + b"{}")
    elif kind == "pipe":
        os.mkfifo(folder / "model.safetensors")
    elif kind == "folder":
        (folder / "model.safetensors").mkdir()
    elif kind == "counts-too-far":
        one_shard(folder, "model-00001-of-99999.safetensors")
    elif kind == "names":
        one_shard(folder, "mo'del $(touch x) \x1b[31m.safetensors")
    if kind == "odd-values":
        one_shard(folder)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("deep", "config"), ("no-text", "config"), ("circle", "links"), ("lies", "shard-damaged"),
        ("pipe", "unreadable"), ("folder", "weights"), ("counts-too-far", "shards-missing"), ("names", "shards"),
        ("odd-values", "shards"), ("empty", "weights"),
    ],
)  # fmt: skip
async def test_a_folder_that_is_broken_is_said_at_once(tmp_path: Path, kind: str, name: str) -> None:
    broken_folder(tmp_path, kind)
    start_s = time.monotonic()
    found, model = await look_at_model(LocalTransport(), "draft", str(tmp_path))
    assert time.monotonic() - start_s < 20
    assert name in [one.name for one in model.findings]
    assert not (tmp_path / "x").exists()
    # Whatever was read goes through every judgement without a word of Python's.
    profile = Profile("p", "sglang", model=str(tmp_path), draft_model=str(tmp_path),
                      args={"speculative_algorithm": "EAGLE3", "context_length": 5})  # fmt: skip
    maps = await read_maps(LocalTransport(), found, model, found)
    rooms = [GpuRoom(0, 80 << 30, 70 << 30)]
    judge_draft(profile, model, model, maps)
    judge_gpu_memory(profile, model, model, rooms)
    judge_own_heads(profile, model)
    judge_profile(profile, None, model.facts, model.facts)


@pytest.mark.parametrize("kind", ["pipe", "device", "nothing"])
async def test_what_is_neither_file_nor_folder(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.gguf"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    _, model = await look_at_model(LocalTransport(), "model", str(path))
    assert [one.name for one in model.findings] == ([] if kind == "nothing" else ["kind"])
