"""Keeps GPU memory with a launch: a line in its folder at each moment that matters, never in the way of a start."""

from __future__ import annotations

import asyncio

from specconsole.core.hardware.gpu_memory import MemorySnapshot, memory_snapshot, parse_snapshots
from specconsole.errors import FileMissingError, SpecconsoleError
from specconsole.ports import Clock, HardwareTools, Transport

FILE_NAME = "gpu-memory.jsonl"
_LONGEST_S = 15.0

_APPEND_SH = r"""
{
umask 077; [ -d "$1" ] && printf '%s\n' "$2" >>"$1/gpu-memory.jsonl"
} </dev/null
"""


async def keep_gpu_memory(
    transport: Transport, tools: HardwareTools, clock: Clock, folder: str, moment: str
) -> MemorySnapshot | None:
    """Looks at the GPUs and appends a line to `folder`/gpu-memory.jsonl on the host.

    None when there are no GPUs, the tool has trouble, or it took more than 15 s: a launch must not fail or wait
    because its memory could not be written down. Only cancellation comes through.
    """
    try:
        async with asyncio.timeout(_LONGEST_S):
            probe = await tools.find_gpu_probe(transport)
            if isinstance(probe, str):
                return None
            tick = await probe.snapshot()
            snapshot = memory_snapshot(moment, clock.wall_s(), tick, await probe.processes())
            await transport.run_sh(_APPEND_SH, [folder, snapshot.to_line()], timeout_s=_LONGEST_S)
            return snapshot
    except (SpecconsoleError, TimeoutError):
        return None


async def kept_gpu_memory(transport: Transport, folder: str) -> tuple[MemorySnapshot, ...]:
    """The lines of a launch's folder, oldest first; () without any. Raises TransportError."""
    try:
        return parse_snapshots(await transport.read_file(f"{folder}/{FILE_NAME}", max_bytes=4 * 1024 * 1024))
    except FileMissingError:
        return ()
