"""How much of a model's file is taken to look at its head."""

from __future__ import annotations

import os
import struct
import time
import zlib
from pathlib import Path
from typing import Any

from specconsole.adapters.local import LocalTransport
from specconsole.demo.models import ModelFiles
from specconsole.ports import Completed
from specconsole.services.model_look import look_at_model


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
