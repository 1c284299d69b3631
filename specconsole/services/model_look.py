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
from specconsole.ports import Transport

_LOOK_LIMIT_S = 60.0
_FIRST_BYTES = (2 * 1024 * 1024, 64 * 1024 * 1024)
"""Of a GGUF file: enough for most heads, then for the largest vocabularies."""
_MAP_LIMIT_BYTES = 16 * 1024 * 1024


async def look_at_model(transport: Transport, role: str, path: str) -> tuple[Checkpoint, Model]:
    """What is at a model's path, judged by itself. Raises TransportError, TimeoutError."""
    found = Checkpoint("unknown")
    for limit in _FIRST_BYTES:
        done = await transport.run_sh(
            CHECKPOINT, [path, str(limit)], timeout_s=_LOOK_LIMIT_S, max_output_bytes=OUTPUT_LIMIT_BYTES
        )
        found = replace(Checkpoint("unknown"), path=path) if done.truncated else parse_checkpoint(done.stdout)
        if found.kind != "single" or not _cut(found, limit):
            break
    return found, read_model(role, path, found)


def _cut(found: Checkpoint, limit: int) -> bool:
    """Whether a GGUF file's head is longer than what was read of it."""
    for one in found.files.values():
        try:
            parse_gguf(one.head)
        except CutHeadError:
            if limit <= len(one.head) < one.size_bytes:
                return True
        except GgufError:
            continue
    return False


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
