"""A local port that leads to a server on a host: for runs from this machine, where the host itself has no Python.

What is measured through it has the link in it, and the result says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from specconsole.errors import SpecconsoleError
from specconsole.ports import Transport

_BLOCK_BYTES = 65536


@asynccontextmanager
async def open_tunnel(transport: Transport, address: str, port: int) -> AsyncIterator[int]:
    """The local port, for the length of the block; only this machine's own processes can reach it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await transport.open_connection(address, port)
        except (SpecconsoleError, OSError):
            writer.close()
            return
        try:
            async with asyncio.TaskGroup() as group:
                down = group.create_task(_copy(there, writer))
                up = group.create_task(_copy(reader, back))
                await asyncio.wait((down, up), return_when=asyncio.FIRST_COMPLETED)
                down.cancel()
                up.cancel()
        finally:
            writer.close()
            back.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(_BLOCK_BYTES):
            sink.write(data)
            await sink.drain()
    except (SpecconsoleError, OSError):
        return
