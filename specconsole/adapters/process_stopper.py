"""Ends one launch and proves it: drop requests, TERM to the groups, grace, KILL to what is left, look again.

Every look at the process table adds to what is known to be the launch's own, so a child that leaves its parent and its
session while the stop goes on is still ours; every signal re-checks pid, start ticks and boot in the same script.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from specconsole.adapters.host_lock import HostLock
from specconsole.core.hardware.processes import Process, ProcessTable, parse_detail, parse_table
from specconsole.core.launching import probes
from specconsole.core.launching.folder import LaunchRecord, StopMark, parse_observed, stop_mark_line
from specconsole.core.launching.ownership import Identity, Owned, identity, owned, signal_words
from specconsole.core.launching.script import Family, in_family
from specconsole.core.launching.stopping import LeftOver, StopEvent, describe_exit
from specconsole.errors import BadInputError, SpecconsoleError
from specconsole.ports import Transport

_LOCK_LEASE_S = 30
_POLL_S = 0.25
_KILL_ROUNDS = 40
"""KILL is repeated while new processes keep appearing; each round sees what forked since the last."""
_WRAPPER_WAIT_S = 5.0


class ProcessLook:
    """The process table with eyes for one launch; remembers what was proven once."""

    def __init__(self, transport: Transport, record: LaunchRecord | None) -> None:
        self._transport = transport
        self._record = record
        self._seen: set[Identity] = set()
        self.table = ProcessTable("", None, 100, (), whole=False)
        self.owned = Owned((), None)

    async def refresh(self) -> None:
        """Looks again. Raises SpecconsoleError when the host's answer is cut: then nothing may be concluded."""
        launch_id = self._record.launch_id if self._record is not None else "-"
        done = await self._transport.run_sh(probes.PROCESS_TABLE, [launch_id])
        self.table = parse_table(done.stdout)
        if not self.table.whole:
            raise SpecconsoleError(
                "the process table could not be read whole", where=self._transport.host, try_="once more"
            )
        if self._record is None:
            return
        adopted = self._record.spec is not None and self._record.spec.adopted
        self.owned = owned(
            self.table,
            self._record.process,
            wrapper=self._record.wrapper,
            seen=self._seen,
            leads_session=not adopted,
        )
        self._seen.update(identity(process) for process in self.owned.proven)

    async def describe(self, processes: Iterable[Process], why: str) -> tuple[LeftOver, ...]:
        """Owner, age and command of some processes."""
        chosen = list(processes)
        if not chosen:
            return ()
        done = await self._transport.run_sh(probes.PROCESS_DETAIL, [str(process.pid) for process in chosen])
        details = parse_detail(done.stdout)
        return tuple(
            LeftOver(p.pid, detail.user, self.table.age_s(p), detail.command or p.name, why)
            for p in chosen
            if (detail := details.get(p.pid)) is not None
        )

    async def signal(self, name: str, processes: Sequence[Process]) -> None:
        """Sends TERM or KILL to the groups and processes given, each re-checked on the host."""
        if processes:
            await self._transport.run_sh(probes.SIGNAL, [name, self.table.boot, *signal_words(processes, self.table)])


