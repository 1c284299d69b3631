"""A host's hardware as lines of plain text, for `specconsole gpus` and whatever else has no screen."""

from __future__ import annotations

from collections.abc import Sequence

from specconsole.core.hardware.gpu_owners import age_text
from specconsole.core.views.host import GpuView, HostView

_BLOCKS = " ▏▎▍▌▋▊▉█"
_GIB = 1 << 30
_MOST_NAME = 60
_STALE_S = 10.0


def bar(share: float | None, width: int) -> str:
    """A bar of `width` cells in eighths; blanks when the share (0 to 1) is unknown."""
    if share is None:
        return " " * width
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_BLOCKS[rest] if rest else "")).ljust(width)


def gib(amount: int | None) -> str:
    """`68.0`, or `?`."""
    return "?" if amount is None else f"{amount / _GIB:.1f}"


def rate_text(bytes_s: float | None) -> str:
    """`2.1 GB/s` (decimal, as disks and networks are sold); `?` when unknown."""
    if bytes_s is None:
        return "?"
    for limit, unit in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if bytes_s >= limit:
            return f"{bytes_s / limit:.1f} {unit}"
    return f"{bytes_s:.0f} B/s"


def gpu_title(gpus: Sequence[GpuView]) -> str:
    """`8 × NVIDIA H200`, `2 × NVIDIA H200 + 1 × NVIDIA L4`."""
    counts: dict[str, int] = {}
    for gpu in gpus:
        name = gpu.name if len(gpu.name) <= _MOST_NAME else gpu.name[: _MOST_NAME - 1] + "…"
        counts[name] = counts.get(name, 0) + 1
    return " + ".join(f"{count} × {name}" for name, count in counts.items())


def host_line(view: HostView) -> str:
    """The machine in one line."""
    parts = []
    if view.cpu_pct is not None:
        quota = f" of {view.cpu_count} CPUs" if view.cpu_count else ""
        limit = f", limited to {view.cpu_quota:g}" if view.cpu_quota is not None else ""
        parts.append(f"cpu {view.cpu_pct:.0f} %{quota}{limit}")
    if len(view.numa_pct) > 1:
        parts.append("NUMA " + " ".join(f"{node}:{share:.0f}%" for node, share in view.numa_pct))
    if view.memory_total_bytes is not None:
        parts.append(f"ram {gib(view.memory_used_bytes)}/{gib(view.memory_total_bytes)} GiB")
    if view.cgroup_memory_limit_bytes is not None:
        used = gib(view.cgroup_memory_used_bytes)
        kills = f", {view.oom_kills} OOM kills" if view.oom_kills else ""
        parts.append(f"cgroup {used}/{gib(view.cgroup_memory_limit_bytes)} GiB{kills}")
    if view.shm_total_bytes is not None:
        parts.append(f"shm {gib(view.shm_used_bytes)}/{gib(view.shm_total_bytes)} GiB")
    if view.disk_read_bytes_s is not None:
        parts.append(f"{view.disk_name} read {rate_text(view.disk_read_bytes_s)}")
    if view.network_rx_bytes_s is not None:
        parts.append(f"net ↓{rate_text(view.network_rx_bytes_s)} ↑{rate_text(view.network_tx_bytes_s)}")
    if view.uptime_s is not None:
        parts.append(f"up {age_text(view.uptime_s)}")
    return " · ".join(parts)


def gpu_line(gpu: GpuView) -> str:
    """One GPU's figures in one line."""
    if gpu.lost:
        return f"{gpu.index:>2} LOST: the GPU does not answer any more ({gpu.bus_id or gpu.uuid})"
    util = "  ?" if gpu.util_pct is None else f"{gpu.util_pct:3.0f}"
    share = None if gpu.util_pct is None else gpu.util_pct / 100
    watts = f"{gpu.power_w:.0f}" if gpu.power_w is not None else "?"
    limit = f"{gpu.power_limit_w:.0f}" if gpu.power_limit_w is not None else "?"
    parts = [
        f"{gpu.index:>2} {bar(share, 10)} {util} %",
        f"{gib(gpu.memory_used_bytes):>6}/{gib(gpu.memory_total_bytes)} GiB",
        f"{gpu.temperature_c:.0f}°C" if gpu.temperature_c is not None else "?°C",
        f"{watts}/{limit} W",
        f"{gpu.sm_clock_mhz:.0f} MHz" if gpu.sm_clock_mhz is not None else "",
        gpu.pstate or "",
        f"held down: {', '.join(gpu.throttle)}" if gpu.throttle else "",
        f"{gpu.ecc_uncorrected} uncorrected ECC errors" if gpu.ecc_uncorrected else "",
        f"MIG: {len(gpu.mig_devices)} devices" if gpu.mig else "",
        gpu.detail,
    ]
    return "  ".join(part for part in parts if part)


def gpu_report(view: HostView) -> list[str]:
    """All lines of a host: the machine, each GPU, and under it who holds its memory."""
    title = " · ".join(
        part
        for part in (view.name, gpu_title(view.gpus), f"driver {view.gpu_driver}" if view.gpu_driver else "")
        if part
    )
    lines = [title, f"   {host_line(view)}"]
    if view.gpu_note:
        lines.append(f"   {view.gpu_note}")
    age_s = None if view.gpu_as_of_s is None else view.as_of_s - view.gpu_as_of_s
    if view.gpus and age_s is not None and (view.gpu_note or age_s > _STALE_S):
        lines.append(f"   the GPU figures below are {age_text(age_s)} old")
    if view.gpu_source_note and view.gpus:
        lines.append(f"   ({view.gpu_source_note})")
    for gpu in view.gpus:
        lines.append(gpu_line(gpu))
        lines += [f"      {device}" for device in gpu.mig_devices]
        for process in gpu.processes:
            held = f"{process.used_bytes / _GIB:.1f} GiB" if process.used_bytes is not None else "memory not told"
            lines.append(f"      {held}, {process.label}")
        lines += [f"      {gpu.hidden}"] if gpu.hidden else []
        lines += [f"      {fault}" for fault in gpu.faults]
    if any(process.launch_id is None for gpu in view.gpus for process in gpu.processes):
        lines.append(f"   who they are in full: specconsole holders {view.name}")
    return [*lines, *(f"   note: {note}" for note in view.hardware_notes)]
