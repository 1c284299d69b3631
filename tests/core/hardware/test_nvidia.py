"""nvidia-smi: recorded outputs of a real H200 (driver 580.159.04), and published ones of other machines."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specconsole.core.hardware.gpu import GpuTick, ToolTrouble
from specconsole.core.hardware.kernel_log import parse_kernel_log
from specconsole.core.hardware.nvidia_lists import (
    parse_compute_apps,
    parse_gpu_list,
    parse_mig_table,
    parse_nvlink_status,
    parse_topology,
)
from specconsole.core.hardware.nvidia_query import (
    FIELDS,
    QueryStream,
    parse_row,
    query_argv,
    throttle_reasons,
    with_steady,
)
from specconsole.core.hardware.nvidia_trouble import bad_field, explain

DATA = Path(__file__).parents[2] / "data" / "nvidia"
RECORDED = (
    "index", "uuid", "name", "utilization.gpu", "utilization.memory", "memory.used", "memory.total", "temperature.gpu",
    "power.draw", "power.limit", "clocks.sm", "clocks.mem", "fan.speed", "pstate",
    "ecc.errors.uncorrected.volatile.total", "mig.mode.current",
)  # fmt: skip
UUID = "GPU-242bffcf-dcd2-677f-8fd4-a44294b00f78"
MIB = 1024 * 1024


def test_a_busy_gpu_as_recorded() -> None:
    parsed = parse_row((DATA / "busy-query-gpu.csv").read_text().strip(), RECORDED)
    assert parsed is not None
    gpu, _ = parsed
    assert (gpu.index, gpu.uuid, gpu.name) == (0, UUID, "NVIDIA H200")
    assert (gpu.util_pct, gpu.memory_util_pct) == (100, 75)
    assert (gpu.memory_used_bytes, gpu.memory_total_bytes) == (131014 * MIB, 143771 * MIB)
    assert (gpu.temperature_c, gpu.power_w, gpu.power_limit_w) == (45, 436.09, 700)
    assert (gpu.sm_clock_mhz, gpu.memory_clock_mhz, gpu.pstate) == (1980, 3201, "P0")
    assert (gpu.ecc_uncorrected, gpu.mig, gpu.lost) == (0, False, False)
    assert gpu.throttle is None  # not asked for


def test_rows_with_units_read_the_same() -> None:
    line = (DATA / "query-gpu-header-units.csv").read_text().splitlines()[1]
    with_units, plain = parse_row(line, RECORDED), parse_row(line.replace(" MiB", "").replace(" %", ""), RECORDED)
    assert with_units == plain
    assert with_units is not None


def test_a_whole_start_of_a_server_reads_row_by_row() -> None:
    """Every recorded row against a reading of the same file by columns, made independently of the parser."""
    text = (DATA / "gpu_lms500-spec1.csv").read_bytes()
    stream = QueryStream(("timestamp", *RECORDED))
    ticks = [tick for tick in stream.feed(text) + stream.finish() if isinstance(tick, GpuTick)]
    rows = [line.split(", ") for line in text.decode().splitlines()]
    assert len(ticks) == len(rows) == 271
    assert [tick.gpus[0].util_pct for tick in ticks] == [float(row[4]) for row in rows]
    assert [tick.gpus[0].memory_used_bytes for tick in ticks] == [int(row[6]) * MIB for row in rows]
    assert [tick.gpus[0].power_w for tick in ticks] == [float(row[9]) for row in rows]
    assert stream.strange_lines == 0


def row(index: int, count: int = 8, **changed: str) -> str:
    cells = {
        "count": str(count), "index": str(index), "uuid": f"GPU-{index}", "pci.bus_id": f"00000000:{index:02X}:00.0",
        "name": "NVIDIA H200", "utilization.gpu": "97", "utilization.memory": "41", "memory.used": "92160",
        "memory.total": "143771", "temperature.gpu": "64", "temperature.memory": "71", "power.draw": "512.30",
        "power.limit": "700.00", "clocks.sm": "1980", "clocks.max.sm": "1980", "clocks.mem": "3201", "pstate": "P0",
        "clocks_throttle_reasons.active": "0x0000000000000000", "ecc.errors.uncorrected.volatile.total": "0",
        "mig.mode.current": "Disabled",
    }  # fmt: skip
    cells |= {key.replace("__", "."): value for key, value in changed.items()}
    return ", ".join(cells[field] for field in FIELDS) + "\n"


EIGHT = "".join(row(index) for index in range(8)).encode()


@settings(max_examples=60, deadline=None)
@given(cuts=st.lists(st.integers(min_value=1, max_value=400), max_size=40))
def test_chunks_cut_anywhere_give_the_same_ticks(cuts: list[int]) -> None:
    data, whole = EIGHT * 3, QueryStream().feed(EIGHT * 3)
    stream, found, at = QueryStream(), [], 0
    for cut in cuts:
        found += stream.feed(data[at : at + cut])
        at += cut
    found += stream.feed(data[at:])
    assert found == whole
    assert [len(tick.gpus) for tick in found if isinstance(tick, GpuTick)] == [8, 8, 8]


def test_a_tick_is_complete_as_soon_as_its_last_row_is_there() -> None:
    stream = QueryStream()
    assert stream.feed(EIGHT[:-1]) == []
    (tick,) = stream.feed(b"\n")
    assert isinstance(tick, GpuTick)
    assert tick.complete


def test_a_gpu_that_is_not_listed_any_more_leaves_an_incomplete_tick() -> None:
    stream = QueryStream()
    seven = "".join(row(index) for index in range(8) if index != 5).encode()
    found = stream.feed(seven + EIGHT)
    assert [(len(t.gpus), t.complete) for t in found if isinstance(t, GpuTick)] == [(7, False), (8, True)]


def test_a_lost_gpu_that_is_still_listed_is_lost_and_has_no_figures() -> None:
    lost = dict.fromkeys(
        ("utilization.gpu", "utilization.memory", "memory.used", "temperature.gpu", "power.draw"), "[GPU is lost]"
    )
    parsed = parse_row(row(3, **lost).strip())
    assert parsed is not None
    assert parsed[0].lost
    assert parsed[0].util_pct is None
    assert parsed[0].memory_used_bytes is None


@pytest.mark.parametrize("missing", ["[N/A]", "[Not Supported]", "[No data]", "[Unknown Error]", "[Not Found]", "N/A"])
def test_missing_values_are_none_and_never_zero(missing: str) -> None:
    parsed = parse_row(row(0, **{"utilization.gpu": missing, "power.limit": missing, "pstate": missing}).strip())
    assert parsed is not None
    assert (parsed[0].util_pct, parsed[0].power_limit_w, parsed[0].pstate) == (None, None, None)
    assert not parsed[0].lost


def test_throttle_reasons_leave_idling_out() -> None:
    assert throttle_reasons("0x0000000000000001") == ()
    assert throttle_reasons("0x0000000000000004") == ("power-cap",)
    assert throttle_reasons("0x00000000000000E8") == ("hw-slowdown", "thermal", "hw-thermal", "power-brake")
    assert throttle_reasons("[N/A]") is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system", "device-lost"),
        ("Unable to determine the device handle for GPU0000:07:00.0: Unknown Error", "device-lost"),
        ("Failed to initialize NVML: Driver/library version mismatch", "version-mismatch"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "driver-not-running"),
        ("Failed to initialize NVML: Unknown Error", "no-permission"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "library-missing"),
        ("No devices were found", "no-devices"),
    ],
)
def test_errors_are_said_in_one_line(line: str, kind: str) -> None:
    found = QueryStream().feed(line.encode() + b"\n")
    assert [item.kind for item in found if isinstance(item, ToolTrouble)] == [kind]
    assert "\n" not in str(found[0])


def test_the_lost_gpus_address_is_found() -> None:
    trouble = explain("Unable to determine the device handle for GPU0000:07:00.0: Unknown Error")
    assert trouble is not None
    assert trouble.bus_id == "0000:07:00.0"


def test_a_field_that_the_driver_does_not_know_is_named() -> None:
    assert bad_field((DATA / "bad-field.txt").read_text()) == "nosuchfield"
    assert explain((DATA / "bad-index.txt").read_text().strip()) is not None


def test_hostile_bytes_and_endless_lines_do_not_get_through() -> None:
    stream = QueryStream()
    found = stream.feed(b"x" * 100_000 + b"\n\xff\xfe\x00\n" + row(0, count=1, name="\x1b]52;c;eA==\x07H200").encode())
    assert [type(item) for item in found] == [GpuTick]
    (tick,) = found
    assert isinstance(tick, GpuTick)
    assert tick.gpus[0].name.isprintable()


def test_argv_is_one_stream() -> None:
    argv = query_argv("nvidia-smi", every_s=2, only=("GPU-1", "GPU-2"))
    assert argv[2:] == ["--format=csv,noheader,nounits", "-i", "GPU-1,GPU-2", "-l", "2"]


@pytest.mark.parametrize("name", ["smoke", "base2", "spec1", "spec2"])
def test_every_recorded_answer_of_the_compute_apps_query(name: str) -> None:
    for line in (DATA / f"compute_apps-{name}.tsv").read_text().splitlines():
        answer = ast.literal_eval(line.split("\t")[2])
        processes = parse_compute_apps(answer)
        assert len(processes) == len([part for part in answer.split("\n") if part])
        for process, text in zip(processes, answer.split("\n"), strict=False):
            uuid, pid, title, used = text.split(", ")
            assert process.gpu_uuid == uuid == UUID
            assert process.used_bytes == int(used) * MIB
            assert process.pid == int(pid)
            assert process.name == (None if title.startswith("[") else title)


def test_compute_apps_that_can_not_be_told() -> None:
    text = f"{UUID}, 4242, [Not Found], [N/A]\n{UUID}, [N/A], [Insufficient Permissions], 812\nNo devices were found\n"
    hidden, no_pid = parse_compute_apps(text)
    assert (hidden.pid, hidden.name, hidden.used_bytes) == (4242, None, None)
    assert (no_pid.pid, no_pid.name, no_pid.used_bytes) == (None, None, 812 * MIB)
    (comma,) = parse_compute_apps(f"{UUID}, 7, python3 -c a, b, 14\n")
    assert (comma.name, comma.used_bytes) == ("python3 -c a, b", 14 * MIB)


def test_topology_as_recorded_with_its_underlined_header() -> None:
    topology = parse_topology((DATA / "topo.txt").read_text())
    assert topology is not None
    assert topology.names == ("GPU0",)
    assert topology.links == (("X",),)
    assert (topology.cpu_affinity, topology.numa_affinity) == (("0-15",), ("0",))


def test_topology_of_eight_gpus_with_nics() -> None:
    """Shape as in public reports of 8-GPU boxes: two sockets, NICs below the GPUs without affinities."""
    names = [f"GPU{index}" for index in range(8)] + ["NIC0", "NIC1"]
    lines = ["\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID"]
    for row_name in names:
        gpu = row_name.startswith("GPU")
        cells = [" X " if row_name == n else "NV18" if gpu and n.startswith("GPU") else "SYS" for n in names]
        node = (
            "" if not gpu else ("\t0-55,112-167\t0\t\tN/A" if int(row_name[3:]) < 4 else "\t56-111,168-223\t1\t\tN/A")
        )
        lines.append(row_name + "\t" + "\t".join(cells) + node)
    topology = parse_topology("\n".join([*lines, "", "Legend:", "", "  X    = Self"]))
    assert topology is not None
    assert topology.between(0, 7) == "NV18"
    assert topology.between(0, 99) is None
    assert topology.numa_affinity[:8] == ("0",) * 4 + ("1",) * 4
    assert topology.numa_affinity[8] is None
    assert topology.links[8][0] == "SYS"


def test_nvlinks_count_the_inactive_ones() -> None:
    text = "GPU 3: Tesla V100-SXM2-32GB (UUID: GPU-x)\n" + "".join(
        f"\t Link {link}: {'<inactive>' if link in (3, 5) else '25.781 GB/s'}\n" for link in range(6)
    )
    (state,) = parse_nvlink_status(text + "GPU 4: Tesla V100-PCIE (UUID: GPU-y)\n")
    assert (state.gpu_index, state.active, state.inactive, state.gb_s_each) == (3, 4, 2, 25.781)


def test_mig_devices_get_their_memory_and_their_names() -> None:
    """The table is from a public report (A100 40 GB, driver 470)."""
    listing = (
        "GPU 1: A100-PCIE-40GB (UUID: GPU-b)\n"
        "  MIG 3g.20gb      Device  0: (UUID: MIG-1)\n"
        "  MIG 2g.10gb      Device  1: (UUID: MIG-2)\n"
    )
    table = (
        "|  1    3   0   0  |  14366MiB / 19968MiB | 28      0 |  2   0    1    0    0 |\n"
        "|                  |      4MiB / 32767MiB |           |                       |\n"
        "|  1    5   0   1  |   9826MiB / 19968MiB | 28      0 |  2   0    1    0    0 |\n"
    )
    gpus, named = parse_gpu_list(listing)
    assert gpus == {1: "GPU-b"}
    first, second = parse_mig_table(table, named)
    assert (first.profile, first.uuid, first.gpu_instance, first.memory_used_bytes) == (
        "3g.20gb",
        "MIG-1",
        3,
        14366 * MIB,
    )
    assert (second.device, second.memory_total_bytes) == (1, 19968 * MIB)
    assert parse_gpu_list((DATA / "L.txt").read_text())[0] == {0: UUID}


X2 = DATA / "h200-x2"
ALL_FIELDS = (
    "count", "index", "uuid", "pci.bus_id", "name", "utilization.gpu", "utilization.memory", "memory.used",
    "memory.total", "temperature.gpu", "temperature.memory", "power.draw", "power.limit", "clocks.sm",
    "clocks.max.sm", "clocks.mem", "pstate", "clocks_throttle_reasons.active",
    "ecc.errors.uncorrected.volatile.total", "mig.mode.current",
)  # fmt: skip


def test_two_real_gpus_one_held_down_by_its_power_limit() -> None:
    (tick,) = QueryStream(ALL_FIELDS).feed((X2 / "query-gpu-busy.csv").read_bytes())
    assert isinstance(tick, GpuTick)
    busy, idle = tick.gpus
    assert tick.complete
    assert (busy.util_pct, busy.memory_util_pct, busy.power_w, busy.sm_clock_mhz) == (100, 30, 617.87, 1740)
    assert (busy.throttle, idle.throttle) == (("power-cap",), ())
    assert (busy.bus_id, idle.bus_id) == ("00000000:00:06.0", "00000000:00:07.0")
    processes = parse_compute_apps((X2 / "compute-apps.csv").read_text())
    assert [(p.pid, (p.used_bytes or 0) // MIB) for p in processes] == [(595, 21572), (640, 5768)]
    assert {p.gpu_uuid for p in processes} == {busy.uuid, idle.uuid}


def test_a_real_stream_of_two_gpus() -> None:
    ticks = QueryStream(ALL_FIELDS).feed((X2 / "stream.csv").read_bytes())
    assert [len(tick.gpus) for tick in ticks if isinstance(tick, GpuTick)] == [2] * 5


def test_real_links_of_two_gpus() -> None:
    topology = parse_topology((X2 / "topo.txt").read_text())
    assert topology is not None
    assert topology.links == (("X", "NV18"), ("NV18", "X"))
    assert topology.numa_affinity == ("0", "0")
    states = parse_nvlink_status((X2 / "nvlink.txt").read_text())
    assert [(s.gpu_index, s.active, s.inactive, s.gb_s_each) for s in states] == [
        (0, 18, 0, 26.562),
        (1, 18, 0, 26.562),
    ]


def test_a_healthy_drivers_kernel_messages_are_no_faults() -> None:
    assert parse_kernel_log((X2 / "dmesg.txt").read_text()) == ()


def test_what_another_query_told_completes_a_sample() -> None:
    (full,) = QueryStream(ALL_FIELDS).feed((X2 / "query-gpu-busy.csv").read_bytes())
    assert isinstance(full, GpuTick)
    bare = replace(full.gpus[0], bus_id=None, power_limit_w=None, sm_clock_max_mhz=None, mig=None)
    assert with_steady(bare, full.gpus[0]) == full.gpus[0]
    assert with_steady(bare, None) == bare
    lowered = replace(full.gpus[0], power_limit_w=400.0)
    assert with_steady(lowered, full.gpus[0]).power_limit_w == 400
