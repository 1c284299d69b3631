"""GPU memory at the moments that matter for a launch: before and after it starts, before and after it is stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from specconsole.core.hardware.gpu import GpuProcess, GpuTick

_GIB = 1 << 30
MOMENTS = ("before-launch", "answers", "before-stop", "after-stop")
"""The usual ones; others are fine."""


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """One GPU's memory at one moment."""

    index: int
    uuid: str
    used_bytes: int | None
    total_bytes: int | None
    pids: tuple[int, ...] = ()
    """Processes that the tool listed on it."""


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """All GPUs of a host at one moment of a launch."""

    moment: str
    at_s: float
    """Console's wall clock."""
    gpus: tuple[GpuMemory, ...]

    def to_line(self) -> str:
        """One JSON line."""
        return json.dumps(asdict(self), separators=(",", ":"))


def memory_snapshot(moment: str, at_s: float, tick: GpuTick, processes: Sequence[GpuProcess]) -> MemorySnapshot:
    """What a look at the GPUs says about their memory."""
    return MemorySnapshot(
        moment,
        at_s,
        tuple(
            GpuMemory(
                gpu.index,
                gpu.uuid,
                gpu.memory_used_bytes,
                gpu.memory_total_bytes,
                tuple(sorted(p.pid for p in processes if p.gpu_uuid == gpu.uuid and p.pid is not None)),
            )
            for gpu in tick.gpus
        ),
    )


def parse_snapshots(data: bytes) -> tuple[MemorySnapshot, ...]:
    """Lines written by `to_line`, oldest first; what is no such line is skipped."""
    found = []
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            shape = json.loads(line)
            gpus = tuple(_gpu(item) for item in shape["gpus"])
            found.append(MemorySnapshot(str(shape["moment"]), float(shape["at_s"]), gpus))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return tuple(found)


def memory_changes(before: MemorySnapshot, after: MemorySnapshot, least_bytes: int = 256 << 20) -> tuple[str, ...]:
    """`GPU 3: 68.0 -> 0.5 GiB (-67.5)`, GPUs whose memory changed by less than `least_bytes` left out."""
    earlier = {gpu.uuid: gpu for gpu in before.gpus}
    lines = []
    for gpu in after.gpus:
        old = earlier.get(gpu.uuid)
        if old is None or old.used_bytes is None or gpu.used_bytes is None:
            continue
        change = gpu.used_bytes - old.used_bytes
        if abs(change) >= least_bytes:
            was, now = old.used_bytes / _GIB, gpu.used_bytes / _GIB
            lines.append(f"GPU {gpu.index}: {was:.1f} -> {now:.1f} GiB ({change / _GIB:+.1f})")
    gone = set(earlier) - {gpu.uuid for gpu in after.gpus}
    return (*lines, *(f"GPU {earlier[uuid].index}: no longer listed" for uuid in sorted(gone)))


def not_returned(
    before: MemorySnapshot, during: Sequence[MemorySnapshot], after: MemorySnapshot, least_bytes: int = 512 << 20
) -> tuple[str, ...]:
    """GPUs that the launch used (memory grew in `during`) and that hold more than before it; () when none does."""
    earlier = {gpu.uuid: gpu.used_bytes or 0 for gpu in before.gpus}
    used = {
        gpu.uuid
        for snapshot in during
        for gpu in snapshot.gpus
        if (gpu.used_bytes or 0) - earlier.get(gpu.uuid, gpu.used_bytes or 0) >= least_bytes
    }
    lines = []
    for gpu in after.gpus:
        more = (gpu.used_bytes or 0) - earlier.get(gpu.uuid, gpu.used_bytes or 0)
        if gpu.uuid in used and more >= least_bytes:
            held = f"held by pid {', '.join(map(str, gpu.pids))}" if gpu.pids else "by no visible process"
            lines.append(f"GPU {gpu.index} holds {more / _GIB:.1f} GiB more than before the launch, {held}")
    return tuple(lines)


def _gpu(item: dict[str, Any]) -> GpuMemory:
    used, total = item["used_bytes"], item["total_bytes"]
    return GpuMemory(
        int(item["index"]),
        str(item["uuid"]),
        None if used is None else int(used),
        None if total is None else int(total),
        tuple(int(pid) for pid in item.get("pids", ())),
    )
