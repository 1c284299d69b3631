"""A POSIX sh kept open on one channel, that runs one command after the other.

A new channel costs 100 to 300 ms (the login shell's start-up), a command here under 10. The login shell only has
to run the word `sh`: that works in bash, zsh, fish, csh and in rbash (no `exec`, no slash), and what its start-up
files print comes before the first mark and is dropped.

Every command gets a session of its own (`setsid`), so that it can be ended with all its children: by a word on the
shell's own input, or by the host's `timeout` when the console is gone. Its group's id is the first thing it says.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import asyncssh

from specconsole.adapters.ssh.errors import lost
from specconsole.adapters.ssh.framing import Collector, exit_status
from specconsole.adapters.ssh.quoting import printf, words
from specconsole.adapters.ssh.sessions import Sessions
from specconsole.core.hosts.plain_text import one_line
from specconsole.errors import SpecconsoleError, TransportError
from specconsole.ports import Completed

SHELL = "sh"
GREETING_S = 20.0
_CHATTER_BYTES = 256 * 1024
_HOST_GRACE_S = 2
"""The host's own time limit comes this much after ours, so that ours is what people see."""

# First what the group's leader says, then the command in its place. $1 is the mark.
_START = (
    'g=$1; shift; case $1 in */*) [ -x "$1" ];; *) command -v "$1" >/dev/null;; esac || '
    '{ printf \'\\n%s -\\n\' "$g"; exit 127; }; printf \'\\n%s\\n\' "$g $$"; exec TIMEOUT "$@"'
)

# The shell's descriptors: 3 the channel's stderr, 4 its stdout, 2 nowhere. Both outputs go through a pipe, so that
# the end comes when the last holder of them is gone, as it does for a local command. What the shell itself says
# about the command (`Killed`, `Terminated`; dash and bash) comes with the status and tells a signal from a status
# above 128; for INT and PIPE they say nothing, and the status stays 130 or 141.
# While it runs, `K GROUP` on the shell's input ends it: a watcher reads there, because the shell itself waits. One
# that comes too late is a command that does nothing.
_WATCH = b'(read -r k g <&9 && kill -KILL "$g") >/dev/null 3>&- 4>&- & w=$!; '
_BEFORE_COMMAND = b"(exec 2>&8 3>&- 4>&- 7>&- 8>&- 9>&-%b; exec "
_AFTER_COMMAND = (
    b'); echo "$?" >&7; } 2>&7 | cat >&4; } 8>&1 | cat >&3; } 7>&1 ); kill "$w"; wait "$w"; '
    b"case $m in *[!0-9]*) s=s;; *) s=;; esac; "
    b"printf '\\n%%s %%s%%s\\n' %b \"${m##*[!0-9]}\" \"$s\"; printf '\\n%%s\\n' %b >&3\n"
)


