"""Finds what can tell a host's figures: the GPU tool that is there, and psutil or a shell for the rest."""

from __future__ import annotations

from specconsole.adapters.amd_ascend import AmdSmiProbe, NpuSmiProbe, RocmSmiProbe
from specconsole.adapters.host_readings import PsutilReadings, ShellReadings
from specconsole.adapters.nvidia import NvidiaProbe
from specconsole.core.hardware.gpu_presence import FIND_TOOLS_SH, parse_presence
from specconsole.ports import GpuProbe, HostProbe, Transport

_PROBES = {
    "nvidia-smi": NvidiaProbe,
    "amd-smi": AmdSmiProbe,
    "rocm-smi": RocmSmiProbe,
    "npu-smi": NpuSmiProbe,
}


class HostHardware:
    """The `HardwareTools` of every host."""

    async def find_gpu_probe(self, transport: Transport) -> GpuProbe | str:
        answer = await transport.run_sh(FIND_TOOLS_SH, timeout_s=20.0)
        presence = parse_presence(answer.stdout)
        for tool, path in presence.tools:
            probe: GpuProbe = _PROBES[tool](transport, path)
            return probe
        return presence.why_none

    def host_probe(self, transport: Transport) -> HostProbe:
        return PsutilReadings() if transport.host == "local" else ShellReadings(transport)
