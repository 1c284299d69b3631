"""Where `specconsole log` gets a growing file's bytes from: this machine, or a host over its transport."""

from __future__ import annotations

import asyncio
import os
import random
import stat
import time
from typing import Protocol

from specconsole.core.hosts.backoff import delay_s
from specconsole.core.hosts.link_state import waits_for_person
from specconsole.core.reading.reading import Reader
from specconsole.errors import BadInputError, FileMissingError, TransportError
from specconsole.ports import Link, Transport

_BLOCK_BYTES = 1 << 20
_POLL_S = 0.25
_QUIET_LOOKS = 3
"""A follower between two files of a rotation looks twice before it goes on."""


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
        age_s = max(0.0, time.time() - os.fstat(file.fileno()).st_mtime)
        reader.arrived(time.monotonic() - age_s)
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
    """The file at `path` on `host` from its start; with `listener.follow` also what is appended, through rotations.

    A link that breaks while following is made again. Raises FileMissingError and TransportError.
    """
    from specconsole.services.follower import Break, Chunk, Follower
    from specconsole.wiring import open_transport

    async with open_transport(host) as transport:
        # Paths that are not absolute are the home folder's, as for scp; `~` itself means nothing to SFTP.
        path = path[2:] if path.startswith("~/") else path
        found = await transport.stat(path)
        if found is None:
            raise FileMissingError("no such file", where=f"{host}:{path}")
        kind = stat.S_IFMT(found.mode)
        if kind and kind != stat.S_IFREG:
            # A pipe or a device would be waited for, or read, for ever.
            raise BadInputError(
                "is a folder" if kind == stat.S_IFDIR else "is no regular file", where=f"{host}:{path}",
                try_="the path of a log file",
            )  # fmt: skip
        follower = Follower(transport, path)
        quiet = 0
        try:
            while listener.follow or quiet < _QUIET_LOOKS:
                try:
                    came = await follower.poll()
                except TransportError as error:
                    await _reconnect(transport, error, listener)
                    continue
                quiet = quiet + 1 if came is None else 0
                if isinstance(came, Chunk):
                    reader.feed(came.data, time.monotonic() if listener.follow and came.caught_up else None)
                elif isinstance(came, Break) and came.lost_bytes != 0:
                    reader.gap(came.lost_bytes)
                listener.say(time.monotonic())
                if came is None and listener.follow:
                    await asyncio.sleep(_POLL_S)
        finally:
            await follower.aclose()


async def _reconnect(transport: Transport, error: TransportError, listener: Listener) -> None:
    """Until it is back. Raises the error where only a person could help, or nothing is to be followed."""
    if not listener.follow or not isinstance(transport, Link):
        raise error
    attempt = 0
    while not transport.connected:
        await asyncio.sleep(delay_s(attempt, random.random()))  # noqa: S311 - spreads retries, guards nothing
        attempt += 1
        try:
            await transport.connect()
        except TransportError as again:
            if waits_for_person(again):
                raise
        listener.say(time.monotonic())
