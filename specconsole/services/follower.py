"""Follows one file on a host from a byte offset, through renames, truncation and late appearance.

The handle is kept open, so a renamed file is drained to its end. Every read begins a little before the offset: when
those bytes are no longer the ones read before, the file was cut or replaced under us, however much has been written
since. What was moved aside meanwhile is found again (`rotated`) and read in order. What a rotation lost is told with
its number, or None for unknown; nothing is ever read twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Literal

from specconsole.errors import FileMissingError, TransportError
from specconsole.ports import FileStat, RemoteFile, Transport
from specconsole.services.rotated import Trail, find_trail

READ_BYTES = 1024 * 1024
_OVERLAP_BYTES = 1024
"""A few lines: one line of a log may well stand at the same offset of another file."""
SURE_S = 2.0
"""A file that took the path this long ago or less, unseen, is taken to begin with its first byte. One that had longer
may have been cut in between (`> log`), and nothing on the host would tell."""


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
        self._at = self._place.offset
        """Offset in the present file. At the start of a new one `_place` still names the end of the one before,
        until a byte was read: that is how the new one is found again should it be moved aside meanwhile."""
        self._overlap = b""
        self._new_file = False
        self._unverified = False
        """The present file was reached from the one before, and nothing was taken from it yet."""
        self._lost_track = False
        self._resuming = self._place.overlap_bytes > 0
        self._file: RemoteFile | None = None
        self._later: list[RemoteFile] = []
        """Open files that come after the present one, oldest first; the last is the file at the path."""
        self._why: Literal["truncated", "replaced"] = "replaced"
        self._suspect: FileStat | None = None
        self._skip_zeros = False
        self._looked_s: float | None = None
        """When the last look began that read the present file to its end."""
        self._current_s: float | None = None
        """When it was last known that the writer wrote into what we read; None before that was seen."""
        self._first_bytes = False
        """The next bytes are the first of a file that took the path while we were looking elsewhere."""
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
        try:
            return await self._poll()
        except TransportError:
            # Handles do not outlive a connection. What was read is known by its hash.
            await self.aclose()
            self._resuming = self._place.overlap_bytes > 0
            raise

    async def _poll(self) -> Chunk | Break | None:
        began_s = asyncio.get_running_loop().time()
        if self._file is None and not await self._open():
            return None
        file = self._file
        assert file is not None
        if self._resuming and (broken := await self._resume(file)):
            return broken
        file = self._file
        assert file is not None
        back = len(self._overlap)
        try:
            data = await file.read_at(self._at - back, READ_BYTES + back)
        except FileMissingError:
            # Only where a handle is no real one (a host without SFTP): renamed away and deleted before it was read.
            await self._leave(forget=True)
            return Break("replaced", None, "the file was removed before it was read to its end")
        if data[:back] != self._overlap:
            return await self._cut()
        data = data[back:]
        if data and self._unverified and await self._moved_again():
            return None
        if data and self._lost_track:
            self._lost_track = self._first_bytes = False
            self._restart(forget=True)
            return Break("replaced", None, "rotated faster than it could be read: what was lost is unknown")
        if data and self._first_bytes:
            self._first_bytes = False
            if (unseen := self._unseen(began_s)) is not None:
                return unseen
        if data:
            self._took(data)
            self._suspect = None
            caught_up = len(data) < READ_BYTES and not self._later
            if caught_up:
                # These were written after the look before this one, so the writer was here then.
                self._current_s, self._looked_s = self._looked_s, began_s
            if self._skip_zeros:
                # A writer without O_APPEND goes on at its old position behind a hole that reads as zeros.
                data = data.lstrip(b"\0")
                self._skip_zeros = not data
            return Chunk(data, caught_up)
        if self._later:
            return await self._next_file(file)
        return await self._look_for_rotation(file, began_s)

    def _unseen(self, now_s: float) -> Break | None:
        """What can't be known of a file whose beginning nobody watched."""
        since = self._current_s
        if not self._later:
            self._current_s, self._looked_s = now_s, None
        if since is not None and now_s - since <= SURE_S:
            return None
        for_s = "" if since is None else f" for {now_s - since:.0f} s"
        return Break("replaced", None, f"rotated while nobody looked{for_s}: what was cut from it meanwhile is unknown")

    async def aclose(self) -> None:
        """Closes the handles."""
        files, self._file, self._later = [self._file, *self._later], None, []
        for file in files:
            if file is not None:
                await file.aclose()

    async def _open(self) -> bool:
        try:
            self._file = await self._transport.open_file(self._path)
        except FileMissingError:
            # Renamed away while nobody looked, and nothing new there yet: what it holds is still to be read.
            if not (self._resuming and await self._find_place()):
                self.missing = True
                return False
        self.missing = False
        assert self._file is not None
        found = await self._file.stat()
        self.mtime_s = found.mtime_s
        self._place = Place(self._place.offset, self._place.overlap_bytes, self._place.overlap_sha256, found.inode)
        return True

    async def _resume(self, file: RemoteFile) -> Break | None:
        """Is this the file that the checkpoint speaks of? Only the hash of its last bytes is known here."""
        place = self._place
        seen = await file.read_at(place.offset - place.overlap_bytes, place.overlap_bytes)
        if not self._is_overlap(seen):
            if await self._find_place():
                return None
            self._restart(forget=True)
            return Break("replaced", None, "another file stands there since the last look: what was lost is unknown")
        self._resuming = False
        self._overlap = seen
        self._at = place.offset
        return None

    def _is_overlap(self, seen: bytes) -> bool:
        place = self._place
        return len(seen) == place.overlap_bytes and hashlib.sha256(seen).hexdigest() == place.overlap_sha256

    async def _find_place(self) -> bool:
        """Goes on in the sibling that holds our place, and lines up what is newer; False when none does."""
        place = self._place
        trail = await find_trail(self._transport, self._path, place.offset, place.overlap_bytes, place.overlap_sha256)
        if trail is None:
            return False
        await self._go_along(trail)
        return True

    async def _go_along(self, trail: Trail) -> None:
        place = self._place
        await self.aclose()
        self._file, *self._later = trail.files
        self._overlap = await self._file.read_at(place.offset - place.overlap_bytes, place.overlap_bytes)
        self._at = place.offset
        self._resuming = self._unverified = False
        self._suspect = None
        self._why = "replaced"

    async def _next_file(self, file: RemoteFile) -> Break | None:
        """The present file is read to its end and others follow."""
        held = await self._stat_held(file)
        if held is not None and held != self._suspect:
            # It may be a copy in the making, or still be written by a server that has not opened the new one.
            self._suspect = held
            return None
        await file.aclose()
        self._file = self._later.pop(0)
        self._suspect = None
        found = await self._file.stat()
        self.mtime_s = found.mtime_s
        place = self._place
        if place.overlap_bytes and found.size_bytes >= place.offset:
            seen = await self._file.read_at(place.offset - place.overlap_bytes, place.overlap_bytes)
            if self._is_overlap(seen):
                # The one before was a copy of this one: nothing is read twice.
                self._at, self._overlap = place.offset, seen
                return None
        again, self._new_file = self._new_file, True
        self._first_bytes = True
        self._restart()
        self._unverified = not self._later
        if again:
            # A link that broke between two files brought us here twice.
            return None
        if self._why == "truncated" and not self._later:
            self._skip_zeros = True
            return Break("truncated", None, "copied and cut: what was written between the two is lost")
        return Break("replaced", 0, "the file was rotated: the old one was read to its end")

    async def _moved_again(self) -> bool:
        """After the first look into a new file: was it rotated between the old one's end and this look?

        A copytruncate in that moment would hand us the second generation of the file without the first.
        """
        self._unverified = False
        place = self._place
        if not place.overlap_bytes:
            return False
        trail = await find_trail(self._transport, self._path, place.offset, place.overlap_bytes, place.overlap_sha256)
        if trail is None:
            self._lost_track = True
            return False
        if len(trail.files) <= 2:
            for file in trail.files:
                await file.aclose()
            return False
        await self._go_along(trail)
        return True

    async def _cut(self) -> Break | None:
        """Our last bytes are gone from where they were: copytruncate, `> file`, or a writer that started over."""
        if await self._find_place():
            self._why = "truncated"
            return None
        assert self._file is not None
        found = await self._file.stat()
        self.mtime_s = found.mtime_s
        self._restart(forget=True)
        self._skip_zeros = True
        return Break("truncated", None, "the file was cut to nothing: what was written since the last look is lost")

    async def _look_for_rotation(self, file: RemoteFile, began_s: float) -> Break | None:
        """Nothing new: is the path still this file? Without inodes two looks must agree, since one may be half way."""
        # In this order: a file that only grows can't be larger at the path than, a moment later, in our hands.
        at_path = await self._transport.stat(self._path)
        held = await self._stat_held(file)
        self.mtime_s = held.mtime_s if held is not None else self.mtime_s
        if at_path is None or held is None:
            # Renamed away and nothing new yet: the handle may still grow.
            return None
        self.mtime_s = at_path.mtime_s
        if held.inode is not None and at_path.inode is not None:
            same = held.inode == at_path.inode
        else:
            same = (held.size_bytes, held.mtime_s) == (at_path.size_bytes, at_path.mtime_s)
            if not same and self._suspect != held:
                self._suspect = held
                return None
        if same:
            self._suspect = None
            self._current_s = self._looked_s = began_s
            return None
        if held.size_bytes > self._at:
            return None
        # More than one rotation may have passed since the last look.
        if await self._find_place():
            return None
        await self._leave(forget=True)
        self._first_bytes = True
        return Break("replaced", 0, "the file was rotated: the old one was read to its end")

    async def _stat_held(self, file: RemoteFile) -> FileStat | None:
        try:
            return await file.stat()
        except FileMissingError:
            return None

    async def _leave(self, *, forget: bool = False) -> None:
        """The present file has nothing more for us; the next look opens the one at the path."""
        await self.aclose()
        self._restart(forget=forget)

    def _restart(self, *, forget: bool = False) -> None:
        """The next byte is the first of a file. `forget`: what came before is no help in finding it again."""
        self._at = 0
        self._overlap = b""
        self._suspect = None
        self._resuming = self._unverified = False
        if forget:
            self._place = Place(inode=self._place.inode)

    def _took(self, data: bytes) -> None:
        self._overlap = (self._overlap + data)[-_OVERLAP_BYTES:]
        self._at += len(data)
        self._new_file = False
        self._place = Place(self._at, len(self._overlap), hashlib.sha256(self._overlap).hexdigest(), self._place.inode)
