"""What a host says of its metal."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from specconsole.core.hardware.gpu import GpuFacts, GpuProcess, GpuTick
from specconsole.core.hardware.host import HostCounters
from specconsole.core.hardware.mounts import Mount
from specconsole.ports.transport import Transport


class GpuProbe(Protocol):
    """The GPU tool of one host. Raises GpuToolError when the tool has no figures, TransportError when the way there
    is broken."""

    tool: str
    """What is run there: `nvidia-smi`, `amd-smi`, ..."""
    note: str
    """What a person must know of every figure of it (`not tried on hardware`); "" when there is nothing."""

    def ticks(self, every_s: int) -> AsyncGenerator[GpuTick, None]:
        """All GPUs again and again, about every `every_s` seconds, from one process where the tool can stream.

        A slow tool gives fewer. Close it (`contextlib.aclosing`) to give its channel back.
        """

    async def snapshot(self) -> GpuTick:
        """All GPUs once."""

    async def processes(self) -> tuple[GpuProcess, ...]:
        """Who holds GPU memory, as far as the tool can see."""

    async def facts(self) -> GpuFacts:
        """Driver, topology, links, MIG devices: what seldom changes. What the tool can't tell is left empty."""


class HostProbe(Protocol):
    """CPU, memory, disks and network of one host."""

    def readings(self, every_s: int) -> AsyncGenerator[HostCounters, None]:
        """Counters about every `every_s` seconds, the first ones at once. Raises TransportError."""

    def mounts(self) -> Mapping[str, Mount]:
        """The mount table by mount point; empty where it can't be read, or before the first reading."""


class HardwareTools(Protocol):
    """Finds the right probes for a host."""

    async def find_gpu_probe(self, transport: Transport) -> GpuProbe | str:
        """The probe of the GPU tool that is there, or why there is none, in one line. Raises TransportError."""

    def host_probe(self, transport: Transport) -> HostProbe: ...
