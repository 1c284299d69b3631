"""Where `specconsole log` gets a growing file's bytes from: this machine, or a host over its transport."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Protocol

from specconsole.core.reading.reading import Reader
from specconsole.ports import RemoteFile, Transport

_BLOCK_BYTES = 1 << 20
_POLL_S = 0.25


class Listener(Protocol):
    """Is told that bytes came or time passed."""

    follow: bool

    def say(self, now_s: float) -> None: ...


def follow_local(path: str, reader: Reader, listener: Listener) -> None:
    """Goes on behind what `reader` has; survives rotation (the old file is drained first) and truncation.

    Ends by KeyboardInterrupt.
    """
    file = open(path, "rb", buffering=0)  # noqa: SIM115  # replaced when the file is rotated, closed at the end
    try:
        file.seek(reader.offset)
        position = reader.offset
        listener.say(time.monotonic())
        while True:
            data = file.read(_BLOCK_BYTES)
            if data:
                position += len(data)
                reader.feed(data, time.monotonic())
            elif os.fstat(file.fileno()).st_size < position:
                reader.gap(None)
                position = file.seek(0)
                continue
            else:
                replaced = _replaced(path, file.fileno())
                if replaced:
                    file.close()
                    file = open(path, "rb", buffering=0)  # noqa: SIM115  # as above
                    position = 0
                    continue
                time.sleep(_POLL_S)
            listener.say(time.monotonic())
    finally:
        file.close()


def _replaced(path: str, descriptor: int) -> bool:
    try:
        there, here = os.stat(path), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)


async def read_from_host(host: str, path: str, reader: Reader, listener: Listener) -> None:
    """The file at `path` on `host` from its start; with `listener.follow` also what is appended.

    Raises FileMissingError and TransportError.
    """
    from specconsole.wiring import open_transport

    async with open_transport(host) as transport:
        file = await transport.open_file(path)
        try:
            position = await _catch_up(file, reader, 0)
            while listener.follow:
                listener.say(time.monotonic())
                data = await file.read_at(position, _BLOCK_BYTES)
                if data:
                    position += len(data)
                    reader.feed(data, time.monotonic())
                    continue
                await asyncio.sleep(_POLL_S)
                fresh = await _rotated(transport, path, file, position)
                if fresh is not None:
                    await file.aclose()
                    file, position = fresh, 0
        finally:
            await file.aclose()


async def _catch_up(file: RemoteFile, reader: Reader, position: int) -> int:
    while data := await file.read_at(position, _BLOCK_BYTES):
        position += len(data)
        reader.feed(data)
    return position


async def _rotated(transport: Transport, path: str, file: RemoteFile, position: int) -> RemoteFile | None:
    """The new file where the path names a shorter or another one than the handle; else None."""
    here, there = await file.stat(), await transport.stat(path)
    if there is None or here.size_bytes > position:
        return None
    other = here.inode is not None and there.inode is not None and here.inode != there.inode
    if not other and there.size_bytes >= position:
        return None
    return await transport.open_file(path)
