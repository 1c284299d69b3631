"""Short commands of one connection: one kept shell, more while there is room, a queue when there is none."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from typing import Any

import asyncssh

from specconsole.adapters.ssh.sessions import Sessions
from specconsole.adapters.ssh.shell import Shell
from specconsole.errors import RefusedError, TransportError
from specconsole.ports import Completed

_SPARE_S = 15.0
"""A shell beyond the first is closed when nothing needed it for so long."""

_ENDING_S = 1.0
"""How long closing waits for commands that are just being ended."""


class Commands:
    """Hands each command to a free shell. `run` may be called from any number of tasks."""

    def __init__(self, connection: asyncssh.SSHClientConnection, host: str, sessions: Sessions) -> None:
        self._connection = connection
        self._host = host
        self._sessions = sessions
        self._shells: list[Shell] = []
        self._opening = 0
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ending: set[asyncio.Task[Any]] = set()
        self._trimmer: asyncio.TimerHandle | None = None
        self._closed = False

    async def start(self) -> Shell:
        """Opens the first shell, so that "no shell here" is known at once."""
        shell = await self._acquire()
        await self._release(shell)
        return shell

    async def run(self, argv: Sequence[str], stdin: bytes, timeout_s: float, limit: int) -> Completed:
        """See `Transport.run`. The time limit includes waiting for a free shell."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        async with asyncio.timeout_at(deadline):
            shell = await self._acquire()
        task = self._keep(self._run_and_release(shell, argv, stdin, timeout_s, limit))
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(task)
        except (TimeoutError, asyncio.CancelledError):
            if not task.done():
                shell.end()  # it stays busy until the end marks have come
                self._ending.add(task)
            raise

    async def _run_and_release(
        self, shell: Shell, argv: Sequence[str], stdin: bytes, timeout_s: float, limit: int
    ) -> Completed:
        try:
            return await shell.run(argv, stdin, timeout_s, limit)
        finally:
            await self._release(shell)

    def _idle(self) -> list[Shell]:
        return [shell for shell in self._shells if not shell.busy and not shell.broken]

    async def _acquire(self) -> Shell:
        while True:
            async with self._changed:
                if self._closed:
                    raise TransportError("the connection is closed", where=self._host)
                if idle := self._idle():
                    idle[0].busy = True
                    return idle[0]
                if self._sessions.room - self._opening <= 0:
                    if not self._shells and not self._opening:
                        raise RefusedError("no session channel is left for commands", where=self._host)
                    await self._changed.wait()
                    continue
                self._opening += 1
            shell: Shell | None = None
            try:
                shell = await Shell.open(self._connection, self._host, self._sessions)
                shell.busy = True
                return shell
            except RefusedError:
                if not self._shells:
                    raise
            finally:
                self._opening -= 1
                if shell is not None:
                    self._shells.append(shell)
                await self._notify()

    async def _release(self, shell: Shell) -> None:
        shell.busy = False
        if shell.broken or self._closed:
            shell.close()
            if shell in self._shells:
                self._shells.remove(shell)
        elif len(self._shells) > 1 and self._trimmer is None:
            self._trimmer = asyncio.get_running_loop().call_later(_SPARE_S, self._trim)
        await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _trim(self) -> None:
        self._trimmer = None
        self.give_up_spare(keep=1)

    def give_up_spare(self, *, keep: int = 1) -> bool:
        """Closes idle shells beyond `keep`; True when at least one went."""
        spare = self._idle()[max(0, keep - (len(self._shells) - len(self._idle()))) :]
        for shell in spare:
            shell.close()
            self._shells.remove(shell)
        return bool(spare)

    async def make_room(self, timeout_s: float = 5.0) -> None:
        """Gives the channel of a spare shell back, waiting for one that is busy; keeps one shell in any case."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), self._changed:
                while self._sessions.room <= 0 and len(self._shells) > 1 and not self.give_up_spare():
                    await self._changed.wait()

    def _keep(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it already; nobody else needs it

    async def aclose(self) -> None:
        """Closes the shells. Commands that still run are left to the host's time limit."""
        if self._ending:
            await asyncio.wait(set(self._ending), timeout=_ENDING_S)
        self._closed = True
        if self._trimmer is not None:
            self._trimmer.cancel()
        for shell in self._shells:
            shell.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._notify()
