"""What the GPUs of a launch say about a silence of its log: facts for a person and for the stall detector.

Never a verdict alone: a server that reads weights from a cold disk also shows 0 % on every GPU (recorded: an H200
sat at 0 % for most of a start), and a waiting collective spins at 100 % while it moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specconsole.core.hardware.report import rate_text
from specconsole.core.hardware.series import BUCKET_S
from specconsole.core.views.host import GpuView, HostView

EvidenceKind = Literal["all-idle", "spinning", "one-different", "gpu-lost", "gpu-fault"]

_IDLE_PCT = 1.0
_BUSY_PCT = 95.0
_NO_TRAFFIC_PCT = 1.0
_APART_PCT = 60.0
_READING_BYTES_S = 20e6
"""Less is what any host reads at any time."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One fact about a launch's GPUs over a window."""

    kind: EvidenceKind
    text: str
    seconds: float
    """How long it has been so, at least."""
    gpu_index: int | None = None


def stall_evidence(host: HostView, launch_id: str, window_s: float = 60.0) -> tuple[Evidence, ...]:
    """Facts about the GPUs that this launch's processes hold; () when they are not known, or work as they should."""
    gpus = [gpu for gpu in host.gpus if any(process.launch_id == launch_id for process in gpu.processes)]
    return gpu_evidence(gpus, window_s)


def loading_text(host: HostView, path: str | None) -> str:
    """Where the weights under `path` come from just now; "" when nothing is known.

    `reads 2.1 GB/s from nvme0n1 (cold)`; without reads they come from the page cache (warm), or nothing moves.
    """
    disk = next((one for one in host.disks if one.path == path), None)
    if disk is not None and disk.over_network:
        received = host.network_rx_bytes_s
        return "" if received is None else f"on a network file system; the host receives {rate_text(received)}"
    name = disk.disk if disk is not None else None
    reads = disk.read_bytes_s if disk is not None and disk.disk is not None else host.disk_read_bytes_s
    if reads is None:
        return ""
    if reads >= _READING_BYTES_S:
        return f"reads {rate_text(reads)} from {name or host.disk_name} (cold)"
    return f"no reads from {name or host.disk_name}: warm in the page cache, or nothing moves"


def gpu_evidence(gpus: Sequence[GpuView], window_s: float = 60.0) -> tuple[Evidence, ...]:
    """Facts about these GPUs over the last `window_s` seconds; needs a whole window of samples."""
    found: list[Evidence] = []
    for gpu in gpus:
        if gpu.lost:
            found.append(Evidence("gpu-lost", f"GPU {gpu.index} is gone: the tool lists it no more", 0.0, gpu.index))
        elif gpu.faults:
            found.append(Evidence("gpu-fault", f"GPU {gpu.index}: {gpu.faults[0]}", 0.0, gpu.index))
    alive = [gpu for gpu in gpus if not gpu.lost]
    count = max(1, round(window_s / BUCKET_S))
    windows = [_last(gpu.util_history_pct, count) for gpu in alive]
    traffic = [_last(gpu.memory_util_history_pct, count) for gpu in alive]
    if not alive or any(window is None for window in windows):
        return tuple(found)
    loads = [window for window in windows if window is not None]
    seconds = count * BUCKET_S
    if all(max(load) <= _IDLE_PCT for load in loads):
        names = "the GPU" if len(alive) == 1 else f"all {len(alive)} GPUs"
        found.append(Evidence("all-idle", f"0 % on {names} for {seconds:.0f} s or more", seconds))
        return tuple(found)
    spinning = [
        gpu.index
        for gpu, load, moved in zip(alive, loads, traffic, strict=True)
        if min(load) >= _BUSY_PCT and moved is not None and max(moved) <= _NO_TRAFFIC_PCT
    ]
    if spinning and len(spinning) == len(alive):
        text = (
            f"100 % without memory traffic on every GPU for {seconds:.0f} s or more: a kernel that waits (a collective)"
        )
        found.append(Evidence("spinning", text, seconds))
    found += _outlier(alive, loads, spinning, seconds)
    return tuple(found)


def _outlier(
    alive: Sequence[GpuView], loads: Sequence[tuple[float, ...]], spinning: Sequence[int], seconds: float
) -> list[Evidence]:
    if len(alive) < 2:
        return []
    means = [sum(load) / len(load) for load in loads]
    for place, gpu in enumerate(alive):
        others = [mean for other, mean in enumerate(means) if other != place]
        low, high = min(others), max(others)
        if high - low > 20:
            continue  # the others do not agree among themselves: nobody is the odd one
        if abs(means[place] - sum(others) / len(others)) >= _APART_PCT:
            waits = " (they wait for it)" if set(spinning) >= {o.index for o in alive if o is not gpu} else ""
            text = f"GPU {gpu.index} at {means[place]:.0f} % while the others are at {low:.0f} to {high:.0f} %{waits}"
            return [Evidence("one-different", text, seconds, gpu.index)]
    return []


def _last(history: Sequence[float | None], count: int) -> tuple[float, ...] | None:
    window = history[-count:]
    known = [value for value in window if value is not None]
    # The newest bucket may be empty for a moment; a gap anywhere else means that we did not look.
    if len(window) < count or len(known) < count - 1:
        return None
    return tuple(known)
