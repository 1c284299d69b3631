"""A way to a host."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended, or whose end could not be learned."""

    exit_status: int | None
    """The exit status; None when it is unknown (link lost, ended by a signal): that is a failure."""
    stdout: bytes
    stderr: bytes
    truncated: bool = False
    """True when output beyond the caller's limit was read and dropped."""

    @property
    def ok(self) -> bool:
        return self.exit_status == 0


@dataclass(frozen=True, slots=True)
class FileStat:
    """What a host says about a file."""

    size_bytes: int
    mtime_s: float
    """Host's wall clock, seconds since the epoch (SFTP v3 gives whole seconds)."""
    mode: int
    """Permission and type bits as in `st_mode`."""
    inode: int | None = None
    """None where the transport can't tell (SFTP)."""

    @property
    def is_dir(self) -> bool:
        return (self.mode & 0o170000) == 0o040000


class ByteStream(Protocol):
    """The output of a command that goes on, or one direction of a connection."""

    async def read(self, max_bytes: int = 65536) -> bytes:
        """The next bytes as they arrive; b"" at the end. Raises LinkLostError when the link broke instead."""

    async def aclose(self) -> None:
        """Stops listening. Never relied on to stop the command: see `Launcher.stop`."""


class RemoteFile(Protocol):
    """A file held open, so that a renamed one can still be drained."""

    async def read_at(self, offset: int, max_bytes: int) -> bytes:
        """Bytes from `offset`; fewer than asked, or b"", at the end of the file."""

    async def stat(self) -> FileStat:
        """Of the open handle, not of the path."""

    async def aclose(self) -> None: ...


@runtime_checkable
class Transport(Protocol):
    """A way to one host."""

    @property
    def host(self) -> str:
        """The name that people use: `local`, an alias from ssh_config, or `user@host`."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 30.0,
        max_output_bytes: int = 16 * 1024 * 1024,
    ) -> Completed:
        """Runs a command to its end. Arguments arrive byte for byte, whatever the login shell is.

        Raises TransportError when the link fails and TimeoutError after `timeout_s` (the command's process
        group is then ended as far as the transport can).
        """

    async def run_sh(
        self,
        script: str,
        args: Sequence[str] = (),
        *,
        timeout_s: float = 30.0,
        max_output_bytes: int = 16 * 1024 * 1024,
    ) -> Completed:
        """Runs a POSIX sh script handed over on standard input, with `args` as $1, $2, ..."""

    def stream(self, argv: Sequence[str]) -> AbstractAsyncContextManager[ByteStream]:
        """A command that goes on by itself (a sampler, `docker logs -f`); stderr is merged in."""

    async def stat(self, path: str) -> FileStat | None:
        """None when there is no such path."""

    async def open_file(self, path: str) -> RemoteFile:
        """Raises FileMissingError when there is none."""

    async def read_file(self, path: str, *, max_bytes: int = 16 * 1024 * 1024) -> bytes:
        """The whole file. Raises FileMissingError, or BadInputError when it is larger than `max_bytes`."""

    async def write_file(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Writes beside the target and renames over it, so that a reader sees the old or the new one."""

    async def list_dir(self, path: str) -> list[str]:
        """Names in a folder, sorted, without `.` and `..`. Raises FileMissingError."""

    async def open_connection(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A TCP connection that starts at the host (no local port is opened for it).

        Raises ConnectionRefusedAtHostError when nothing listens, TransportError when the way there fails.
        The writer of a non-local transport supports write, drain, close, wait_closed and is_closing only.
        """

    async def aclose(self) -> None: ...
