"""The head of a safetensors file: 8 bytes of length, then JSON; never the tensors.

Layout (safetensors format): bytes 0 to 7 little-endian unsigned N, then N bytes of JSON
`{name: {"dtype", "shape", "data_offsets"}, "__metadata__": {...}}`, then the data; offsets count from the data's start.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

HEADER_LIMIT_BYTES = 100_000_000
"""The format's own limit."""
DTYPE_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4,
    "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8,
}  # fmt: skip
_INT = {int}
LFS_POINTER = b"version https://git-lfs"


class CorruptHeaderError(ValueError):
    """The head does not describe the file; the text says how."""


class Tensor(NamedTuple):
    """One of perhaps a hundred thousand: a tuple is made twice as fast as a dataclass."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    """Offset of its first byte from the data's start."""
    end: int

    @property
    def size_bytes(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Header:
    tensors: dict[str, Tensor]
    data_start: int
    """Offset of the data in the file: 8 + N."""
    data_bytes: int
    """End of the last tensor."""


def header_length(first: bytes, file_size_bytes: int | None) -> int:
    """N out of the first bytes of a file. Raises CorruptHeaderError for a file that can't be safetensors."""
    if first.startswith(LFS_POINTER):
        raise CorruptHeaderError("a git-lfs pointer, not the file itself: it was never downloaded")
    if len(first) < 8:
        raise CorruptHeaderError(f"only {len(first)} bytes long")
    (length,) = struct.unpack("<Q", first[:8])
    if not 2 <= length <= HEADER_LIMIT_BYTES:
        raise CorruptHeaderError(f"its header claims {length} bytes")
    if file_size_bytes is not None and 8 + length > file_size_bytes:
        raise CorruptHeaderError(f"its header claims {length} bytes, the file has {file_size_bytes}")
    return int(length)


def parse_header(head: bytes, file_size_bytes: int | None) -> Header:
    """The tensors out of the first 8 + N bytes; checks that they fill the file exactly.

    `file_size_bytes` None: the size is not checked. Raises CorruptHeaderError.
    """
    length = header_length(head, file_size_bytes)
    try:
        raw = json.loads(head[8 : 8 + length].decode("utf-8"))
    except (ValueError, RecursionError):
        raise CorruptHeaderError("its header is no JSON") from None
    if not isinstance(raw, dict):
        raise CorruptHeaderError("its header is no table")
    tensors: dict[str, Tensor] = {}
    for name, entry in raw.items():
        if name != "__metadata__":
            tensors[str(name)] = _tensor(str(name), entry)
    data_bytes = max((tensor.end for tensor in tensors.values()), default=0)
    if file_size_bytes is not None and 8 + length + data_bytes != file_size_bytes:
        missing = 8 + length + data_bytes - file_size_bytes
        word = f"{missing} bytes are missing" if missing > 0 else f"{-missing} bytes too many"
        raise CorruptHeaderError(
            f"its tensors need {8 + length + data_bytes} bytes, the file has {file_size_bytes}: {word}"
        )
    return Header(tensors, 8 + length, data_bytes)


def _tensor(name: str, entry: object) -> Tensor:
    if not isinstance(entry, dict):
        raise CorruptHeaderError(f"the entry of {name} is no table")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not (isinstance(dtype, str) and _whole(shape) and _whole(offsets) and len(offsets) == 2):
        raise CorruptHeaderError(f"the entry of {name} lacks dtype, shape or offsets")
    start, end = offsets
    width = DTYPE_BYTES.get(dtype)
    if end < start or (width is not None and end - start != math.prod(shape) * width):
        raise CorruptHeaderError(f"the offsets of {name} do not fit its shape {list(shape)} of {dtype}")
    return Tensor(dtype, tuple(shape), start, end)


def _whole(value: object) -> TypeGuard[list[int]]:
    # By types, since a bool is an int to isinstance.
    return (
        type(value) is list
        and set(map(type, value)) <= _INT
        and (not value or (min(value) >= 0 and max(value) < 2**63))
    )
