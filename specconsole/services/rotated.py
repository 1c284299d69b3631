"""Finds a log's bytes again after the host's rotation moved them aside.

A place in a log is known by its offset and the hash of the bytes before it. When the file at the path is no longer
the one that was read, its siblings (`log.1`, `log-20261129`, `log.old`, a copy made by copytruncate) are asked for
those bytes; the one that has them is ours, and everything newer lies between it and the file at the path.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import re
from dataclasses import dataclass

from specconsole.errors import FileMissingError, RefusedError, SpecconsoleError, TransportError
from specconsole.ports import RemoteFile, Transport

_COMPRESSED = (".gz", ".xz", ".zst", ".bz2", ".lz4", ".zip")
_NUMBER = re.compile(r"(\d+)\D*$")
_MOST_SIBLINGS = 64
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Trail:
    """Open files, oldest first: the one that holds the place, then those to be read whole, the live one last."""

    files: tuple[RemoteFile, ...]
    live: bool
    """Whether the last one is the file at the path (False: there is none at the moment)."""


@dataclass(frozen=True, slots=True)
class _Sibling:
    name: str
    size_bytes: int
    mtime_s: float

    @property
    def age_key(self) -> tuple[float, int]:
        """Older first. With equal whole seconds a small number counts up with age (`.1`), a date does not."""
        found = _NUMBER.search(self.name)
        number = int(found[1]) if found else 0
        return (self.mtime_s, number if number >= 100_000 else -number)


async def find_trail(
    transport: Transport, path: str, offset: int, overlap_bytes: int, overlap_sha256: str
) -> Trail | None:
    """None when no sibling holds the place (deleted, compressed, moved elsewhere). Raises TransportError.

    The folder is looked at again afterwards: a rotation in the middle would leave a file out.
    """
    if overlap_bytes == 0:
        return None
    for attempt in range(_TRIES):
        before = await _siblings(transport, path)
        files = await _open_trail(transport, path, before, offset, overlap_bytes, overlap_sha256)
        if files is None:
            return None
        after = await _siblings(transport, path)
        if attempt == _TRIES - 1 or [(s.name, s.mtime_s) for s in before] == [(s.name, s.mtime_s) for s in after]:
            return files
        await asyncio.gather(*(file.aclose() for file in files.files))
    return None


async def _siblings(transport: Transport, path: str) -> list[_Sibling]:
    folder, base = posixpath.split(path)
    try:
        names = await transport.list_dir(folder or ".")
    except (FileMissingError, RefusedError):
        return []
    mine = [n for n in names if n.startswith(base) and n != base and not n.endswith(_COMPRESSED)]
    # Far more than one rotation leaves; the newest by name, whichever way the names count.
    mine = mine if len(mine) <= _MOST_SIBLINGS else [*mine[: _MOST_SIBLINGS // 2], *mine[-_MOST_SIBLINGS // 2 :]]
    stats = await asyncio.gather(*(transport.stat(posixpath.join(folder, name)) for name in mine))
    found = [
        _Sibling(name, stat.size_bytes, stat.mtime_s)
        for name, stat in zip(mine, stats, strict=True)
        if stat is not None and not stat.is_dir
    ]
    return sorted(found, key=lambda sibling: sibling.age_key)


async def _open_trail(
    transport: Transport, path: str, siblings: list[_Sibling], offset: int, overlap_bytes: int, overlap_sha256: str
) -> Trail | None:
    folder = posixpath.dirname(path)
    opened: list[RemoteFile] = []
    kept = False
    try:
        live = await _open(transport, path)
        if live is not None:
            opened.append(live)
        for sibling in reversed(siblings):
            file = await _open(transport, posixpath.join(folder, sibling.name))
            if file is None:
                continue
            opened.append(file)
            if sibling.size_bytes >= offset:
                seen = await file.read_at(offset - overlap_bytes, overlap_bytes)
                if len(seen) == overlap_bytes and hashlib.sha256(seen).hexdigest() == overlap_sha256:
                    kept = True
                    return Trail(tuple(reversed(opened)), live is not None)
        return None
    finally:
        if not kept:
            await asyncio.gather(*(file.aclose() for file in opened))


async def _open(transport: Transport, path: str) -> RemoteFile | None:
    try:
        return await transport.open_file(path)
    except TransportError:
        raise
    except SpecconsoleError:
        return None
