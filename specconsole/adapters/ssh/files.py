"""Files of a host over one SFTP channel; handles are kept, so that a renamed file can still be drained."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import secrets
from collections.abc import Iterator
from typing import cast

import asyncssh

from specconsole.adapters.ssh.errors import file_errors, lost
from specconsole.adapters.ssh.sessions import Sessions
from specconsole.errors import BadInputError, LinkLostError, RefusedError
from specconsole.ports import FileStat

START_S = 8.0
"""A login shell that prints something makes the client wait for ever: the text is read as a packet's length."""

_BLOCK_BYTES = 128 * 1024
"""A server may answer a larger request short (OpenSSH: up to 255 KiB), and short means end of file here."""
_BLOCKS_AT_ONCE = 16

_SERVERS = (
    "/usr/lib/openssh/sftp-server /usr/libexec/openssh/sftp-server /usr/libexec/sftp-server /usr/lib/ssh/sftp-server"
)


def _stat(attrs: asyncssh.SFTPAttrs) -> FileStat:
    return FileStat(attrs.size or 0, float(attrs.mtime or 0), attrs.permissions or 0)


class SftpFile:
    """An open SFTP handle. Reads at an offset may run side by side."""

    def __init__(self, host: str, path: str, handle: asyncssh.SFTPClientFile) -> None:
        self._host = host
        self._path = path
        self._handle = handle
        self._reading: set[asyncio.Task[list[bytes]]] = set()

    async def read_at(self, offset: int, max_bytes: int) -> bytes:
        """Up to `max_bytes`, cut at the first short block.

        asyncssh's own large read asks for blocks side by side and fills with zeros what a block at the end of
        the file left open when the file grew in between (2.24, `_SFTPFileReader.run`): a live log would get holes.
        """
        block_bytes = min(_BLOCK_BYTES, self._handle.read_len or _BLOCK_BYTES)
        blocks = [
            (start, min(block_bytes, offset + max_bytes - start))
            for start in range(offset, offset + max_bytes, block_bytes)
        ]
        got = bytearray()
        for first in range(0, len(blocks), _BLOCKS_AT_ONCE):
            wanted = blocks[first : first + _BLOCKS_AT_ONCE]
            for (_, size), data in zip(wanted, await self._read(wanted), strict=True):
                got += data
                if len(data) < size:
                    return bytes(got)
        return bytes(got)

    async def _block(self, start: int, size: int) -> bytes:
        return cast(bytes, await self._handle.read(size, start))  # bytes, because opened with encoding=None

    async def _read(self, blocks: list[tuple[int, int]]) -> list[bytes]:
        """Reads blocks side by side; a caller that is cancelled leaves the requests to end by themselves."""

        async def all_of_them() -> list[bytes]:
            with file_errors(self._host, self._path):
                return list(await asyncio.gather(*(self._block(start, size) for start, size in blocks)))

        task = asyncio.get_running_loop().create_task(all_of_them())
        self._reading.add(task)
        task.add_done_callback(self._read_done)
        return await asyncio.shield(task)

    def _read_done(self, task: asyncio.Task[list[bytes]]) -> None:
        self._reading.discard(task)
        if not task.cancelled():
            task.exception()

    async def stat(self) -> FileStat:
        with file_errors(self._host, self._path):
            return _stat(await self._handle.stat())

    async def aclose(self) -> None:
        with contextlib.suppress(asyncssh.Error, OSError, ValueError):
            await self._handle.close()


class SftpFiles:
    """The file half of `Transport`, over SFTP version 3 (whole seconds, no inode)."""

    def __init__(self, host: str, client: asyncssh.SFTPClient) -> None:
        self._host = host
        self._client = client
        self.broken = False

    @contextlib.contextmanager
    def _guard(self, path: str) -> Iterator[None]:
        try:
            with file_errors(self._host, path):
                yield
        except LinkLostError:
            self.broken = True
            raise

    async def stat(self, path: str) -> FileStat | None:
        with self._guard(path):
            try:
                return _stat(await self._client.stat(path))
            except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath, asyncssh.SFTPNotADirectory):
                return None

    async def open_file(self, path: str) -> SftpFile:
        with self._guard(path):
            return SftpFile(self._host, path, await self._client.open(path, "rb", encoding=None))

    async def read_file(self, path: str, max_bytes: int) -> bytes:
        file = await self.open_file(path)
        try:
            # Files of /proc say size 0: what counts is what can be read.
            data = await file.read_at(0, max_bytes + 1)
            while len(data) <= max_bytes and (more := await file.read_at(len(data), max_bytes + 1 - len(data))):
                data += more
        finally:
            await file.aclose()
        if len(data) > max_bytes:
            raise BadInputError(f"larger than {max_bytes} bytes", where=f"{self._host}:{path}")
        return data

    async def write_file(self, path: str, data: bytes, mode: int) -> None:
        beside = posixpath.join(
            posixpath.dirname(path), f".{posixpath.basename(path)}.{secrets.token_hex(6)}.specconsole"
        )
        with self._guard(path):
            try:
                attrs = asyncssh.SFTPAttrs(permissions=mode)
                async with self._client.open(beside, "xb", attrs, encoding=None) as file:
                    await file.write(data)
                    await file.setstat(asyncssh.SFTPAttrs(permissions=mode))  # the host's umask took bits away
                await self._client.posix_rename(beside, path)
            except BaseException:
                with contextlib.suppress(asyncssh.Error, OSError, ValueError):
                    await self._client.remove(beside)
                raise

    async def list_dir(self, path: str) -> list[str]:
        with self._guard(path):
            return sorted(name for name in map(_text, await self._client.listdir(path)) if name not in (".", ".."))

    async def ping(self) -> None:
        with self._guard("."):
            await self._client.realpath(".")

    async def aclose(self) -> None:
        self.broken = True
        self._client.exit()
        with contextlib.suppress(TimeoutError, asyncssh.Error, OSError):
            async with asyncio.timeout(1):
                await self._client.wait_closed()


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


