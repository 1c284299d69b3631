"""The short answers of nvidia-smi: compute processes, GPUs and MIG devices by name, NVLink state, topology."""

from __future__ import annotations

import re

from specconsole.core.hardware.gpu import MIB, GpuProcess, MigDevice, NvlinkState, Topology
from specconsole.core.hardware.values import clean, number, whole, word

APPS_QUERY = "--query-compute-apps=gpu_uuid,pid,process_name,used_memory"

# `GPU 0: NVIDIA H200 (UUID: GPU-242bffcf-dcd2-677f-8fd4-a44294b00f78)` (-L and nvlink --status, 580.159.04)
_GPU = re.compile(r"^GPU (\d+): (.+?) \(UUID: ([^)]+)\)")
# `  MIG 3g.20gb      Device  0: (UUID: MIG-...)` (-L, 470 and later)
_MIG = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^)]+)\)")
# `	 Link 0: 26.562 GB/s`, `	 Link 3: <inactive>` (nvlink --status)
_LINK = re.compile(r"^\s+Link \d+: (<?[\w.]+)")
# `|  1    3   0   0  |  14366MiB / 19968MiB | 28      0 |  2   0    1    0    0 |` (plain nvidia-smi, MIG table)
_MIG_ROW = re.compile(r"^\|\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\|\s+(\d+)MiB /\s+(\d+)MiB \|")
_SGR = re.compile(r"\x1b\[[0-9;]*m")


def parse_compute_apps(text: str) -> tuple[GpuProcess, ...]:
    """Rows of `APPS_QUERY`; `[Not Found]` names and `[N/A]` memory become None, other lines are skipped.

    A real row, 580.159.04: `GPU-242bffcf-dcd2-677f-8fd4-a44294b00f78, 12378, sglang::scheduler, 87686`. The name may
    hold a comma, so it is what is left between the others.
    """
    found = []
    for line in text.splitlines():
        cells = line.split(", ", 2)
        uuid = word(cells[0]) if len(cells) == 3 else None
        if uuid is None or not uuid.startswith(("GPU-", "MIG-")):
            continue
        name, _, amount = cells[2].rpartition(", ")
        used = number(amount)
        found.append(GpuProcess(uuid, whole(cells[1]), word(name), None if used is None else int(used * MIB)))
    return tuple(found)


def parse_gpu_list(text: str) -> tuple[dict[int, str], tuple[MigDevice, ...]]:
    """`nvidia-smi -L`: UUID by index, and MIG devices (instance numbers are not in it: -1)."""
    gpus: dict[int, str] = {}
    migs: list[MigDevice] = []
    for line in text.splitlines():
        if match := _GPU.match(line):
            gpus[int(match.group(1))] = clean(match.group(3))
        elif (match := _MIG.match(line)) and gpus:
            migs.append(MigDevice(max(gpus), int(match.group(2)), -1, -1, match.group(1), match.group(3), None, None))
    return gpus, tuple(migs)


def parse_mig_table(text: str, named: tuple[MigDevice, ...] = ()) -> tuple[MigDevice, ...]:
    """The `MIG devices` table of the plain nvidia-smi, with profile and UUID taken from `-L` (`named`)."""
    names = {(mig.gpu_index, mig.device): mig for mig in named}
    found = []
    for line in text.splitlines():
        if match := _MIG_ROW.match(line):
            gpu, instance, compute, device, used, total = (int(part) for part in match.groups())
            name = names.get((gpu, device))
            found.append(
                MigDevice(
                    gpu,
                    device,
                    instance,
                    compute,
                    name.profile if name else None,
                    name.uuid if name else None,
                    used * MIB,
                    total * MIB,
                )
            )
    return tuple(found)


def parse_nvlink_status(text: str) -> tuple[NvlinkState, ...]:
    """`nvidia-smi nvlink --status`: links of each GPU; a GPU without any is left out."""
    states: list[NvlinkState] = []
    gpu: int | None = None
    speeds: list[float | None] = []

    def close() -> None:
        up = [speed for speed in speeds if speed is not None]
        if gpu is not None and speeds:
            states.append(NvlinkState(gpu, len(up), len(speeds) - len(up), min(up) if up else None))

    for line in text.splitlines():
        if match := _GPU.match(line):
            close()
            gpu, speeds = int(match.group(1)), []
        elif match := _LINK.match(line):
            speeds.append(number(match.group(1)))
    close()
    return tuple(states)


def parse_topology(text: str) -> Topology | None:
    """`nvidia-smi topo -m` (tabs between the cells, SGR underline in the header since driver 5xx); None if empty."""
    rows = [[cell.strip() for cell in _SGR.sub("", line).split("\t")] for line in text.splitlines()]
    header = next((row for row in rows if "CPU Affinity" in row), None)
    if header is None:
        return None
    names = [name for name in header[1 : header.index("CPU Affinity")] if name]
    columns = [header.index(name) for name in names]
    cpu_column, links, cpus, numas = header.index("CPU Affinity"), [], [], []
    by_name = {row[0]: row for row in rows if row and row[0] in names}
    for name in names:
        row = by_name.get(name, [])
        links.append(tuple(clean(row[column]) if column < len(row) else "?" for column in columns))
        # A blank cell follows some numbers (`0\t\tN/A`); CPU and NUMA affinity are the next two columns.
        cpus.append(word(row[cpu_column]) if cpu_column < len(row) else None)
        numas.append(word(row[cpu_column + 1]) if cpu_column + 1 < len(row) else None)
    return Topology(tuple(clean(name) for name in names), tuple(links), tuple(cpus), tuple(numas))
