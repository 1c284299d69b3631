"""What a host's CPUs, memory, disks and network are doing: counters as read, and figures between two readings.

A reading (`HostCounters`) holds raw counters; `figures` turns two of them into rates. A counter that went
backwards (a reboot, a device that was replaced, a wrapped 32-bit counter) gives None for that step, never a spike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Of one CPU or all, in ticks or seconds, whichever the source uses; only ratios are taken."""

    busy: float
    iowait: float
    total: float


@dataclass(frozen=True, slots=True)
class DiskCounters:
    """Since boot."""

    read_bytes: int
    written_bytes: int
    device_number: str = ""
    """`259:0`, as in mountinfo; "" when unknown."""


@dataclass(frozen=True, slots=True)
class CgroupMemory:
    """The tightest memory limit above the account's own processes."""

    limit_bytes: int | None
    used_bytes: int | None
    """Without page cache that can be dropped at once, where the kernel tells it."""
    oom_kills: int | None = None


@dataclass(frozen=True, slots=True)
class HostCounters:
    """One reading."""

    uptime_s: float | None = None
    cpu: CpuTimes | None = None
    cpus: Mapping[int, CpuTimes] = field(default_factory=dict)
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    page_cache_bytes: int | None = None
    cgroup: CgroupMemory | None = None
    cpu_quota: float | None = None
    """CPUs that the cgroup allows; None without a limit."""
    disks: Mapping[str, DiskCounters] = field(default_factory=dict)
    network: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes received and sent since boot by interface."""
    numa: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """CPUs by NUMA node."""


@dataclass(frozen=True, slots=True)
class HostFigures:
    """What a host does now; a rate is None until two readings are there."""

    cpu_pct: float | None = None
    iowait_pct: float | None = None
    cpu_count: int | None = None
    cpu_quota: float | None = None
    numa_pct: tuple[tuple[int, float], ...] = ()
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    page_cache_bytes: int | None = None
    cgroup: CgroupMemory | None = None
    disk_read_bytes_s: Mapping[str, float] = field(default_factory=dict)
    disk_written_bytes_s: Mapping[str, float] = field(default_factory=dict)
    network_rx_bytes_s: float | None = None
    network_tx_bytes_s: float | None = None
    uptime_s: float | None = None


_NOT_A_WIRE = ("lo", "veth", "docker", "br-", "virbr", "cali", "flannel", "cni", "tunl", "dummy", "vnet", "tap", "ifb")
"""Interfaces whose bytes pass a real one as well, or none."""


def figures(before: HostCounters | None, now: HostCounters) -> HostFigures:
    """Rates between two readings; the step is the host's own uptime."""
    step_s = None
    if before is not None and now.uptime_s is not None and before.uptime_s is not None:
        step_s = now.uptime_s - before.uptime_s
    if step_s is not None and step_s <= 0:
        before, step_s = None, None  # rebooted: nothing of before holds
    used = None
    if now.memory_total_bytes is not None and now.memory_available_bytes is not None:
        used = now.memory_total_bytes - now.memory_available_bytes
    previous = before or HostCounters()
    rx, tx = _network(previous, now, step_s)
    return HostFigures(
        cpu_pct=_share(previous.cpu, now.cpu, "busy"),
        iowait_pct=_share(previous.cpu, now.cpu, "iowait"),
        cpu_count=len(now.cpus) or None,
        cpu_quota=now.cpu_quota,
        numa_pct=_numa(previous, now),
        memory_used_bytes=used,
        memory_total_bytes=now.memory_total_bytes,
        page_cache_bytes=now.page_cache_bytes,
        cgroup=now.cgroup,
        disk_read_bytes_s=_disk_rates(previous, now, step_s, "read_bytes"),
        disk_written_bytes_s=_disk_rates(previous, now, step_s, "written_bytes"),
        network_rx_bytes_s=rx,
        network_tx_bytes_s=tx,
        uptime_s=now.uptime_s,
    )


def rate(before: float | None, now: float | None, step_s: float | None) -> float | None:
    """Growth of a counter a second; None when it is unknown or went backwards."""
    if before is None or now is None or not step_s or step_s <= 0 or now < before:
        return None
    return (now - before) / step_s


def _share(before: CpuTimes | None, now: CpuTimes | None, part: str) -> float | None:
    if before is None or now is None:
        return None
    total = now.total - before.total
    change: float = getattr(now, part) - getattr(before, part)
    # iowait may go backwards by a little (proc(5) says so): that is no time waited.
    return None if total <= 0 else min(100.0, max(0.0, 100.0 * change / total))


def _numa(before: HostCounters, now: HostCounters) -> tuple[tuple[int, float], ...]:
    loads = []
    for node, cpus in sorted(now.numa.items()):
        pairs = [(before.cpus[cpu], now.cpus[cpu]) for cpu in cpus if cpu in before.cpus and cpu in now.cpus]
        total = sum(b.total - a.total for a, b in pairs)
        if total > 0:
            busy = sum(b.busy - a.busy for a, b in pairs)
            loads.append((node, min(100.0, max(0.0, 100.0 * busy / total))))
    return tuple(loads)


def _disk_rates(before: HostCounters, now: HostCounters, step_s: float | None, part: str) -> dict[str, float]:
    rates = {}
    for name, disk in now.disks.items():
        old = before.disks.get(name)
        value = rate(getattr(old, part), getattr(disk, part), step_s) if old is not None else None
        if value is not None:
            rates[name] = value
    return rates


def _network(before: HostCounters, now: HostCounters, step_s: float | None) -> tuple[float | None, float | None]:
    received, sent = [], []
    for name, (rx, tx) in now.network.items():
        if name.startswith(_NOT_A_WIRE) or name not in before.network:
            continue
        received.append(rate(before.network[name][0], rx, step_s))
        sent.append(rate(before.network[name][1], tx, step_s))
    known_rx = [value for value in received if value is not None]
    known_tx = [value for value in sent if value is not None]
    return (sum(known_rx) if known_rx else None), (sum(known_tx) if known_tx else None)
