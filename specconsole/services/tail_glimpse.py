"""A reading of a large log's end, while the whole of it is still on its way.

What it says is marked `basis: tail`; it is dropped as soon as the whole reading has caught up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from specconsole.core.launching.masking import Masker
from specconsole.core.reading.reading import Reader
from specconsole.errors import SpecconsoleError
from specconsole.ports import Clock, RemoteFile, Transport

FAR_BYTES = 8 * 1024 * 1024
"""What is left to read of a log that is worth a glimpse: less is read in under a second."""
_TAIL_BYTES = 1024 * 1024
_AGAIN_S = 1.0


class TailGlimpse:
    """`look` now and then while catching up; `reader` is None when the whole reading is the better one."""

    def __init__(
        self, transport: Transport, path: str, clock: Clock, engine: str | None, secrets: Iterable[str]
    ) -> None:
        self._transport = transport
        self._path = path
        self._clock = clock
        self._engine = engine
        self._masker = Masker(secrets)
        self._file: RemoteFile | None = None
        self._at = 0
        self._next_s = 0.0
        self._looked = False
        self.reader: Reader | None = None

    async def look(self, whole_offset: int, *, caught_up: bool) -> None:
        """`whole_offset`: how far the whole reading is. Trouble with the file is the follower's to tell."""
        if caught_up and self._looked:
            await self.drop()
            return
        now_s = self._clock.monotonic_s()
        if now_s < self._next_s or (self._looked and self.reader is None):
            return
        self._next_s = now_s + _AGAIN_S
        try:
            await self._look(whole_offset)
        except SpecconsoleError:
            await self.drop()

    async def _look(self, whole_offset: int) -> None:
        if self.reader is None:
            self._looked = True
            found = await self._transport.stat(self._path)
            if found is None or found.size_bytes - whole_offset < FAR_BYTES:
                return
            self._file = await self._transport.open_file(self._path)
            self._at = found.size_bytes - _TAIL_BYTES
            data = await self._file.read_at(self._at, _TAIL_BYTES)
            self._at += len(data)
            # In a thread: dialects are found by listing a folder.
            self.reader = await asyncio.to_thread(lambda: Reader(engine=self._engine, basis="tail"))
            # The first line is cut somewhere in its middle.
            self.reader.feed(self._masker.feed(data[data.find(b"\n") + 1 :]))
            return
        assert self._file is not None
        data = await self._file.read_at(self._at, _TAIL_BYTES)
        self._at += len(data)
        self.reader.feed(self._masker.feed(data), self._clock.monotonic_s() if len(data) < _TAIL_BYTES else None)

    async def drop(self) -> None:
        """The whole reading has caught up, or the file is not what it was."""
        self.reader = None
        self._looked = True
        file, self._file = self._file, None
        if file is not None:
            await file.aclose()
