"""A command that goes on, on a channel of its own, and that ends on the host when we stop listening.

Its standard input is our channel: a watcher on the host reads it, and when it ends (we closed, or the link died and
sshd noticed) ends the command's process group. So a `docker logs -f` on a silent container is not left behind.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncssh

from specconsole.adapters.ssh.errors import lost
from specconsole.adapters.ssh.framing import Collector
from specconsole.adapters.ssh.quoting import words
from specconsole.adapters.ssh.sessions import Sessions
from specconsole.adapters.ssh.shell import GREETING_S, SHELL
from specconsole.core.hosts.plain_text import one_line
from specconsole.errors import TransportError
from specconsole.ports import ByteStream

_CHATTER_BYTES = 256 * 1024

# `$$` is the session's leader or a child in its group: sshd starts every command in a session of its own.
_START = (
    b"{ exec 4<&0 </dev/null; (trap '' TERM; cat <&4; kill -TERM 0; sleep 0.3 || sleep 1; "
    b"kill -KILL 0) >/dev/null 2>&1 & "
    b"printf '\\n%s\\n' "
)


class SshStream:
    """One running command's output, stderr merged in."""

    def __init__(self, host: str, process: asyncssh.SSHClientProcess[bytes], early: bytes) -> None:
        self._host = host
        self._process = process
        self._early = early

    async def read(self, max_bytes: int = 65536) -> bytes:
        """The next bytes; b"" once the command ended. A lost link raises LinkLostError, never b""."""
        if self._early:
            data, self._early = self._early[:max_bytes], self._early[max_bytes:]
            return data
        try:
            data = await self._process.stdout.read(max_bytes)
        except (asyncssh.Error, OSError) as error:
            raise lost(self._host, error) from None
        if data:
            return data
        # The end looks the same for a command that ended and for a connection that went away (asyncssh 2.24).
        await self._process.wait_closed()
        if self._process.exit_status is None:
            raise lost(self._host)
        return b""

    async def aclose(self) -> None:
        self._process.close()


@asynccontextmanager
async def open_stream(
    connection: asyncssh.SSHClientConnection, host: str, sessions: Sessions, argv: Sequence[str]
) -> AsyncIterator[ByteStream]:
    """Starts `argv`. Raises RefusedError when the host allows no further channel."""
    # The channel's own stderr carries the login shell's chatter alone: the command's is merged on the host.
    process = await sessions.open(
        lambda: connection.create_process(SHELL, encoding=None, request_pty=False, stderr=asyncssh.DEVNULL)
    )
    try:
        mark = secrets.token_hex(16).encode()
        greeting = Collector(mark, _CHATTER_BYTES)
        # In braces: a shell reads its script from descriptor 0, and must have all of it before that is redirected.
        try:
            process.stdin.write(_START + mark + b"; exec 4<&-; exec " + words(argv) + b" 2>&1; }\n")
            async with asyncio.timeout(GREETING_S):
                while (data := await process.stdout.read(65536)) and not greeting.feed(data):
                    pass
        except TimeoutError:
            raise TransportError("the login shell did not start `sh` in time", where=host) from None
        except (asyncssh.Error, OSError) as error:
            raise lost(host, error) from None
        if greeting.words is None:
            greeting.flush()
            raise TransportError(f"the host gives no shell for commands: {one_line(greeting.output, 200)}", where=host)
        yield SshStream(host, process, greeting.rest)
    finally:
        process.close()
        sessions.closed()