class ProcessStopper:
    """One stop of one launch."""

    def __init__(
        self,
        transport: Transport,
        record: LaunchRecord,
        port_left_over: Callable[[int], Awaitable[tuple[LeftOver, ...]]],
        family: Family = "launches",
    ) -> None:
        self._transport = transport
        self._family = family
        self._record = record
        self._port_left_over = port_left_over
        self._look = ProcessLook(transport, record)
        self._killed = False
        self._lockless = ""

    async def run(
        self, *, by: str, at_s: float, grace_s: float, drop_requests: Callable[[], Awaitable[str]] | None
    ) -> AsyncIterator[StopEvent]:
        lock = HostLock(self._transport, f"stop-{self._record.launch_id}", owner=by, lease_s=_LOCK_LEASE_S)
        waited_for = ""
        while not await self._take(lock):
            text = f"{lock.describe()} is already stopping it: watching"
            if lock.describe() != waited_for:
                waited_for = lock.describe()
                yield StopEvent("waiting-for-lock", text)
            await asyncio.sleep(_POLL_S * 2)
        if self._lockless:
            yield StopEvent("waiting-for-lock", f"{self._lockless}; stopping without one")
        done = False
        try:
            await self._look.refresh()
            alive = len(self._look.owned.proven)
            if not alive and self._record.stop is None and self._record.exited:
                # It ended by itself before anybody asked: that stays true, so no marker is written.
                yield StopEvent("verifying", "it had ended already", alive=0)
            else:
                line = stop_mark_line(StopMark(by, at_s))
                await self._transport.run_sh(in_family(probes.MARK_STOP, self._family), [self._record.launch_id, line])
                yield StopEvent("asked", "stop asked for", alive=alive)
            async for event in self._end_processes(lock, grace_s, drop_requests):
                yield event
            last = await self._verify()
            done = not last.alive
            yield last
        finally:
            await asyncio.shield(self._leave(lock, done))

    async def _take(self, lock: HostLock) -> bool:
        """A disk that a server's log has filled is a reason to stop it: no lock is better than no stop.

        Two stops at once do no harm, they only tell the same twice: each signal is checked on the host.
        """
        try:
            return await lock.take()
        except BadInputError as error:
            self._lockless = error.what
            return True

    async def _leave(self, lock: HostLock, done: bool) -> None:
        """A stop that was cancelled while the server runs must not look like one that was asked for and is going on."""
        if not done:
            await self._look.refresh()
            if self._look.owned.proven:
                await self._transport.run_sh(in_family(probes.UNMARK_STOP, self._family), [self._record.launch_id])
        await lock.release()

    async def _end_processes(
        self, lock: HostLock, grace_s: float, drop_requests: Callable[[], Awaitable[str]] | None
    ) -> AsyncIterator[StopEvent]:
        mine = self._look.owned.proven
        if mine and drop_requests is not None:
            yield StopEvent("dropping-requests", "asking the server to drop its requests", alive=len(mine))
            yield StopEvent("dropping-requests", await drop_requests(), alive=len(mine))
        if mine:
            await self._look.signal("TERM", mine)
            yield StopEvent("term", f"TERM sent to {_count(mine)}", alive=len(mine), seconds_left=grace_s)
        clock = asyncio.get_running_loop().time
        end = clock() + grace_s
        renew_at = clock() + _LOCK_LEASE_S / 3
        told = -1
        await self._look.refresh()
        while self._look.owned.proven and clock() < end:
            left = max(0.0, end - clock())
            if int(left) != told:
                told = int(left)
                alive = self._look.owned.proven
                yield StopEvent("grace", f"{_count(alive)} still running, KILL in {left:.0f} s", len(alive), left)
            if clock() > renew_at:
                renew_at = clock() + _LOCK_LEASE_S / 3
                await lock.renew()
            await asyncio.sleep(min(_POLL_S, max(0.01, left)))
            await self._look.refresh()
        for round_ in range(_KILL_ROUNDS):
            mine = self._look.owned.proven
            if not mine:
                return
            self._killed = True
            await self._look.signal("KILL", mine)
            yield StopEvent("kill", f"KILL sent to {_count(mine)}", alive=len(mine))
            # What a KILL ends is gone at once, unless it waits for a device; then waiting longer each round helps.
            await asyncio.sleep(min(0.05 * (round_ + 1), 1.0))
            if round_ % 8 == 7:
                await lock.renew()
            await self._look.refresh()

    async def _verify(self) -> StopEvent:
        record = await self._wait_for_wrapper()
        await self._look.refresh()
        left = list(await self._look.describe(self._look.owned.proven, "survived KILL"))
        left += await self._look.describe(self._look.owned.possible, "in a session of its number, not proven its own")
        # What was never started never held its port: who does is somebody else.
        port = record.spec.port if record.spec is not None and record.process is not None else None
        if port is not None:
            named = {one.pid for one in left}
            left += [one for one in await self._port_left_over(port) if one.pid not in named]
        ours = [one for one in left if one.why == "survived KILL"]
        text = "it was never started" if record.waits is not None and not record.process else ""
        text = text or describe_exit(record.exit_status)
        text = f"{len(left)} left over; {text}" if left else f"nothing is left; {text}"
        if not ours and record.stop is not None:
            word = "killed" if self._killed else "clean"
            await self._transport.run_sh(in_family(probes.MARK_ENDED, self._family), [record.launch_id, word])
        return StopEvent(
            "finished",
            text,
            alive=len(ours),
            left_over=tuple(left),
            exit_status=record.exit_status,
            killed=self._killed,
        )

    async def _wait_for_wrapper(self) -> LaunchRecord:
        """The wrapper records the exit status and dies last; one that does not end by itself is ended after a while."""
        clock = asyncio.get_running_loop().time
        end = clock() + _WRAPPER_WAIT_S
        while True:
            await self._look.refresh()
            wrapper = self._look.owned.wrapper
            if wrapper is None:
                break
            if clock() > end:
                await self._look.signal("KILL", [wrapper])
            await asyncio.sleep(0.05)
        done = await self._transport.run_sh(in_family(probes.OBSERVE, self._family), [self._record.launch_id])
        found = parse_observed(done.stdout)
        return found[0] if found else self._record


def _count(processes: Sequence[Process]) -> str:
    return f"{len(processes)} process{'' if len(processes) == 1 else 'es'}"