@dataclass(eq=False, slots=True)
class Shell:
    """One kept shell. Not concurrent: `busy` until the command's end marks have come."""

    host: str
    process: asyncssh.SSHClientProcess[bytes]
    sessions: Sessions
    chatter_bytes: int = 0
    has_setsid: bool = False
    has_timeout: bool = False
    busy: bool = False
    broken: bool = False
    group: int | None = None
    """Process group of the running command, as soon as it is known."""
    _error: Exception | None = None
    _missing: bool = False
    _ending: bool = False
    _closed: bool = False

    @classmethod
    async def open(cls, connection: asyncssh.SSHClientConnection, host: str, sessions: Sessions) -> Shell:
        """Opens a channel and waits for the shell to answer. Raises TransportError when there is no sh."""
        process = await sessions.open(lambda: connection.create_process(SHELL, encoding=None, request_pty=False))
        shell = cls(host, process, sessions)
        try:
            async with asyncio.timeout(GREETING_S):
                await shell._greet()
        except TimeoutError:
            shell.close()
            raise TransportError("the login shell did not start `sh` in time", where=host,
                                 try_=f"ssh {host} sh -c true") from None  # fmt: skip
        except BaseException:
            shell.close()
            raise
        return shell

    async def _greet(self) -> None:
        mark = secrets.token_hex(16).encode()
        self._write(
            b"exec 3>&2 4>&1 9<&0 2>/dev/null; K() { :; }; s=-; t=-; command -v setsid >/dev/null && s=s; "
            b"command -v timeout >/dev/null && t=t; "
            b"printf '\\n%s %s\\n' " + mark + b" \"$s$t\"; printf '\\n%s\\n' " + mark + b" >&3\n"
        )
        out, err = Collector(mark, _CHATTER_BYTES), Collector(mark, _CHATTER_BYTES)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._fill(self.process.stdout, out))
            group.create_task(self._fill(self.process.stderr, err))
        if out.words is None:
            if self._error is not None:
                raise lost(self.host, self._error)
            said = one_line(out.output + b" " + err.output, 200)
            raise TransportError(
                f"the host gives no shell for commands{': ' + said if said else ''}", where=self.host,
                try_=f"ssh {self.host} sh -c true; look at the login shell and what its start-up files do",
            )  # fmt: skip
        self.chatter_bytes = len(out.output) + len(err.output)
        self.has_setsid, self.has_timeout = b"s" in out.words, b"t" in out.words

    async def run(self, argv: Sequence[str], stdin: bytes, timeout_s: float, limit: int) -> Completed:
        """One command to its end; only one at a time. Raises LinkLostError when the shell ends before it.

        Never cancelled half-way: whoever gives up waiting leaves this running until the end marks have come.
        """
        mark = secrets.token_hex(16).encode()
        out, err = Collector(mark, limit), Collector(mark, limit)
        self.busy, self.group, self._missing, self._ending = True, None, False, False
        try:
            self._write(self._line(mark, argv, stdin, timeout_s))
            async with asyncio.TaskGroup() as group:
                # Written while the answer is read: a long script would otherwise wait for a command that
                # waits for somebody to read its output.
                group.create_task(self._drain())
                group.create_task(self._fill(self.process.stdout, out, with_group=True))
                group.create_task(self._fill(self.process.stderr, err))
        finally:
            self.busy = False
            self.broken = self.broken or out.words is None or err.words is None
        if out.words is None or err.words is None:
            raise lost(self.host, self._error or TransportError("the command shell ended"))
        if self._missing:
            raise SpecconsoleError(f"`{argv[0]}` is not on this host, or can't be run", where=self.host)
        return Completed(exit_status(out.words), out.output, err.output, out.truncated or err.truncated)

    def end(self) -> None:
        """Kills the running command with its group, now or as soon as its group is known."""
        self._ending = True
        if self.busy and self.group is not None and not self._closed:
            self._write(b"K %s%d\n" % (b"-" if self.has_setsid else b"", self.group))

    def _write(self, data: bytes) -> None:
        try:
            self.process.stdin.write(data)
        except (asyncssh.Error, OSError) as error:
            self._error = error  # its outputs have ended as well, which is where this is reported

    async def _drain(self) -> None:
        try:
            await self.process.stdin.drain()
        except (asyncssh.Error, OSError) as error:
            self._error = error

    def _line(self, mark: bytes, argv: Sequence[str], stdin: bytes, timeout_s: float) -> bytes:
        limit = math.ceil(timeout_s) + _HOST_GRACE_S
        start = _START.replace("TIMEOUT ", f"timeout -s KILL {limit} " if self.has_timeout else "")
        group_mark = _group_mark(mark).decode()
        command = (b"setsid " if self.has_setsid else b"") + words(["sh", "-c", start, "sh", group_mark, *argv])
        feed = printf(stdin) + b" 2>/dev/null | " if stdin else b""
        source = b"" if stdin else b" </dev/null"
        return _WATCH + b"m=$( { { { " + feed + _BEFORE_COMMAND % source + command + _AFTER_COMMAND % (mark, mark)

    async def _fill(self, stream: asyncssh.SSHReader[bytes], collector: Collector, *, with_group: bool = False) -> None:
        """Reads until the end mark, or the stream's end. Both streams are read at once: they share one window."""
        prologue = b""
        try:
            while data := await stream.read(65536):
                if with_group:
                    prologue += data
                    data, with_group = self._after_group(prologue, collector.mark)
                    if with_group:
                        prologue = prologue[-128:]
                        continue
                if collector.feed(data):
                    return
        except (asyncssh.Error, OSError) as error:
            self._error = error
        collector.feed(prologue if with_group else b"")
        collector.flush()

    def _after_group(self, data: bytes, mark: bytes) -> tuple[bytes, bool]:
        """(output, still waiting): drops everything up to the line with the group's id.

        What stands before it was written by processes that an earlier command left behind.
        """
        head = b"\n" + _group_mark(mark) + b" "
        start = data.find(head)
        end = data.find(b"\n", start + len(head)) if start >= 0 else -1
        if end >= 0:
            said = data[start + len(head) : end]
            self.group = int(said) if said.isdigit() else None
            self._missing = said == b"-"
            if self._ending:
                self.end()
            return data[end + 1 :], False
        # The end mark without the group's line: the command could not even be started.
        return (data, False) if b"\n" + mark in data else (b"", True)

    def close(self) -> None:
        """Ends the shell (end of file on its input); a command still running goes on without us."""
        if not self._closed:
            self._closed = self.broken = True
            self.process.close()
            self.sessions.closed()


def _group_mark(mark: bytes) -> bytes:
    return b"g" + mark
