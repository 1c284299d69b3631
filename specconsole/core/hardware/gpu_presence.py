"""Which GPU tool a host has, and what its absence means."""

from __future__ import annotations

from dataclasses import dataclass

from specconsole.core.hardware.values import clean

FIND_TOOLS_SH = r"""
{
PATH=$PATH:/usr/local/nvidia/bin:/usr/lib/wsl/lib:/run/nvidia/driver/usr/bin:/opt/bin:/opt/rocm/bin
PATH=$PATH:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/sbin
for tool in nvidia-smi amd-smi rocm-smi npu-smi; do
  found=$(command -v "$tool" 2>/dev/null) && echo "tool=$tool $found"
done
[ -e /dev/nvidiactl ] && echo device=nvidia
[ -e /dev/kfd ] && echo device=amd
[ -e /dev/davinci_manager ] && echo device=ascend
for device in /sys/bus/pci/devices/*; do
  read -r class <"$device/class" && read -r vendor <"$device/vendor" || continue
  case $class in 0x0300*|0x0302*|0x1200*) echo "pci=$vendor" ;; esac
done 2>/dev/null
echo end=1
} </dev/null
"""
"""A login through SSH often has a bare PATH; these are where drivers and containers put their tools."""

_VENDORS = {"0x10de": ("NVIDIA", "nvidia-smi"), "0x1002": ("AMD", "amd-smi"), "0x19e5": ("Ascend", "npu-smi")}
_PREFERRED = {"nvidia": ("nvidia-smi",), "amd": ("amd-smi", "rocm-smi"), "ascend": ("npu-smi",)}


@dataclass(frozen=True, slots=True)
class GpuPresence:
    """What a host has for GPUs."""

    tools: tuple[tuple[str, str], ...]
    """(name, path), the one to use first; a tool without its device comes last."""
    why_none: str
    """What to say when there is no tool."""


def parse_presence(output: bytes) -> GpuPresence:
    """The answer of `FIND_TOOLS_SH`."""
    tools: dict[str, str] = {}
    devices: list[str] = []
    cards: dict[str, int] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        key, _, value = clean(line).partition("=")
        if key == "tool" and " " in value:
            name, _, path = value.partition(" ")
            tools[name] = path
        elif key == "device":
            devices.append(value)
        elif key == "pci":
            cards[value] = cards.get(value, 0) + 1
    with_device = [tool for device in devices for tool in _PREFERRED.get(device, ()) if tool in tools]
    # An integrated AMD graphics chip also makes /dev/kfd; a compute tool of another vendor goes before it.
    order = sorted(
        dict.fromkeys([*with_device, *tools]), key=lambda tool: (tool not in with_device, list(tools).index(tool))
    )
    return GpuPresence(tuple((tool, tools[tool]) for tool in order), _why_none(cards))


def _why_none(cards: dict[str, int]) -> str:
    for vendor, (name, tool) in _VENDORS.items():
        if cards.get(vendor) and vendor != "0x1002":  # an AMD graphics chip is in most servers' boards
            return f"{cards[vendor]} {name} device(s) on PCI, but no {tool} on this host: is the driver installed?"
    return "no GPU on this host"
