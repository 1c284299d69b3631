"""A log that a command prints (`docker logs -f`), with the same interface as `Follower`.

When the link breaks the command is started again a little before the last byte, and what was seen already is dropped
by finding our last bytes in what it prints. When they are not there, the place is marked: lines may be missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Sequence
from contextlib import AsyncExitStack

from specconsole.core.hosts.log_command import once, restarted
from specconsole.errors import RefusedError, TransportError
from specconsole.ports import ByteStream, Clock, Transport
from specconsole.services.follower import Break, Chunk, Place

_OVERLAP_BYTES = 1024
_SEARCH_BYTES = 32 * 1024 * 1024
_QUIET_S = 1.5
"""A command that was started again has printed its past when it is silent for so long."""
_AGAIN_S = 5.0
_POLL_S = 0.05
_ASK_EVERY_S = 2.0
_ASK_LIMIT_S = 60.0


class CommandLog:
    """One log command, one reader. `poll` waits at most a moment; the caller sets the pace."""

    def __init__(self, transport: Transport, argv: Sequence[str], clock: Clock, place: Place | None = None) -> None:
        self._transport = transport
        self._argv = tuple(argv)
        self._clock = clock
        self._place = place or Place()
        self._tail = b""
        self._last_s: float | None = None
        self._stack: AsyncExitStack | None = None
        self._stream: ByteStream | None = None
        self._reading: asyncio.Task[bytes] | None = None
        self._search = bytearray()
        self._pending = b""
        self._searching = self._place.overlap_bytes > 0
        self._heard_s = 0.0
        self._again_at_s = 0.0
        self.mtime_s: float | None = None
        self.missing = False

    @property
    def place(self) -> Place:
        """How many bytes were taken, and the hash of the last ones."""
        return self._place

    async def poll(self) -> Chunk | Break | None:
        """The next piece, or what broke, or None when there is nothing new. Raises TransportError."""
        if self._pending:
            pending, self._pending = self._pending, b""
            return self._take(pending)
        if self._stream is None:
            if self._clock.monotonic_s() < self._again_at_s:
                return None
            try:
                await self._start()
            except RefusedError:
                # No session channel is left for a command that goes on: it is asked again and again instead.
                return await self._ask_once()
        data = await self._read()
        if data is None:
            return self._give_up_search() if self._searching and self._quiet() else None
        if not data:
            # It ended by itself: the container stopped, or the command is wrong. It is asked again in a while.
            await self._end()
            self._again_at_s = self._clock.monotonic_s() + _AGAIN_S
            return self._give_up_search() if self._searching else None
        self._heard_s = self._clock.monotonic_s()
        return self._found(data) if self._searching else self._take(data)

    async def aclose(self) -> None:
        """Ends the command."""
        await self._end()

    async def _start(self) -> None:
        self._stack = AsyncExitStack()
        argv = restarted(self._argv, self._last_s)
        self._searching = self._place.overlap_bytes > 0
        self._search.clear()
        try:
            self._stream = await self._stack.enter_async_context(self._transport.stream(argv))
        except BaseException:
            await self._end()
            raise
        self._heard_s = self._clock.monotonic_s()

    async def _ask_once(self) -> Chunk | Break | None:
        """What the command prints now, less what is known already."""
        self._again_at_s = self._clock.monotonic_s() + _ASK_EVERY_S
        argv = once(self._argv, self._last_s)
        done = await self._transport.run(
            ["sh", "-c", 'exec "$@" 2>&1', "sh", *argv], timeout_s=_ASK_LIMIT_S, max_output_bytes=_SEARCH_BYTES
        )
        if not done.stdout:
            return None
        self._searching = self._place.overlap_bytes > 0
        self._search.clear()
        if not self._searching:
            return self._take(done.stdout)
        found = self._found(done.stdout)
        return self._give_up_search() if self._searching else found

    async def _read(self) -> bytes | None:
        """None when nothing came within a moment; the read itself goes on."""
        assert self._stream is not None
        if self._reading is None:
            self._reading = asyncio.create_task(self._stream.read(256 * 1024))
        done, _ = await asyncio.wait({self._reading}, timeout=_POLL_S)
        if not done:
            return None
        task, self._reading = self._reading, None
        try:
            return task.result()
        except TransportError:
            await self._end()
            raise

    async def _end(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        stack, self._stack, self._stream = self._stack, None, None
        if stack is not None:
            with contextlib.suppress(TransportError):
                await stack.aclose()

    def _quiet(self) -> bool:
        return self._clock.monotonic_s() - self._heard_s > _QUIET_S

    def _take(self, data: bytes) -> Chunk:
        self._tail = (self._tail + data)[-_OVERLAP_BYTES:]
        self._place = Place(self._place.offset + len(data), len(self._tail), hashlib.sha256(self._tail).hexdigest())
        self._last_s = self.mtime_s = self._clock.wall_s()
        return Chunk(data, caught_up=len(data) < 64 * 1024)

    def _found(self, data: bytes) -> Chunk | Break | None:
        """Looks for our last bytes in what the command prints again."""
        searched = max(0, len(self._search) - self._place.overlap_bytes)
        self._search += data
        end = self._end_of_overlap(searched)
        if end is None:
            return self._give_up_search() if len(self._search) > _SEARCH_BYTES else None
        self._searching = False
        rest = bytes(self._search[end:])
        self._search.clear()
        return self._take(rest) if rest else None

    def _end_of_overlap(self, start: int) -> int | None:
        if self._tail:
            at = self._search.rfind(self._tail, start)
            return None if at < 0 else at + len(self._tail)
        # Another console's place: only the hash is known, so every position that ends a line is tried.
        size = self._place.overlap_bytes
        for end in range(start + size, len(self._search) + 1):
            window = bytes(self._search[end - size : end])
            if window.endswith((b"\n", b"\r")) and hashlib.sha256(window).hexdigest() == self._place.overlap_sha256:
                self._tail = window
                return end
        return None

    def _give_up_search(self) -> Break:
        self._pending = bytes(self._search)
        self._search.clear()
        self._searching = False
        self._tail = b""
        self._place = Place(self._place.offset)
        return Break("replaced", None, "the log command was started again and its past does not hold our last line")
