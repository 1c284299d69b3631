"""Looks at a model's files on a host: one script for all of them, then the few bytes of a draft's maps."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from specconsole.core.launching.checkpoint import CHECKPOINT, OUTPUT_LIMIT_BYTES, Checkpoint, parse_checkpoint
from specconsole.core.launching.draft_maps import decode_int64
from specconsole.core.launching.gguf_header import CutHeadError, GgufError, parse_gguf
from specconsole.core.launching.model_check import DraftMaps
from specconsole.core.launching.model_files import Model, read_model
from specconsole.core.launching.tokenizer_head import HEAD_BYTES, common_tokens
from specconsole.errors import FileMissingError
from specconsole.ports import Completed, Transport

_LOOK_LIMIT_S = 60.0
_FIRST_BYTES = (2 * 1024 * 1024, 12 * 1024 * 1024, 64 * 1024 * 1024)
"""Of a GGUF file: enough for small vocabularies, for 100,000 to 250,000 tokens with their merges, and for anything."""
_FURTHER_BYTES = (64 * 1024, 1024 * 1024, 8 * 1024 * 1024)
"""Of each further shard: it names its tensors and no vocabulary."""
_MAP_LIMIT_BYTES = 16 * 1024 * 1024


async def look_at_model(transport: Transport, role: str, path: str) -> tuple[Checkpoint, Model]:
    """What is at a model's path, judged by itself. Raises TransportError, TimeoutError."""
    first, further = 0, 0
    while True:
        limits = (_FIRST_BYTES[first], _FURTHER_BYTES[further])
        done = await transport.run_sh(
            CHECKPOINT, [path, *map(str, limits)], timeout_s=_LOOK_LIMIT_S, max_output_bytes=OUTPUT_LIMIT_BYTES
        )
        # In a thread: a model of a hundred thousand tensors has headers that take a second to read.
        found, cut = await asyncio.to_thread(_found, done, path)
        more_first = path.rpartition("/")[2] in cut and first + 1 < len(_FIRST_BYTES)
        more_further = bool(set(cut) - {path.rpartition("/")[2]}) and further + 1 < len(_FURTHER_BYTES)
        if not more_first and not more_further:
            return found, await asyncio.to_thread(read_model, role, path, found)
        first, further = first + more_first, further + more_further


def _found(done: Completed, path: str) -> tuple[Checkpoint, list[str]]:
    """What is there, and the GGUF files whose head is longer than what was read of them."""
    if done.truncated:
        return replace(Checkpoint("unknown"), path=path), []
    found = parse_checkpoint(done.stdout)
    return found, _cut(found) if found.kind == "single" else []


def _cut(found: Checkpoint) -> list[str]:
    names: list[str] = []
    for name, one in found.files.items():
        try:
            parse_gguf(one.head)
        except CutHeadError:
            if len(one.head) < one.size_bytes:
                names.append(name)
        except GgufError:
            continue
    return names


async def read_maps(
    transport: Transport, found: Checkpoint, draft: Model, target: Checkpoint | None = None
) -> DraftMaps:
    """A draft's `d2t` and `t2d`, and where it has a map, the target's common tokens to hold it against."""
    d2t, t2d = await asyncio.gather(
        _bytes(transport, found, draft, "d2t", "I64"), _bytes(transport, found, draft, "t2d", "BOOL")
    )
    common = await _common_tokens(transport, target) if d2t is not None and target is not None else None
    return DraftMaps(
        decode_int64(d2t) if d2t is not None else None,
        tuple(byte != 0 for byte in t2d) if t2d is not None else None,
        common,
    )


async def _common_tokens(transport: Transport, target: Checkpoint) -> tuple[int, ...] | None:
    """Out of the first megabyte of the target's `tokenizer.json`; None where it has none, or it does not say."""
    if "tokenizer.json" not in target.files:
        return None
    head = await _read(transport, f"{target.path}/tokenizer.json", 0, HEAD_BYTES)
    return common_tokens(head) if head is not None else None


async def _bytes(transport: Transport, found: Checkpoint, draft: Model, name: str, dtype: str) -> bytes | None:
    full = name if name in draft.tensors else f"model.{name}"
    tensor = draft.tensors.get(full)
    if tensor is None or tensor.dtype != dtype or tensor.size_bytes > _MAP_LIMIT_BYTES:
        return None
    file_name, data_start = draft.where[full]
    data = await _read(transport, f"{found.path}/{file_name}", data_start + tensor.start, tensor.size_bytes)
    return data if data is not None and len(data) == tensor.size_bytes else None


async def _read(transport: Transport, path: str, start: int, size_bytes: int) -> bytes | None:
    """A part of a file, shorter where the file ends before it; None where there is no such file."""
    try:
        handle = await transport.open_file(path)
    except FileMissingError:
        return None
    try:
        parts: list[bytes] = []
        at, left = start, size_bytes
        while left > 0 and (part := await handle.read_at(at, min(left, 1 << 18))):
            parts.append(part)
            at, left = at + len(part), left - len(part)
    finally:
        await handle.aclose()
    return b"".join(parts)
