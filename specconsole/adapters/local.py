"""This machine as a host: `Transport` over subprocesses, files and sockets.

Commands run in a session of their own: a Ctrl-C meant for the console must not reach a stop or a start half way.
Blocking file calls go through a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat as stat_bits
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from specconsole.errors import (
    BadInputError,
    ConnectionRefusedAtHostError,
    FileMissingError,
    HostUnreachableError,
    SpecconsoleError,
)
from specconsole.ports import ByteStream, Completed, FileStat, RemoteFile

_BLOCK_BYTES = 65536
T = TypeVar("T")


def _environment() -> dict[str, str]:
    # A console that runs inside a launch must not lend that launch's mark to what it starts.
    return {name: value for name, value in os.environ.items() if name != "SPECCONSOLE_LAUNCH"}


class LocalTransport:
    """The machine that the console runs on."""

    @property
    def host(self) -> str:
        return "local"

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 30.0,
        max_output_bytes: int = 16 * 1024 * 1024,
    ) -> Completed:
        process = await self._spawn(argv, stdin=PIPE if stdin else DEVNULL, stderr=PIPE)
        try:
            async with asyncio.timeout(timeout_s):
                out, err, _ = await asyncio.gather(
                    _read_capped(process.stdout, max_output_bytes),
                    _read_capped(process.stderr, max_output_bytes),
                    _feed(process, stdin),
                )
                status = await process.wait()
        except BaseException:
            # Also when the command itself has ended: what holds its output open is of its group.
            await _end(process)
            raise
        return Completed(status if status >= 0 else None, out[0], err[0], truncated=out[1] or err[1])

    async def run_sh(
        self,
        script: str,
        args: Sequence[str] = (),
        *,
        timeout_s: float = 30.0,
        max_output_bytes: int = 16 * 1024 * 1024,
    ) -> Completed:
        text = script.encode("utf-8", "surrogateescape")
        return await self.run(
            ["/bin/sh", "-s", "--", *args], stdin=text, timeout_s=timeout_s, max_output_bytes=max_output_bytes
        )

    @asynccontextmanager
    async def _streaming(self, argv: Sequence[str]) -> AsyncIterator[ByteStream]:
        process = await self._spawn(argv, stdin=DEVNULL, stderr=STDOUT)
        assert process.stdout is not None
        try:
            yield _PipeStream(process.stdout)
        finally:
            # One that ended long ago has given its number back: it may be somebody else's by now.
            if process.returncode is None:
                await _end(process)

    def stream(self, argv: Sequence[str]) -> contextlib.AbstractAsyncContextManager[ByteStream]:
        return self._streaming(argv)

    async def stat(self, path: str) -> FileStat | None:
        def look() -> FileStat | None:
            try:
                return _file_stat(os.stat(path))
            except (FileNotFoundError, NotADirectoryError):
                return None

        return await _in_thread(look, path)

    async def open_file(self, path: str) -> RemoteFile:
        return _OpenFile(await _in_thread(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), path))

    async def read_file(self, path: str, *, max_bytes: int = 16 * 1024 * 1024) -> bytes:
        def read() -> bytes:
            # Until the end, whatever stat says: files of /proc have size 0.
            with open(path, "rb") as file:
                data = file.read(max_bytes + 1)
            if len(data) > max_bytes:
                raise BadInputError(f"{path} is larger than {max_bytes} bytes", where="local")
            return data

        return await _in_thread(read, path)

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        await _in_thread(lambda: write_atomically(Path(path), data, mode=mode), path)

    async def list_dir(self, path: str) -> list[str]:
        return await _in_thread(lambda: sorted(os.listdir(path)), path)

    async def open_connection(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.open_connection(host, port)
        except ConnectionRefusedError:
            raise ConnectionRefusedAtHostError(f"nothing listens on port {port}", where="local") from None
        except OSError as error:
            raise HostUnreachableError(error.strerror or str(error), where=f"local: {host}:{port}") from error

    async def aclose(self) -> None:
        """Nothing is held open."""

    async def _spawn(self, argv: Sequence[str], *, stdin: int, stderr: int) -> Process:
        try:
            return await asyncio.create_subprocess_exec(
                *argv, stdin=stdin, stdout=PIPE, stderr=stderr, start_new_session=True, env=_environment()
            )
        except FileNotFoundError:
            raise SpecconsoleError(f"`{argv[0]}` is not on this machine", where="local") from None
        except OSError as error:
            raise SpecconsoleError(f"`{argv[0]}` can't be run: {error.strerror}", where="local") from error
        except ValueError:
            raise BadInputError("a NUL byte can't be part of an argument", where="local") from None


class _PipeStream:
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def read(self, max_bytes: int = _BLOCK_BYTES) -> bytes:
        return await self._reader.read(max_bytes)

    async def aclose(self) -> None:
        """The end of the `stream` block ends the command."""


class _OpenFile:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def read_at(self, offset: int, max_bytes: int) -> bytes:
        return await _in_thread(lambda: os.pread(self._fd, max_bytes, offset), "open file")

    async def stat(self) -> FileStat:
        return await _in_thread(lambda: _file_stat(os.fstat(self._fd)), "open file")

    async def aclose(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _file_stat(found: os.stat_result) -> FileStat:
    return FileStat(found.st_size, found.st_mtime, found.st_mode, inode=found.st_ino)


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Writes beside the target, flushes to the disk and renames over it: a reader sees the old file or the new one."""
    fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), stat_bits.S_IMODE(mode))
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


async def _in_thread(work: Callable[[], T], path: str) -> T:
    try:
        return await asyncio.to_thread(work)
    except (FileNotFoundError, NotADirectoryError):
        raise FileMissingError("no such file", where=f"local:{path}") from None
    except OSError as error:
        raise SpecconsoleError(error.strerror or type(error).__name__, where=f"local:{path}") from error


async def _read_capped(reader: asyncio.StreamReader | None, limit: int) -> tuple[bytes, bool]:
    assert reader is not None
    kept = bytearray()
    dropped = False
    while block := await reader.read(_BLOCK_BYTES):
        room = limit - len(kept)
        dropped = dropped or len(block) > room
        kept += block[:room]
    return bytes(kept), dropped


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is None:
        return
    # A command that does not read its input to the end is no error of ours.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    # Not waited for: a wait that is cancelled cancels asyncio's own future, and its callback then prints a traceback.
    process.stdin.close()


async def _end(process: Process) -> None:
    """Ends what is left of the command's group (a time-out, a cancel, a stream that was left) and reaps it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # The pipes may be held by a grandchild outside the group: only the command itself is waited for.
    await asyncio.shield(process.wait())
