"""What the kernel's messages say of the GPUs: NVIDIA's Xid numbers, amdgpu resets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specconsole.core.hardware.values import clean

# `[  812.114215] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.` (525)
# `[ 1024.667] NVRM: Xid (PCI:0000:0a:00): 31, pid=2345, name=python3, Ch 00000008, intr 00000000. MMU Fault: ...`
_XID = re.compile(r"^(?:\[\s*([\d.]+)\]\s*)?.*?NVRM: Xid \(PCI:([0-9A-Fa-f:.]+)\): (\d+),?\s*(.*)")
_XID_PID = re.compile(r"pid='?(\d+)'?")
# `NVRM: The NVIDIA GPU 0000:b3:00.0`, then `NVRM: fallen off the bus and is not responding to commands.` (570)
_OFF_BUS = re.compile(r"^(?:\[\s*([\d.]+)\]\s*)?.*?NVRM: The NVIDIA GPU ([0-9A-Fa-f:.]+)")
# `[ 2001.5] amdgpu 0000:0c:00.0: amdgpu: GPU reset begin!`
_AMD = re.compile(r"^(?:\[\s*([\d.]+)\]\s*)?.*?amdgpu ([0-9A-Fa-f:.]+): .*?(GPU reset.*|ring \S+ timeout.*)")

_MEANINGS: dict[int, str] = {
    13: "a kernel of the application failed (bad address or instruction)",
    31: "the application touched memory that is not its own (MMU fault)",
    43: "a channel was stopped after an application fault",
    45: "work was cut off after an earlier fault",
    48: "uncorrectable ECC error in memory",
    62: "the GPU's internal controller halted",
    63: "a memory row was remapped",
    64: "remapping a memory row failed",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "many corrected ECC errors",
    94: "contained ECC error: only its application is lost",
    95: "uncontained ECC error: every application on the GPU is lost",
    109: "context switch timed out",
    119: "the GPU's firmware (GSP) does not answer",
    120: "the GPU's firmware (GSP) failed",
    140: "ECC error that was not recovered",
    143: "the GPU could not be initialised",
    149: "NVLink (NETIR) error",
}
"""In our words after NVIDIA's public Xid catalogue."""

_HARDWARE = frozenset({48, 62, 64, 74, 79, 92, 95, 119, 120, 140, 143, 149})


KERNEL_LOG_SH = r"""
{
messages=$(dmesg 2>/dev/null) || { echo '#unreadable'; exit 0; }
printf '%s\n' "$messages" | grep -a -e 'NVRM: ' -e 'amdgpu .*GPU reset' -e 'amdgpu .*timeout' | tail -n 200
} </dev/null
"""


@dataclass(frozen=True, slots=True)
class GpuFault:
    """One message of the kernel about a GPU."""

    bus_id: str
    """Lower-case PCI address, domain of four digits (`0000:3b:00`)."""
    uptime_s: float | None
    """Seconds after boot; None when the message has no stamp."""
    xid: int | None
    text: str
    hardware: bool
    """True when the device or its links are at fault rather than the application."""
    pid: int | None = None


def same_bus(first: str | None, second: str | None) -> bool:
    """Whether two spellings (`00000000:3B:00.0`, `0000:3b:00`) name one device."""
    if first is None or second is None:
        return False
    return normal_bus(first) == normal_bus(second)


def normal_bus(bus_id: str) -> str:
    """`00000000:3B:00.0` -> `0000:3b:00`."""
    return bus_id.lower().split(".")[0].removeprefix("0000") if len(bus_id) > 13 else bus_id.lower().split(".")[0]


def parse_kernel_log(text: str) -> tuple[GpuFault, ...]:
    """GPU faults in the output of `dmesg`, oldest first; other lines are skipped."""
    faults: list[GpuFault] = []
    for raw in text.splitlines():
        line = clean(raw)
        if match := _XID.match(line):
            stamp, bus, number, rest = match.groups()
            xid, pid = int(number), _XID_PID.search(rest)
            meaning = _MEANINGS.get(xid, rest.strip()[:120])
            faults.append(
                GpuFault(
                    normal_bus(bus),
                    float(stamp) if stamp else None,
                    xid,
                    f"Xid {xid}: {meaning}",
                    xid in _HARDWARE,
                    int(pid.group(1)) if pid else None,
                )
            )
        elif "fallen off the bus" in line and faults and faults[-1].xid is None:
            continue
        elif match := _OFF_BUS.match(line):
            stamp, bus = match.groups()
            text_ = "the driver can't use the GPU: fallen off the bus or not responding"
            faults.append(GpuFault(normal_bus(bus), float(stamp) if stamp else None, None, text_, True))
        elif match := _AMD.match(line):
            stamp, bus, what = match.groups()
            faults.append(
                GpuFault(normal_bus(bus), float(stamp) if stamp else None, None, f"amdgpu: {what[:120]}", True)
            )
    return tuple(faults)
