"""Follows one file on a host from a byte offset, through renames, truncation and late appearance.

The handle is kept open, so a renamed file is drained to its end. Every read begins a little before the offset: when
those bytes are no longer the ones read before, the file was cut or replaced under us, however much has been written
since. What a rotation lost is told with its number, or None for unknown; nothing is ever read twice.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from specconsole.errors import FileMissingError
from specconsole.ports import FileStat, RemoteFile, Transport

READ_BYTES = 256 * 1024
_OVERLAP_BYTES = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where a follower is: enough for another console to go on, without a byte of the log itself."""

    offset: int = 0
    """Bytes of the present file that were read."""
    overlap_bytes: int = 0
    overlap_sha256: str = ""
    """Of the `overlap_bytes` before `offset`: the proof that it is still the same file."""
    inode: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """The next bytes of the log."""

    data: bytes
    caught_up: bool
    """True when these were all bytes there were: their arrival time says when they were written."""


@dataclass(frozen=True, slots=True)
class Break:
    """Between two bytes, the file was not what it had been."""

    kind: Literal["truncated", "replaced"]
    lost_bytes: int | None
    text: str


class Follower:
    """One file, one reader. `poll` never waits; the caller sets the pace."""

    def __init__(self, transport: Transport, path: str, place: Place | None = None) -> None:
        self._transport = transport
        self._path = path
        self._place = place or Place()
        self._overlap = b""
        self._resuming = self._place.overlap_bytes > 0
        self._file: RemoteFile | None = None
        self._suspect: FileStat | None = None
        self._skip_zeros = False
        self.mtime_s: float | None = None
        """Host's clock, of the last look."""
        self.missing = False
        """True while there is no such file (not yet, or no longer)."""

    @property
    def place(self) -> Place:
        """For the checkpoint; valid after each `poll`."""
        return self._place

    async def poll(self) -> Chunk | Break | None:
        """The next piece, or what broke, or None when there is nothing new. Raises TransportError."""
        if self._file is None and not await self._open():
            return None
        file = self._file
        assert file is not None
        if self._resuming and (broken := await self._resume(file)):
            return broken
        back = len(self._overlap)
        data = await file.read_at(self._place.offset - back, READ_BYTES + back)
        if data[:back] != self._overlap:
            return await self._cut(file)
        data = data[back:]
        if data:
            self._took(data)
            self._suspect = None
            caught_up = len(data) < READ_BYTES
            if self._skip_zeros:
                # A writer without O_APPEND goes on at its old position behind a hole that reads as zeros.
                data = data.lstrip(b"\0")
                self._skip_zeros = not data
            return Chunk(data, caught_up)
        return await self._look_for_rotation(file)

    async def aclose(self) -> None:
        """Closes the handle."""
        if self._file is not None:
            file, self._file = self._file, None
            await file.aclose()

    async def _open(self) -> bool:
        try:
            self._file = await self._transport.open_file(self._path)
        except FileMissingError:
            self.missing = True
            return False
        self.missing = False
        found = await self._file.stat()
        self.mtime_s = found.mtime_s
        self._place = Place(self._place.offset, self._place.overlap_bytes, self._place.overlap_sha256, found.inode)
        return True

    async def _resume(self, file: RemoteFile) -> Break | None:
        """Is this the file that the checkpoint speaks of? Only the hash of its last bytes is known here."""
        place = self._place
        self._resuming = False
        seen = await file.read_at(place.offset - place.overlap_bytes, place.overlap_bytes)
        if len(seen) == place.overlap_bytes and hashlib.sha256(seen).hexdigest() == place.overlap_sha256:
            self._overlap = seen
            return None
        self._restart()
        return Break("replaced", None, "another file stands there since the last look: what was lost is unknown")

    async def _cut(self, file: RemoteFile) -> Break:
        """Our last bytes are gone from where they were: copytruncate, `> file`, or a writer that started over."""
        found = await file.stat()
        self.mtime_s = found.mtime_s
        self._restart()
        self._skip_zeros = True
        return Break("truncated", None, "the file was cut to nothing: what was written since the last look is lost")

    async def _look_for_rotation(self, file: RemoteFile) -> Break | None:
        """Nothing new: is the path still this file? Without inodes two looks must agree, since one may be half way."""
        held = await file.stat()
        at_path = await self._transport.stat(self._path)
        self.mtime_s = held.mtime_s
        if at_path is None:
            # Renamed away and nothing new yet: the handle may still grow.
            return None
        self.mtime_s = at_path.mtime_s
        if held.inode is not None and at_path.inode is not None:
            same = held.inode == at_path.inode
        else:
            same = (held.size_bytes, held.mtime_s) == (at_path.size_bytes, at_path.mtime_s)
            same = same or at_path.size_bytes > held.size_bytes
            if not same and self._suspect != held:
                self._suspect = held
                return None
        if same:
            self._suspect = None
            return None
        rest = await file.read_at(self._place.offset, 1)
        if rest:
            return None
        await self.aclose()
        self._restart()
        return Break("replaced", 0, "the file was rotated: the old one was read to its end")

    def _restart(self) -> None:
        self._overlap = b""
        self._suspect = None
        self._resuming = False
        self._place = Place(inode=self._place.inode)

    def _took(self, data: bytes) -> None:
        self._overlap = (self._overlap + data)[-_OVERLAP_BYTES:]
        self._place = Place(
            self._place.offset + len(data),
            len(self._overlap),
            hashlib.sha256(self._overlap).hexdigest(),
            self._place.inode,
        )
