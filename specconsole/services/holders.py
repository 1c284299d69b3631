"""Looks at who holds ports and GPUs of a host, and ends one process that a person has picked and typed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from specconsole.core.hardware import holders as core
from specconsole.core.hardware.holders import Holder, HoldersPicture
from specconsole.core.launching import probes
from specconsole.errors import BadInputError, RefusedError, SpecconsoleError
from specconsole.ports import HardwareTools, Transport

_GPU_LIMIT_S = 10.0
_POLL_S = 0.1
_KILL_S = 10.0
"""After KILL a process is gone at once, unless it waits for a device."""

Told = Callable[[str], None]
Owners = Callable[[Sequence[str]], Awaitable[Mapping[str, tuple[str, str, bool]]]]
"""Launch ids -> by id (profile, owner, whether it is the person's own); unknown ones are left out."""


@dataclass(frozen=True, slots=True)
class Evicted:
    """How it ended."""

    holder: Holder
    gone: bool
    killed: bool
    """Whether KILL was needed."""
    left: tuple[Holder, ...]
    """Who holds the same ports and GPUs now."""
    text: str


class HostHolders:
    """Of one host."""

    def __init__(
        self,
        transport: Transport,
        hardware: HardwareTools,
        owners: Owners,
    ) -> None:
        self._transport = transport
        self._hardware = hardware
        self._owners = owners

    async def look(self, *, port: int | None = None, gpu: int | None = None) -> HoldersPicture:
        """Who holds this port, this GPU, or any. Raises TransportError, BadInputError for a GPU that is not there."""
        notes: list[str] = []
        listeners: Sequence[core.Listener] = ()
        if gpu is None:
            done = await self._transport.run_sh(probes.PORT_HOLDERS, [] if port is None else [str(port)])
            listeners = core.parse_listeners(done.stdout)
            for one in listeners:
                if not one.pids:
                    users = ", ".join(f"uid {uid}" for uid in one.uids)
                    notes.append(f"port {one.port} is held by a process of {users}, which this account can't see")
        gpus: dict[int, list[tuple[int, int | None]]] = {}
        if port is None:
            gpus = await self._gpus(gpu, notes)
        pids = sorted({pid for one in listeners for pid in one.pids} | set(gpus))
        if not pids:
            return HoldersPicture((), tuple(notes))
        done = await self._transport.run_sh(core.LOOK, [str(pid) for pid in pids])
        looked = core.parse_look(done.stdout)
        if not looked.whole:
            raise SpecconsoleError(
                "the processes could not be read whole", where=self._transport.host, try_="once more"
            )
        marks = sorted({one.launch_id for one in looked.holders if one.launch_id})
        owners = await self._owners(marks) if marks else {}
        missing = set(gpus) - {one.pid for one in looked.holders}
        if missing:
            notes.append(
                f"pids {', '.join(map(str, sorted(missing)))} hold GPU memory and are not in this process table: dead, "
                "or in another container"
            )
        return HoldersPicture(core.judged(looked, listeners, gpus, owners), tuple(notes))

    async def _gpus(self, wanted: int | None, notes: list[str]) -> dict[int, list[tuple[int, int | None]]]:
        found: dict[int, list[tuple[int, int | None]]] = {}
        try:
            async with asyncio.timeout(_GPU_LIMIT_S):
                probe = await self._hardware.find_gpu_probe(self._transport)
                if isinstance(probe, str):
                    notes.append(probe)
                    return found
                tick, processes = await probe.snapshot(), await probe.processes()
        except TimeoutError:
            notes.append(f"the GPU tool did not answer within {_GPU_LIMIT_S:.0f} s: GPUs were not looked at")
            return found
        index_of = {gpu.uuid: gpu.index for gpu in tick.gpus}
        if wanted is not None and wanted not in index_of.values():
            raise BadInputError(
                f"there is no GPU {wanted}", where=self._transport.host, try_=f"one of {sorted(index_of.values())}"
            )
        for process in processes:
            index = index_of.get(process.gpu_uuid)
            if index is None or (wanted is not None and index != wanted):
                continue
            if process.pid is None:
                notes.append(f"GPU {index}: a process that the tool hides (another container's)")
            else:
                found.setdefault(process.pid, []).append((index, process.used_bytes))
        return found

    async def one(self, pid: int) -> Holder:
        """The process of this number, if it holds something. Raises RefusedError when it does not."""
        picture = await self.look()
        for holder in picture.holders:
            if holder.pid == pid:
                return holder
        raise RefusedError(
            f"pid {pid} holds no port and no GPU that can be seen",
            where=self._transport.host,
            try_="specconsole holders",
        )

    async def evict(self, picked: Holder, typed: str, told: Told, *, grace_s: float = 10.0) -> Evicted:
        """TERM, a grace period, KILL, and a look that it is gone. Only this one process is signalled.

        `typed` must be its pid or its short name. Raises RefusedError when it is not, when the process may not be
        ended, or when its number belongs to another one by now. Cancelling it sends nothing more.
        """
        if typed.strip() not in (str(picked.pid), picked.name):
            raise RefusedError(f"that is neither {picked.pid} nor {picked.name}: nothing was sent")
        now = await self.one(picked.pid)
        if (now.start_ticks, now.boot) != (picked.start_ticks, picked.boot):
            raise RefusedError(f"pid {picked.pid} is another process by now: nothing was sent", try_="look again")
        if now.why_not:
            raise RefusedError(f"pid {now.pid}: {now.why_not}", where=self._transport.host)
        await self._signal("TERM", now)
        told(f"TERM sent to pid {now.pid}")
        killed = False
        if not await self._gone(now, grace_s):
            killed = True
            await self._signal("KILL", now)
            told(f"it did not end within {grace_s:g} s: KILL sent to pid {now.pid}")
        gone = await self._gone(now, _KILL_S) if killed else True
        left = await self._left(now)
        return Evicted(now, gone, killed, left, _outcome(now, gone=gone, killed=killed, left=left))

    async def _signal(self, name: str, holder: Holder) -> None:
        words = [name, holder.boot, f"{holder.pid}:{holder.start_ticks}:0"]
        answer = (await self._transport.run_sh(probes.SIGNAL, words)).stdout.decode("utf-8", "replace").strip()
        if answer.startswith("failed"):
            raise RefusedError(
                f"this account may not end pid {holder.pid}, which is {holder.user or 'another user'}'s",
                where=self._transport.host,
                try_=f"as {holder.user or 'its user'} or root",
            )

    async def _gone(self, holder: Holder, limit_s: float) -> bool:
        words = [str(holder.pid), str(holder.start_ticks), holder.boot]
        clock = asyncio.get_running_loop().time
        end = clock() + limit_s
        while True:
            state = (await self._transport.run_sh(core.LIVES, words)).stdout.decode("utf-8", "replace").strip()
            if state in ("", "Z", "X"):
                return True
            if clock() >= end:
                return False
            await asyncio.sleep(_POLL_S)

    async def _left(self, was: Holder) -> tuple[Holder, ...]:
        ports, gpus = set(was.ports), {index for index, _ in was.gpus}
        picture = await self.look()
        return tuple(
            one
            for one in picture.holders
            if (ports & set(one.ports) or gpus & {index for index, _ in one.gpus})
            and (one.pid, one.start_ticks) != (was.pid, was.start_ticks)
        )


def _outcome(was: Holder, *, gone: bool, killed: bool, left: Sequence[Holder]) -> str:
    if not gone:
        return f"pid {was.pid} survived KILL: it waits for a device, or this account may not end it"
    how = "ended by KILL" if killed else "ended"
    if left:
        return f"pid {was.pid} {how}; the same is held by {'; '.join(core.holder_line(one) for one in left[:3])}"
    return f"pid {was.pid} {how}; nobody holds {was.holds} any more"
