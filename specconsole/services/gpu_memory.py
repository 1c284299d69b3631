"""Keeps GPU memory with a launch: a line in its folder at each moment that matters, never in the way of a start."""

from __future__ import annotations

import asyncio

from specconsole.core.hardware.gpu_memory import MemorySnapshot, memory_snapshot, not_returned, parse_snapshots
from specconsole.errors import SpecconsoleError
from specconsole.ports import Clock, GpuProbe, HardwareTools, Transport

FILE_NAME = "gpu-memory.jsonl"
_LIMIT_S = 4.0
"""A hung driver must not hold up the stop of the server that hangs it."""
_RETURN_TRIES, _RETURN_PAUSE_S = 3, 2.0
"""Memory comes back when the last process is reaped, usually within 5 s of the stop."""

_APPEND_SH = r"""
{
umask 077; [ -d "$1" ] && printf '%s\n' "$2" >>"$1/gpu-memory.jsonl"
} </dev/null
"""


class MemoryKeeper:
    """Looks at one host's GPU memory for its launches. Nothing here raises but CancelledError."""

    def __init__(self, transport: Transport, tools: HardwareTools, clock: Clock) -> None:
        self._transport = transport
        self._tools = tools
        self._clock = clock
        self._probe: GpuProbe | str | None = None

    async def look(self, moment: str) -> MemorySnapshot | None:
        """The GPUs' memory now; None when there are no GPUs, or the tool has trouble or takes over 4 s."""
        try:
            async with asyncio.timeout(_LIMIT_S):
                if self._probe is None:
                    self._probe = await self._tools.find_gpu_probe(self._transport)
                if isinstance(self._probe, str):
                    return None
                tick = await self._probe.snapshot()
                return memory_snapshot(moment, self._clock.wall_s(), tick, await self._probe.processes())
        except (SpecconsoleError, TimeoutError):
            return None

    async def keep(self, folder: str, snapshot: MemorySnapshot | None) -> None:
        """Appends it to `folder`/gpu-memory.jsonl on the host, for the account's eyes only."""
        if snapshot is not None:
            try:
                await self._transport.run_sh(_APPEND_SH, [folder, snapshot.to_line()], timeout_s=_LIMIT_S)
            except (SpecconsoleError, TimeoutError):
                return

    async def look_and_keep(self, folder: str, moment: str) -> MemorySnapshot | None:
        snapshot = await self.look(moment)
        await self.keep(folder, snapshot)
        return snapshot

    async def after_stop(self, folder: str) -> tuple[str, ...]:
        """Keeps what is left after a stop; says which of the launch's GPUs hold more than before it started.

        Waits a few seconds for memory that is on its way back.
        """
        earlier = await self.kept(folder)
        before = next((one for one in earlier if one.moment == "before-launch"), None)
        missing: tuple[str, ...] = ()
        after: MemorySnapshot | None = None
        for attempt in range(_RETURN_TRIES):
            after = await self.look("after-stop")
            if after is None or before is None:
                break
            missing = not_returned(before, earlier, after)
            if not missing or attempt == _RETURN_TRIES - 1:
                break
            await self._clock.sleep(_RETURN_PAUSE_S)
        await self.keep(folder, after)
        return missing

    async def kept(self, folder: str) -> tuple[MemorySnapshot, ...]:
        """The lines of a launch's folder, oldest first; () without any, or when they can't be read."""
        try:
            return parse_snapshots(await self._transport.read_file(f"{folder}/{FILE_NAME}", max_bytes=4 * 1024 * 1024))
        except SpecconsoleError:
            return ()
