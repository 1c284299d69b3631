"""What nvidia-smi says when it has no figures, in one line for a person with what to try."""

from __future__ import annotations

import re

from specconsole.core.hardware.gpu import ToolTrouble

# `Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover this GPU`
# (drivers 460 to 535); `... for GPU0000:07:00.0: Unknown Error` (550, no blank); `gpu 0000:3B:00.0: Not Found`.
_HANDLE = re.compile(r"Unable to determine the device handle for GPU\s*([0-9A-Fa-f:.]+?):\s+(.*)", re.IGNORECASE)

# `Field "nosuchfield" is not a valid field to query.` (580.159.04, exit status 2)
_FIELD = re.compile(r'Field "([^"]+)" is not a valid field to query')

_RELOAD = "close what uses the GPUs and reload the nvidia modules, or reboot"


def bad_field(line: str) -> str | None:
    """The query field that the driver refuses; None when the line says nothing of the kind."""
    match = _FIELD.search(line)
    return match.group(1) if match else None


def explain(line: str) -> ToolTrouble | None:
    """The trouble that a line of nvidia-smi tells of; None for any other line."""
    handle = _HANDLE.search(line)
    if handle:
        bus_id, reason = handle.group(1), handle.group(2).strip().rstrip(".")
        return ToolTrouble(
            "device-lost",
            f"the GPU at {bus_id} does not answer: {reason}",
            "look for Xid lines in dmesg; a reset or a reboot brings it back",
            bus_id=bus_id,
        )
    field = bad_field(line)
    if field:
        return ToolTrouble("bad-field", f"this driver's nvidia-smi does not know the field {field}", field=field)
    if "Driver/library version mismatch" in line:
        return ToolTrouble(
            "version-mismatch",
            "nvidia-smi and the loaded kernel module are of different driver versions (an upgrade without a reboot)",
            _RELOAD,
        )
    # `NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest ...`
    if "couldn't communicate with the NVIDIA driver" in line:
        return ToolTrouble(
            "driver-not-running", "nvidia-smi can't reach the NVIDIA driver: it is not loaded", "modprobe nvidia; dmesg"
        )
    # `Failed to initialize NVML: Unknown Error`: in containers after the host reloaded its cgroups.
    if "Failed to initialize NVML: Unknown Error" in line:
        return ToolTrouble(
            "no-permission",
            "NVML can't be initialised (unknown error): in a container, its access to the GPU devices was taken away",
            "restart the container",
        )
    if "Insufficient Permissions" in line and "[" not in line:
        return ToolTrouble("no-permission", "this account may not use the GPUs", "look at the mode of /dev/nvidia*")
    if "Failed to initialize NVML: GPU access blocked by the operating system" in line:
        return ToolTrouble("no-permission", "the operating system blocks access to the GPU", "")
    # `NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. ...`
    if "libnvidia-ml.so" in line:
        return ToolTrouble(
            "library-missing",
            "nvidia-smi can't find libnvidia-ml.so",
            "reinstall the driver; in a container, pass it in",
        )
    if "No devices were found" in line:
        return ToolTrouble("no-devices", "the NVIDIA driver is loaded and finds no GPU", "nvidia-smi -L; dmesg")
    if "Failed to initialize NVML" in line:
        return ToolTrouble("other", line.strip())
    return None