class SftpChannel:
    """The one SFTP channel of a connection: opened when needed, and again after it died."""

    def __init__(self, connection: asyncssh.SSHClientConnection, host: str, sessions: Sessions) -> None:
        self._connection = connection
        self._host = host
        self._sessions = sessions
        self._files: SftpFiles | None = None
        self._opening = asyncio.Lock()
        self.works = True
        """False once it is known that the host has no SFTP for us."""

    async def files(self) -> SftpFiles | None:
        """None where the host has no SFTP. Raises LinkLostError."""
        if self._files is not None and not self._files.broken:
            return self._files
        async with self._opening:
            if self._files is not None and self._files.broken:
                await self.drop()
            if self._files is None and self.works:
                self._files = await open_sftp(self._connection, self._host, self._sessions)
                self.works = self._files is not None
            return self._files

    async def drop(self) -> None:
        """Closes the channel; open handles become LinkLostError."""
        files, self._files = self._files, None
        if files is not None:
            await files.aclose()
            self._sessions.closed()


async def open_sftp(connection: asyncssh.SSHClientConnection, host: str, sessions: Sessions) -> SftpFiles | None:
    """The host's SFTP, or None when it has none that works. Raises LinkLostError.

    Takes one channel and keeps it. When the subsystem fails (not configured, or the login shell's chatter spoils
    it) the usual server programs are tried behind a `sh`, whose chatter can be skipped.
    """
    for attempt in (_subsystem, _behind_shell):
        try:
            client = await sessions.open(lambda attempt=attempt: attempt(connection))  # type: ignore[misc]  # bound at once
            return SftpFiles(host, client)
        except RefusedError:
            return None
        except (asyncssh.ConnectionLost, ConnectionError) as error:
            raise lost(host, error) from None
        except (asyncssh.Error, TimeoutError, OSError, ValueError):
            continue
    return None


async def _subsystem(connection: asyncssh.SSHClientConnection) -> asyncssh.SFTPClient:
    writer, reader, _ = await connection.open_session(subsystem="sftp", encoding=None, request_pty=False)
    return await _speak(connection, writer, reader)


async def _behind_shell(connection: asyncssh.SSHClientConnection) -> asyncssh.SFTPClient:
    writer, reader, _ = await connection.open_session("sh", encoding=None, request_pty=False)
    try:
        mark = secrets.token_hex(16).encode()
        writer.write(
            b"{ for p in " + _SERVERS.encode() + b"; do if [ -x $p ]; then printf '\\n%s\\n' " + mark
            + b"; exec $p 2>/dev/null; fi; done; exit 1; }\n"
        )  # fmt: skip
        async with asyncio.timeout(START_S):
            await reader.readuntil(b"\n" + mark + b"\n")
    except asyncio.IncompleteReadError:
        writer.close()
        raise asyncssh.SFTPFailure("no SFTP server program") from None
    except BaseException:
        writer.close()
        raise
    return await _speak(connection, writer, reader)


async def _speak(
    connection: asyncssh.SSHClientConnection, writer: asyncssh.SSHWriter[bytes], reader: asyncssh.SSHReader[bytes]
) -> asyncssh.SFTPClient:
    from asyncssh.sftp import start_sftp_client  # its public wrapper can't be told to give up

    try:
        async with asyncio.timeout(START_S):
            return await start_sftp_client(
                connection, asyncio.get_running_loop(), "strict", reader, writer, "utf-8", "surrogateescape", 3
            )
    except BaseException:
        writer.channel.abort()
        raise
