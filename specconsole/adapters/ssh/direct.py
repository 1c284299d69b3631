"""A TCP connection that starts at the host: a direct channel dressed as asyncio's own stream pair.

No local port listens for it, and "nothing listens there" is told apart from "no answer", which a forwarded local
port can't do.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED

from specconsole.adapters.ssh.errors import lost
from specconsole.core.hosts.plain_text import one_line
from specconsole.errors import ConnectionRefusedAtHostError, HostUnreachableError, RefusedError, TransportError


class _ChannelTransport(asyncio.Transport):
    """The part of an asyncio transport that StreamReader and StreamWriter use."""

    def __init__(self, channel: asyncssh.SSHTCPChannel[bytes]) -> None:
        super().__init__()
        self._channel = channel
        self._reading = True

    def write(self, data: Any) -> None:
        if not self._channel.is_closing():
            self._channel.write(bytes(data))

    def write_eof(self) -> None:
        self._channel.write_eof()

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self._channel.close()

    def abort(self) -> None:
        self._channel.abort()

    def is_closing(self) -> bool:
        return self._channel.is_closing()

    def pause_reading(self) -> None:
        self._reading = False
        self._channel.pause_reading()

    def resume_reading(self) -> None:
        # Later, as a socket's transport does it: StreamReader resumes just before it starts to wait, and data
        # handed over in between (asyncssh does that at once) would wake nobody.
        self._reading = True
        asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        if self._reading:
            self._channel.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._channel.get_extra_info(name, default)


class _Session(asyncssh.SSHTCPSession[bytes]):
    """Hands what the channel says to asyncio's stream protocol."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.reader = asyncio.StreamReader(loop=loop)
        self.protocol = asyncio.StreamReaderProtocol(self.reader, loop=loop)
        self.transport: _ChannelTransport | None = None

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self.transport = _ChannelTransport(chan)
        self.protocol.connection_made(self.transport)

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self.protocol.data_received(data)

    def eof_received(self) -> bool:
        self.protocol.eof_received()
        return True  # our direction stays open, as on a TCP socket

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            exc = ConnectionResetError(str(exc))  # what readers of a TCP stream expect
        self.protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self.protocol.resume_writing()


async def open_direct(
    connection: asyncssh.SSHClientConnection, name: str, host: str, port: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """See `Transport.open_connection`. `name` is the SSH host's, for errors."""
    where = f"{name}:{port}" if host in ("127.0.0.1", "localhost", "::1") else f"{host}:{port} from {name}"
    try:
        _, session = await connection.create_connection(_Session, host, port, encoding=None)
    except asyncssh.ChannelOpenError as error:
        raise _translate(error, name, where) from None
    except (asyncssh.Error, OSError) as error:
        raise lost(name, error) from None
    assert isinstance(session, _Session)
    assert session.transport is not None
    writer = asyncio.StreamWriter(session.transport, session.protocol, session.reader, asyncio.get_running_loop())
    return session.reader, writer


def _translate(error: asyncssh.ChannelOpenError, name: str, where: str) -> Exception:
    text = one_line(str(error))
    if "refused" in text.lower():
        return ConnectionRefusedAtHostError("nothing listens there", where=where)
    if "closed" in text.lower():
        return lost(name, error)
    if error.code == OPEN_ADMINISTRATIVELY_PROHIBITED:
        return RefusedError(
            "the host's sshd forwards no TCP connections", where=name, try_="AllowTcpForwarding yes in its sshd_config"
        )
    if error.code == OPEN_CONNECT_FAILED:
        # OpenSSH 9.2 puts strerror here: "Connection timed out", "No route to host", "Name or service not known".
        return HostUnreachableError(text, where=where)
    return TransportError(text, where=where)
