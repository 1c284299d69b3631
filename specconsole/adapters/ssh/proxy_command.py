"""A ProxyCommand as the way to a host: a child process whose two ends are one socket.

asyncssh 2.24 splits the command itself (no pipes, no quotes) and feeds the child's stderr into the protocol, so
the child is started here, by `sh` as OpenSSH does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from dataclasses import dataclass

from specconsole.core.hosts.plain_text import one_line


@dataclass(slots=True)
class ProxyProcess:
    """The running command; `sock` is our end."""

    sock: socket.socket
    process: asyncio.subprocess.Process
    said: str = ""
    """The last thing on its stderr."""
    _reader: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, command: str) -> ProxyProcess:
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", f"exec {command}", stdin=theirs.fileno(), stdout=theirs.fileno(),
                stderr=asyncio.subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        proxy = cls(ours, process)
        proxy._reader = asyncio.get_running_loop().create_task(proxy._listen())
        return proxy

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(4096):
            self.said = one_line(data, 200) or self.said

    async def aclose(self) -> None:
        """Ends the command and whatever it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(2):
                await self.process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        with contextlib.suppress(OSError):
            self.sock.close()
