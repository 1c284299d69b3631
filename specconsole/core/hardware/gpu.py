"""What a GPU is doing at one moment, whichever vendor's tool said so.

Plain values. A number that a tool does not support, or can't tell now, is None and never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specconsole.errors import SpecconsoleError

MIB = 1024 * 1024

ThrottleReason = Literal[
    "app-clocks", "power-cap", "hw-slowdown", "sync-boost", "thermal", "hw-thermal", "power-brake", "display-clocks",
]  # fmt: skip
"""Why a GPU runs below its clocks, idling left out: that one is no limit."""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU (or NPU) at one moment."""

    index: int
    """The tool's own number; it may change with every boot, `uuid` does not."""
    uuid: str
    """What tells this GPU from all others; a bus address where the tool has no UUID."""
    name: str = ""
    bus_id: str | None = None
    """PCI address as the tool prints it (`00000000:00:06.0`)."""
    util_pct: float | None = None
    """Share of the last sample period (1/6 to 1 s) in which any kernel ran; says nothing of how much ran."""
    memory_util_pct: float | None = None
    """Share of the period in which device memory was read or written."""
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_mhz: float | None = None
    pstate: str | None = None
    throttle: tuple[ThrottleReason, ...] | None = None
    """Active reasons; () when the tool says that there are none, None when it can't tell."""
    ecc_uncorrected: int | None = None
    """Uncorrected memory errors since the driver was loaded."""
    mig: bool | None = None
    """True when the GPU is cut into MIG devices (utilisation is then not available)."""
    lost: bool = False
    """True when the tool lists the GPU and can't reach it."""
    detail: str = ""
    """What the tool says beside the numbers (`health: Warning`), for a person."""


@dataclass(frozen=True, slots=True)
class GpuTick:
    """All GPUs of a host at one moment, by index."""

    gpus: tuple[GpuSample, ...]
    complete: bool = True
    """False when the tool announced more GPUs than it listed."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a GPU, as the GPU tool tells it."""

    gpu_uuid: str
    """The same name as `GpuSample.uuid` (or a MIG device's)."""
    pid: int | None
    """None when the tool hides it (another container's process)."""
    name: str | None
    """None when the tool can't find the process (`[Not Found]`: it is dead, or in another pid namespace)."""
    used_bytes: int | None
    pid_in_container: int | None = None


TroubleKind = Literal[
    "driver-not-running", "version-mismatch", "no-permission", "no-devices", "device-lost", "bad-field",
    "library-missing", "tool-missing", "slow", "other",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ToolTrouble:
    """Why a GPU tool gives no figures: one line for a person, and what to try."""

    kind: TroubleKind
    text: str
    try_: str = ""
    bus_id: str | None = None
    """Of a lost GPU, where the tool names it."""
    field: str | None = None
    """The query field that this driver does not know (`bad-field`)."""

    def __str__(self) -> str:
        return f"{self.text} (try: {self.try_})" if self.try_ else self.text


class GpuToolError(SpecconsoleError):
    """A GPU tool has no figures; `trouble` says why."""

    def __init__(self, trouble: ToolTrouble, *, where: str = "") -> None:
        super().__init__(trouble.text, where=where, try_=trouble.try_)
        self.trouble = trouble


@dataclass(frozen=True, slots=True)
class MigDevice:
    """A slice of a GPU."""

    gpu_index: int
    device: int
    gpu_instance: int
    compute_instance: int
    profile: str | None
    """`3g.71gb`."""
    uuid: str | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None


@dataclass(frozen=True, slots=True)
class NvlinkState:
    """NVLinks of one GPU."""

    gpu_index: int
    active: int
    inactive: int
    gb_s_each: float | None
    """One direction, as the tool prints it; of the slowest active link. None without an active one."""


@dataclass(frozen=True, slots=True)
class Topology:
    """How the GPUs of a host are connected (`nvidia-smi topo -m`)."""

    names: tuple[str, ...] = ()
    """`GPU0`, `GPU1`, ..., then NICs."""
    links: tuple[tuple[str, ...], ...] = ()
    """`links[i][j]`: `X`, `NV18`, `PIX`, `PXB`, `PHB`, `NODE` or `SYS`; a row for every name."""
    cpu_affinity: tuple[str | None, ...] = ()
    numa_affinity: tuple[str | None, ...] = ()

    def between(self, first: int, second: int) -> str | None:
        """The link between two GPUs by index; None when unknown."""
        a, b = f"GPU{first}", f"GPU{second}"
        if a not in self.names or b not in self.names:
            return None
        return self.links[self.names.index(a)][self.names.index(b)]


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """What does not change while a host runs, or seldom."""

    tool: str = ""
    driver: str | None = None
    topology: Topology | None = None
    nvlinks: tuple[NvlinkState, ...] = ()
    mig_devices: tuple[MigDevice, ...] = ()
    notes: tuple[str, ...] = ()
