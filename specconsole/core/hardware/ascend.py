"""Ascend NPUs: the two tables of `npu-smi info`.

Written after outputs published by others (npu-smi 23 to 26, 910B and 910C); never run by us on an NPU, and the
screens say so. Each chip takes two lines; on 910C the second chip of a card has no power figure (`-`).
"""

from __future__ import annotations

import re

from specconsole.core.hardware.gpu import MIB, GpuProcess, GpuSample, GpuTick
from specconsole.core.hardware.values import clean, number, whole, word

NOTE = "Ascend figures: written after recorded outputs, not tried on hardware"

# `| 0     Ascend910           | OK            | 178.5       36                0    / 0             |` (npu-smi 25)
_FIRST = re.compile(r"^\|\s*(\d+)\s+(\S+)\s*\|\s*(\S+)\s*\|\s*(\S+)\s+(\S+)\s+\d+\s*/\s*\d+\s*\|")
# `| 0     0                   | 0000:9D:00.0  | 0           0    / 0          3416 / 65536         |` (910C)
# `| 0                         | 0000:C1:00.0  | 0           0    / 0          3197 / 65536         |` (910B)
_SECOND = re.compile(
    r"^\|\s*(\d+)\s*(\d*)\s*\|\s*([0-9A-Fa-fxX:.]+)\s*\|\s*(\S+)\s+(\d+)\s*/\s*(\d+)(?:\s+(\d+)\s*/\s*(\d+))?\s*\|"
)
# `| 0       0                 | 692318        | python3            | 12417                 | NA       |` (npu-smi 26)
_PROCESS = re.compile(r"^\|\s*(\d+)\s+(\d+)\s*\|\s*(\d+)\s*\|\s*(\S*)\s*\|\s*(\d+)\s*\|(?:\s*(\S+)\s*\|)?")


def parse_npu_smi(text: str) -> GpuTick | None:
    """All chips, numbered as they are listed (`Phy-ID` where the tool has it); None when there are none."""
    chips: list[GpuSample] = []
    first: re.Match[str] | None = None
    for line in text.splitlines():
        if first is None:
            first = _FIRST.match(line)
            continue
        second = _SECOND.match(line)
        if second is None:
            first = _FIRST.match(line)
            continue
        npu, name, health, power, temperature = first.groups()
        chip, physical, bus, load, used, total, hbm_used, hbm_total = second.groups()
        # HBM is the second pair where there is one; cards with DDR alone (310P) have the first.
        used_mb, total_mb = (hbm_used, hbm_total) if hbm_total is not None else (used, total)
        chips.append(
            GpuSample(
                index=int(physical) if physical else len(chips),
                uuid=f"npu-{npu}-{chip}",
                name=clean(name),
                bus_id=clean(bus),
                util_pct=number(load),
                memory_used_bytes=int(used_mb) * MIB,
                memory_total_bytes=int(total_mb) * MIB,
                temperature_c=number(temperature),
                power_w=number(power),
                detail="" if health.upper() == "OK" else f"health: {clean(health)}",
            )
        )
        first = None
    return GpuTick(tuple(chips)) if chips else None


def parse_npu_processes(text: str) -> tuple[GpuProcess, ...]:
    """The process table at the end of `npu-smi info`; a missing `Process id in container` is None."""
    found, table = [], False
    for line in text.splitlines():
        table = table or "Process id" in line
        match = _PROCESS.match(line) if table else None
        if match:
            npu, chip, pid, name, used, inside = match.groups()
            found.append(
                GpuProcess(
                    f"npu-{npu}-{chip}", int(pid), word(name), int(used) * MIB, whole(inside) if inside else None
                )
            )
    return tuple(found)
