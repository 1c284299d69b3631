"""One launch's log on its way: followed on the host, masked, kept in the spool, read, and checkpointed.

The reader's state is stored together with the offset it belongs to; a console that was killed at any moment goes on
there, and a state that no longer fits is built again from the spool.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from specconsole.core.launching.masking import Masker
from specconsole.core.launching.probe_pattern import Probe
from specconsole.core.reading.history import History, StartKey
from specconsole.core.reading.probe_series import ProbeReader
from specconsole.core.reading.reading import Reader
from specconsole.errors import SpecconsoleError
from specconsole.ports import Clock, Transport
from specconsole.services.atomic_file import replace_file
from specconsole.services.command_log import CommandLog
from specconsole.services.follower import Break, Chunk, Follower, Place
from specconsole.services.spool import Spool
from specconsole.services.tail_glimpse import TailGlimpse

_SCHEMA = 1
_SAVE_EVERY_S = 1.0
_FEED_BYTES = 256 * 1024
_JUST_BEGUN_S = 3.0
_LAST_STEP_S = 5.0
_QUIET_LOOKS = 3
"""A follower between two files of a rotation looks twice before it goes on."""


def _hear(step: asyncio.Task[bool]) -> None:
    """A step whose asker was cancelled may fail (the link went down): nobody is left to be told."""
    if not step.cancelled():
        step.exception()


class LogIntake:
    """Make it, `await open()`, call `advance()` again and again, `await close()`."""

    def __init__(
        self,
        transport: Transport,
        path: str,
        folder: Path,
        clock: Clock,
        *,
        engine: str | None = None,
        secrets: Iterable[str] = (),
        log_command: Sequence[str] = (),
        probes: Sequence[Probe] = (),
    ) -> None:
        """`log_command` prints the log where there is no file; `path` is then only its name. `probes` are numbers to
        read from it besides."""
        self._transport = transport
        self._log_command = tuple(log_command)
        self._path = path
        self._folder = folder
        self._clock = clock
        self._engine = engine
        self._key: StartKey | None = None
        self._history: History | None = None
        secrets = tuple(secrets)
        self._secrets = tuple(secrets)
        self._masker = Masker(self._secrets)
        self._glimpse = TailGlimpse(transport, path, clock, engine, secrets)
        self._probes = tuple(probes)
        self.probes: ProbeReader | None = None
        """None where there are none, and before `open`."""
        self._follower: Follower | CommandLog | None = None
        self._spool: Spool | None = None
        self._lock_fd = -1
        self._dirty_since_s: float | None = None
        self._reader: Reader | None = None
        self._turn = asyncio.Lock()
        self._step: asyncio.Task[bool] | None = None
        self._backlog = True
        self._caught_up = False
        self.host_offset_s: float | None = None
        """The host's wall clock less this console's; None while unknown."""
        self.launch_age_s: float | None = None
        """How old the launch was when it began to be followed; None while unknown."""
        self.final = False
        """True when the log was read to the end of a launch that is over: nothing will come any more."""

    def use_history(self, key: StartKey | None, history: History | None) -> None:
        """What earlier starts took, for the estimates; only before `open`."""
        self._key, self._history = key, history

    @property
    def reader(self) -> Reader:
        """Only after `open` (its dialects are looked up on the disk, in a thread)."""
        assert self._reader is not None
        return self._reader

    @property
    def shown(self) -> Reader:
        """What to show now: the whole reading, or one of the end alone while the whole is far behind."""
        return self._glimpse.reader or self.reader

    @property
    def spool(self) -> Spool | None:
        return self._spool

    @property
    def mtime_s(self) -> float | None:
        """Host's clock when the log last changed, as of the last look."""
        return self._follower.mtime_s if self._follower is not None else None

    async def open(self) -> None:
        """Opens spool and checkpoint. Raises SpecconsoleError when nothing can be kept here."""
        place = await asyncio.to_thread(self._open)
        if self._log_command:
            self._follower = CommandLog(self._transport, self._log_command, self._clock, place)
        else:
            self._follower = Follower(self._transport, self._path, place)

    def _open(self) -> Place:
        self._folder = self._own_folder(self._folder)
        spool = self._spool = Spool(self._folder)
        saved = self._load()
        self._reader = self._new_reader()
        self.probes = ProbeReader(self._probes) if self._probes else None
        if saved is None:
            spool.truncate(0)
            return Place()
        size = int(saved["spool_bytes"])
        if size > spool.size_bytes:
            # The spool was lost or cut (a crash of the machine): the host still has it all.
            spool.truncate(0)
            return Place()
        spool.truncate(size) if size < spool.size_bytes else None
        self.final = bool(saved.get("final"))
        try:
            self._reader = Reader.resume(saved["reader"], key=self._key, history=self._history)
            whole = self._reader.offset >= size
        except (KeyError, ValueError, TypeError, AttributeError):
            whole = False
        if not whole:
            self._read_again(spool)
        if self._probes:
            self._resume_probes(saved.get("probes"), spool)
        return Place(**saved["place"])

    def _own_folder(self, folder: Path) -> Path:
        """Two consoles of one machine must not write one spool: the second keeps its own beside it."""
        for number in range(100):
            chosen = folder if number == 0 else folder.with_name(f"{folder.name}+{number}")
            try:
                chosen.mkdir(parents=True, exist_ok=True, mode=0o700)
                fd = os.open(chosen / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise SpecconsoleError(
                    f"can't keep the log here: {error.strerror}",
                    where=str(chosen),
                    try_="check owner, mode and free space of the state folder",
                ) from error
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(fd)
                continue
            self._lock_fd = fd
            return chosen
        raise SpecconsoleError("100 consoles follow this launch already", where=str(folder))

    def _load(self) -> dict[str, Any] | None:
        try:
            data = json.loads((self._folder / "checkpoint.json").read_bytes())
        except (OSError, ValueError):
            return None
        fits = isinstance(data, dict) and data.get("schema") == _SCHEMA and data.get("path") == self._path
        return data if fits else None

    def _new_reader(self) -> Reader:
        return Reader(engine=self._engine, key=self._key, history=self._history)

    def _read_again(self, spool: Spool) -> None:
        self._reader = self._new_reader()
        for _, block in spool.blocks(0):
            self._reader.feed(block)

    def _resume_probes(self, saved: Any, spool: Spool) -> None:
        """From the checkpoint; where it has none of these, what is kept here of the log is read again."""
        self.probes = ProbeReader.resume(self._probes, saved)
        if self.probes is None or self.probes.offset != self.reader.offset:
            self.probes = ProbeReader(self._probes)
            for _, block in spool.blocks(0):
                self.probes.feed(block)
            self.probes.gap(max(0, self.reader.offset - self.probes.offset))

    async def advance(self) -> bool:
        """One step; True when something came. Raises TransportError, or SpecconsoleError when the spool can't grow.

        A step is whole or not at all: what was read must be kept and fed before the next one begins, whoever asks for
        it, and also when the one who asked is cancelled meanwhile.
        """
        async with self._turn:
            await self._finish_step()
            self._step = asyncio.create_task(self._advance())
            self._step.add_done_callback(_hear)
            return await asyncio.shield(self._step)

    async def _finish_step(self) -> None:
        """Waits for a step whose asker was cancelled; its own trouble was nobody's to hear."""
        if self._step is not None:
            await asyncio.wait({self._step})
            if not self._step.cancelled():
                self._step.exception()

    async def reopen(self) -> None:
        """Goes back to the last checkpoint, after the spool could not be written: what was read since is read again."""
        async with self._turn:
            await self._finish_step()
            if self._follower is not None:
                await self._follower.aclose()
            if self._spool is not None:
                self._spool.close()
            self._follower, self._spool = None, None
            self.unlock()
            self._masker = Masker(self._secrets)
            await self.open()

    async def _advance(self) -> bool:
        if self._follower is None:
            # It could not be reopened yet.
            await self.open()
        assert self._follower is not None
        assert self._spool is not None
        if not self._log_command:
            await self._glimpse.look(self._follower.place.offset, caught_up=self._caught_up)
        came = await self._follower.poll()
        self._caught_up = came is None or (isinstance(came, Chunk) and came.caught_up)
        if came is None or (self.launch_age_s is not None and self.launch_age_s < _JUST_BEGUN_S):
            self._backlog = False  # nothing stood there before we came: it is read as it is written
        if isinstance(came, Chunk):
            await self._take(self._masker.feed(came.data), came.caught_up)
        elif isinstance(came, Break):
            await self._broke(came)
        await self._save_if_due()
        return came is not None

    async def _take(self, data: bytes, caught_up: bool) -> None:
        assert self._spool is not None
        if not data:
            return
        await asyncio.to_thread(self._spool.append, data)
        at_s = self._clock.monotonic_s() if caught_up and not self._backlog else None
        for start in range(0, len(data), _FEED_BYTES):
            self.reader.feed(data[start : start + _FEED_BYTES], at_s)
            if self.probes is not None:
                self._feed_probes(self.probes, data[start : start + _FEED_BYTES], at_s)
            await asyncio.sleep(0)  # a megabyte costs 5 to 10 ms, and the window wants to paint
        if caught_up and self._backlog:
            self._backlog = False
            self.reader.arrived(self._last_written_at_s())
        if self._dirty_since_s is None:
            self._dirty_since_s = self._clock.monotonic_s()

    def _feed_probes(self, probes: ProbeReader, data: bytes, at_s: float | None) -> None:
        # What is kept for longer than this console runs needs a clock that others have too.
        wall_s = None if at_s is None else self._clock.wall_s() - (self._clock.monotonic_s() - at_s)
        probes.feed(data, wall_s)

    def _last_written_at_s(self) -> float:
        """When the newest byte of what stood there before we came was written, on this console's monotonic clock: as
        long ago as the host says. Its other lines came before that, nobody knows when."""
        now_s = self._clock.monotonic_s()
        if self.host_offset_s is None or self.mtime_s is None:
            return now_s
        return now_s - max(0.0, self._clock.wall_s() + self.host_offset_s - self.mtime_s)

    async def _broke(self, what: Break) -> None:
        assert self._spool is not None
        await self._take(self._masker.flush(), caught_up=False)
        await asyncio.to_thread(self._spool.mark, what.kind, what.lost_bytes, what.text)
        if what.lost_bytes != 0:
            if self._spool.size_bytes and self._spool.raw(self._spool.size_bytes - 1, self._spool.size_bytes) != b"\n":
                # The line before the gap has no end; the reader counts it as one, so must the spool.
                await asyncio.to_thread(self._spool.append, b"\n")
            self.reader.gap(what.lost_bytes)
            if self.probes is not None:
                self.probes.gap(what.lost_bytes)
        await self.save()

    async def drain(self) -> None:
        """Reads to the end of a log that nobody writes any more."""
        quiet = 0
        while quiet < _QUIET_LOOKS:
            quiet = 0 if await self.advance() else quiet + 1
        await self._take(self._masker.flush(), caught_up=True)
        await self.save()

    async def _save_if_due(self) -> None:
        since = self._dirty_since_s
        if since is not None and self._clock.monotonic_s() - since >= _SAVE_EVERY_S:
            await self.save()

    async def save(self) -> None:
        """Stores the reader's state with its offset, whole or not at all."""
        if self._masker.held_bytes or self._follower is None or self._spool is None:
            # What is held back is in neither file: the last checkpoint stays the truth.
            return
        state = {
            "schema": _SCHEMA,
            "path": self._path,
            "place": asdict(self._follower.place),
            "spool_bytes": self._spool.size_bytes,
            "final": self.final,
            "reader": self.reader.checkpoint(),
        }
        if self.probes is not None:
            state["probes"] = self.probes.checkpoint()
        self._dirty_since_s = None
        await asyncio.to_thread(replace_file, self._folder / "checkpoint.json", json.dumps(state).encode())

    async def close(self) -> None:
        """Saves and closes; everything stays on the disk. Where nothing can be written the last checkpoint holds.

        A step whose asker is gone is waited for: in the middle of one, what the follower has read and what the spool
        holds differ, and a checkpoint of that would lose the difference.
        """
        try:
            if self._step is not None and not (await asyncio.wait({self._step}, timeout=_LAST_STEP_S))[0]:
                self._step.cancel()
                await asyncio.wait({self._step}, timeout=1.0)
                return
            with suppress(SpecconsoleError):
                await self.save()
        finally:
            await self._glimpse.drop()
            if self._follower is not None:
                await self._follower.aclose()
            if self._spool is not None:
                self._spool.close()
            self.unlock()

    def unlock(self) -> None:
        """Lets another console have the spool; what a killed one's system does for it."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1
