"""A TCP proxy that breaks links on demand, in the test's own event loop.

Four ways, as networks do it: `cut` (both ends get a reset), `half_open` (the far end is gone, nobody tells us:
bytes are swallowed, the socket stays), `stall`/`resume` (nothing moves for a while, nothing is lost) and
`refuse` (nobody listens). `delay_s` is added to every chunk in each direction.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on, 0 s: closing sends RST instead of FIN."""


@dataclass(eq=False)
class _Link:
    near: asyncio.StreamWriter
    far: asyncio.StreamWriter
    swallow: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class FaultProxy:
    """Listens on a free port of the loopback (`port`) and forwards to `target_port` there."""

    def __init__(self, target_port: int, *, delay_s: float = 0.0) -> None:
        self.target_port = target_port
        self.delay_s = delay_s
        self.port = 0
        self.accepted = 0
        self.bytes_forwarded = 0
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self._moving = asyncio.Event()
        self._moving.set()
        self._swallow_new = False
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def open_links(self) -> int:
        return len(self._links)

    def cut(self) -> int:
        """Resets every connection; returns how many."""
        links = list(self._links)
        for link in links:
            for writer in (link.near, link.far):
                sock = writer.get_extra_info("socket")
                if sock is not None:
                    with contextlib.suppress(OSError):
                        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()
        return len(links)

    def half_open(self) -> None:
        """Every present connection goes silent for good: what is sent vanishes, and no end is told."""
        for link in self._links:
            link.swallow = True

    def stall(self) -> None:
        """Nothing moves, on old and new connections, until `resume`."""
        self._moving.clear()

    def resume(self) -> None:
        self._moving.set()

    def black_hole(self, on: bool = True) -> None:
        """New connections are accepted and never answered."""
        self._swallow_new = on

    async def refuse(self) -> None:
        """Stops listening; the port stays ours for `listen_again`."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def listen_again(self) -> None:
        if self._server is None:
            await self.start()

    async def _serve(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        if self._swallow_new:
            far_reader, far = reader, near
            link = _Link(near, far, swallow=True)
        else:
            try:
                far_reader, far = await asyncio.open_connection("127.0.0.1", self.target_port)
            except OSError:
                near.transport.abort()
                return
            link = _Link(near, far)
        self._links.add(link)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(link, reader, far))
                if far is not near:
                    group.create_task(self._pump(link, far_reader, near))
        except asyncio.CancelledError:
            pass  # by aclose; asyncio's own callback on this task would report it as an error
        finally:
            self._links.discard(link)
            for writer in {near, far}:
                writer.transport.abort()

    async def _pump(self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                await self._moving.wait()
                if link.swallow:
                    continue
                self.bytes_forwarded += len(data)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        if link.swallow:
            # The far end of a half-open link never learns that this one is gone.
            await asyncio.Event().wait()
        for end in (link.near, link.far):
            end.transport.abort()

    async def aclose(self) -> None:
        await self.refuse()
        self.cut()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


@contextlib.asynccontextmanager
async def fault_proxy(target_port: int, *, delay_s: float = 0.0) -> AsyncIterator[FaultProxy]:
    """A running proxy in front of a port of the loopback."""
    proxy = FaultProxy(target_port, delay_s=delay_s)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.aclose()
