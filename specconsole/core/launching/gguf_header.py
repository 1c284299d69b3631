"""The head of a GGUF file: its metadata and where its tensors end; never the tensors.

Layout (GGUF 2 and 3, little endian; ggml's docs/gguf.md): `GGUF`, version u32, tensor count u64, metadata count u64,
then key and typed value each, then name, dimensions, type and offset of each tensor, then padding to
`general.alignment` (32), then the data; offsets count from there.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAGIC = b"GGUF"
_SCALARS: Mapping[int, str] = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
# ggml type -> (values in a block, bytes of a block), ggml.c's type traits.
_BLOCKS: Mapping[int, tuple[int, int]] = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 29: (256, 56), 30: (1, 2),
}  # fmt: skip
_LENGTH = struct.Struct("<Q")
_MOST = 10_000_000
"""More entries than any file has: a length that lies."""


class GgufError(ValueError):
    """The head is no GGUF, or does not describe the file; the text says how."""


class CutHeadError(GgufError):
    """More of the file's beginning is needed."""


@dataclass(frozen=True, slots=True)
class GgufHead:
    metadata: Mapping[str, Any]
    """Scalars and texts; an array stands by its length alone."""
    tensors: int
    needed_bytes: int | None
    """How long the file must be to hold its tensors; None where a tensor's type is not known here."""

    def number(self, key: str) -> int | None:
        """A value of the architecture's (`llama.context_length`); None where it is not given."""
        value = self.metadata.get(f"{self.metadata.get('general.architecture')}.{key}")
        return value if isinstance(value, int) and not isinstance(value, bool) else None


class _Bytes:
    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def take(self, form: str) -> Any:
        size = struct.calcsize(form)
        if self.at + size > len(self.data):
            raise CutHeadError("its head is longer than what was read")
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return value

    def count(self) -> int:
        value = int(self.take("<Q"))
        if value > _MOST:
            raise GgufError(f"its head claims {value} entries")
        return value

    def text(self) -> str:
        size = self.count()
        if self.at + size > len(self.data):
            raise CutHeadError("its head is longer than what was read")
        self.at += size
        return self.data[self.at - size : self.at].decode("utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind in _SCALARS:
            return self.take(_SCALARS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY or depth > 4:
            raise GgufError(f"its head has a value of the unknown type {kind}")
        inner, size = int(self.take("<I")), self.count()
        if inner in _SCALARS:
            width = struct.calcsize(_SCALARS[inner]) * size
            if self.at + width > len(self.data):
                raise CutHeadError("its head is longer than what was read")
            self.at += width
        elif inner == _STRING:
            self._skip_texts(size)
        else:
            for _ in range(size):
                self.value(inner, depth + 1)
        return size

    def _skip_texts(self, size: int) -> None:
        """A vocabulary's words and merges: hundreds of thousands, of which only the lengths are looked at."""
        data, at, last, unpack = self.data, self.at, len(self.data) - 8, _LENGTH.unpack_from
        for _ in range(size):
            if at > last:
                raise CutHeadError("its head is longer than what was read")
            (length,) = unpack(data, at)
            if length > _MOST:
                raise GgufError(f"its head claims {length} entries")
            at += 8 + length
        if at > len(data):
            raise CutHeadError("its head is longer than what was read")
        self.at = at


def parse_gguf(head: bytes) -> GgufHead:
    """The head out of a file's first bytes. Raises GgufError; CutHeadError where more bytes would help."""
    if len(head) < 24:
        raise CutHeadError(f"only {len(head)} bytes long")
    if head[:4] != MAGIC:
        raise GgufError("no GGUF file" if not head.startswith(b"version https://git-lfs") else "a git-lfs pointer")
    (version,) = struct.unpack_from("<I", head, 4)
    if version not in (2, 3):
        raise GgufError(f"GGUF version {version}, which is not known here")
    read = _Bytes(head, 8)
    tensors, pairs = read.count(), read.count()
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = read.text()
        metadata[key] = read.value(int(read.take("<I")))
    end: int | None = 0
    for _ in range(tensors):
        read.text()
        dimensions = int(read.take("<I"))
        if dimensions > 8:
            raise GgufError(f"a tensor claims {dimensions} dimensions")
        shape = [int(read.take("<Q")) for _ in range(dimensions)]
        kind, offset = int(read.take("<I")), int(read.take("<Q"))
        if kind not in _BLOCKS or end is None:
            end = None
        else:
            values, width = _BLOCKS[kind]
            end = max(end, offset + math.prod(shape) // values * width)
    alignment = metadata.get("general.alignment", 32)
    step = alignment if isinstance(alignment, int) and alignment > 0 else 32
    start = -(-read.at // step) * step
    return GgufHead(metadata, tensors, None if end is None else start + end)
