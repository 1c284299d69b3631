"""What the window knows of a host: immutable, built by `services`, drawn by `ui`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LinkState = Literal[
    "connecting", "up", "unreachable", "refused", "auth-failed", "key-unknown", "key-changed",
    "needs-person", "stale", "off",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuProcessView:
    """A process that holds GPU memory."""

    pid: int | None
    """None when the tool hides it."""
    used_bytes: int | None
    user: str | None
    command: str | None
    age_s: float | None
    launch_id: str | None
    """The launch it belongs to; None when it is not one of ours (or the pid is hidden)."""
    label: str
    """`eagle3-topk1, TP3`, or `not ours: pid 71, bob, 3 h, python train.py`."""
    start_ticks: int | None = None
    """With the pid and the boot, what tells this process from a later one of the same number."""


@dataclass(frozen=True, slots=True)
class ThrottleSpan:
    """A time in which a GPU was held below its clocks."""

    reasons: tuple[str, ...]
    start_s: float
    """Console's monotonic clock."""
    end_s: float | None
    """None while it goes on."""


@dataclass(frozen=True, slots=True)
class DiskView:
    """The file system of a path that somebody asked about (a model's folder, /dev/shm)."""

    path: str
    mount_point: str
    total_bytes: int
    used_bytes: int
    free_bytes: int
    disk: str | None
    """The kernel's name of the device; None for network and layered file systems."""
    over_network: bool = False
    read_bytes_s: float | None = None


@dataclass(frozen=True, slots=True)
class GpuView:
    """One GPU at one moment. Every number may be None: not supported, or not known now."""

    index: int
    name: str
    uuid: str | None = None
    util_pct: float | None = None
    memory_util_pct: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    pstate: str | None = None
    throttle: tuple[str, ...] = ()
    ecc_uncorrected: int | None = None
    lost: bool = False
    """True when the GPU was there and the tool no longer lists it."""
    processes: tuple[GpuProcessView, ...] = ()
    util_history_pct: tuple[float | None, ...] = ()
    """Histories are 120 means of 5 s each, oldest first, ten minutes in all; None where nothing arrived."""
    memory_history_ratio: tuple[float | None, ...] = ()
    memory_util_history_pct: tuple[float | None, ...] = ()
    power_history_w: tuple[float | None, ...] = ()
    temperature_history_c: tuple[float | None, ...] = ()
    bus_id: str | None = None
    memory_temperature_c: float | None = None
    sm_clock_max_mhz: float | None = None
    throttle_history: tuple[ThrottleSpan, ...] = ()
    """Of the last ten minutes, oldest first."""
    numa_node: str | None = None
    nvlink: str = ""
    """`18 links up, 26.6 GB/s each`; "" when unknown or none."""
    mig: bool = False
    mig_devices: tuple[str, ...] = ()
    """One line each: `0: 3g.71gb 14.0/19.5 GiB`."""
    hidden: str = ""
    """Memory that no visible process accounts for, in words; "" when there is none."""
    faults: tuple[str, ...] = ()
    """What the kernel said of it since boot (`Xid 79: ..., 3 min ago`), newest first."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class HostView:
    """One host, as of `as_of_s` (console's monotonic clock)."""

    name: str
    state: LinkState
    detail: str = ""
    """One line for a person: the error, the fingerprint, what is asked for."""
    since_s: float | None = None
    """Console's monotonic clock when this state began."""
    stale_since_s: float | None = None
    """Not None: everything below is old, and must be shown with its age."""
    retry_at_s: float | None = None
    """When the next attempt to connect comes; None when none is planned."""
    read_only: bool = False
    as_of_s: float = 0.0
    gpus: tuple[GpuView, ...] = ()
    gpu_tool: str = ""
    """`nvidia-smi`; "" before it was looked for, or without one."""
    gpu_driver: str | None = None
    gpu_as_of_s: float | None = None
    """Console's monotonic clock when the last GPU figures came; older than a few seconds means that the tool hangs."""
    gpu_source_note: str = ""
    """What to know of every GPU figure (`not tried on hardware`); "" when nothing."""
    gpu_links: tuple[tuple[str, ...], ...] = ()
    """The topology matrix, GPUs by GPUs (`NV18`, `PIX`, `SYS`, `X`); () when unknown."""
    gpu_note: str = ""
    """Why there are no GPU figures (`no GPU tool on this host`); "" when there are."""
    cpu_pct: float | None = None
    cpu_count: int | None = None
    cpu_quota: float | None = None
    """CPUs that the cgroup allows; None without a limit."""
    iowait_pct: float | None = None
    numa_pct: tuple[tuple[int, float], ...] = ()
    """(node, busy share of its CPUs)."""
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    page_cache_bytes: int | None = None
    cgroup_memory_used_bytes: int | None = None
    cgroup_memory_limit_bytes: int | None = None
    """None without a limit below the machine's memory."""
    oom_kills: int | None = None
    shm_used_bytes: int | None = None
    shm_total_bytes: int | None = None
    disks: tuple[DiskView, ...] = ()
    disk_read_bytes_s: float | None = None
    """Of the disk under the first watched path, else of all whole disks together."""
    disk_written_bytes_s: float | None = None
    disk_name: str = ""
    """Which disk that is: `nvme0n1`, or `all disks`."""
    network_rx_bytes_s: float | None = None
    network_tx_bytes_s: float | None = None
    uptime_s: float | None = None
    hardware_notes: tuple[str, ...] = ()
    """What a tool is missing or too slow for, one line each, said once."""
    notes: tuple[str, ...] = ()
