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

    pid: int
    used_bytes: int | None
    user: str | None
    command: str | None
    age_s: float | None
    launch_id: str | None
    """The launch it belongs to; None when it is not one of ours (or the pid is hidden)."""
    label: str
    """`eagle3-topk1, TP3`, or `not ours: pid 71, bob, 3 h, python train.py`."""


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
    memory_history_ratio: tuple[float | None, ...] = ()


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
    gpu_note: str = ""
    """Why there are no GPU figures (`no GPU tool on this host`); "" when there are."""
    cpu_pct: float | None = None
    cpu_count: int | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    shm_used_bytes: int | None = None
    shm_total_bytes: int | None = None
    disk_read_bytes_s: float | None = None
    network_rx_bytes_s: float | None = None
    network_tx_bytes_s: float | None = None
    uptime_s: float | None = None
    notes: tuple[str, ...] = ()
