"""What benchmarks need of this machine and of hosts' GPU tools."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import specconsole.loadgen
from specconsole.core.measuring.gpu_moment import GpuMoment
from specconsole.errors import SpecconsoleError
from specconsole.ports import HardwareTools, Transport


def loadgen_zip() -> bytes:
    """The load generator as one file; the same bytes each time."""
    folder = Path(specconsole.loadgen.__path__[0])
    out = io.BytesIO()
    # Stored, not packed: a host's python3 may lack zlib.
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.glob("*.py")):
            archive.writestr(zipfile.ZipInfo(f"loadgen/{path.name}"), path.read_bytes())
    return out.getvalue()


async def look_at_gpus(transport: Transport, tools: HardwareTools) -> GpuMoment:
    """Names and what holds them back; nothing where there is no tool or it does not answer."""
    try:
        probe = await tools.find_gpu_probe(transport)
        if isinstance(probe, str):
            return GpuMoment()
        tick = await probe.snapshot()
    except (SpecconsoleError, TimeoutError):
        return GpuMoment()
    held = tuple(f"GPU {gpu.index}: {', '.join(gpu.throttle)}" for gpu in tick.gpus if gpu.throttle)
    return GpuMoment(tuple(gpu.name for gpu in tick.gpus), held)
