"""What is kept of GPUs over time, the facts drawn from it for a stall, and how often hosts are asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specconsole.core.hardware.evidence import gpu_evidence, loading_text, stall_evidence
from specconsole.core.hardware.gpu import GpuFacts, GpuProcess, GpuSample, GpuTick, MigDevice, NvlinkState, Topology
from specconsole.core.hardware.gpu_owners import KnownLaunch, Owner, Owners
from specconsole.core.hardware.gpu_picture import GpuPicture
from specconsole.core.hardware.host import CpuTimes, DiskCounters, HostCounters
from specconsole.core.hardware.host_picture import SHM, HostPicture
from specconsole.core.hardware.kernel_log import GpuFault
from specconsole.core.hardware.mounts import Filesystem, Mount
from specconsole.core.hardware.nvidia_query import QueryStream
from specconsole.core.hardware.pace import Pace, gpu_interval_s
from specconsole.core.views.host import DiskView, GpuProcessView, GpuView, HostView, ThrottleSpan

DATA = Path(__file__).parents[2] / "data" / "nvidia"
GIB = 1 << 30


def sample(index: int = 0, **changed: object) -> GpuSample:
    base = GpuSample(
        index, f"GPU-{index}", "NVIDIA H200", f"00000000:{index + 16:02X}:00.0", 50.0, 20.0, 10 * GIB, 140 * GIB
    )
    return replace(base, **changed)  # type: ignore[arg-type]  # fields by name


def test_a_gpu_that_vanishes_keeps_its_place_and_its_history() -> None:
    picture = GpuPicture()
    for second in range(60):
        gpus = (sample(0), sample(1)) if second < 30 else (sample(0),)
        picture.saw_tick(GpuTick(gpus, complete=second < 30), float(second))
    first, second_gpu = picture.views(60.0)
    assert (first.lost, second_gpu.lost) == (False, True)
    assert second_gpu.util_pct is None
    assert second_gpu.memory_total_bytes == 140 * GIB
    assert 50.0 in second_gpu.util_history_pct
    assert second_gpu.util_history_pct[-1] is None
    picture.saw_tick(GpuTick((sample(0), sample(1))), 61.0)
    assert not picture.views(61.0)[1].lost
    picture.saw_lost("0000:10:00.0")
    assert picture.views(61.0)[0].lost


def test_throttling_is_kept_as_spans_of_ten_minutes() -> None:
    picture = GpuPicture()
    for second in range(1000):
        reasons = ("power-cap",) if 100 <= second < 200 or 900 <= second < 950 or second >= 990 else ()
        picture.saw_tick(GpuTick((sample(0, throttle=reasons),)), float(second))
    (view,) = picture.views(1000.0)
    assert view.throttle == ("power-cap",)
    assert view.throttle_history == (
        ThrottleSpan(("power-cap",), 900.0, 950.0),
        ThrottleSpan(("power-cap",), 990.0, None),
    )


def test_facts_and_faults_stand_with_their_gpu() -> None:
    picture = GpuPicture()
    picture.saw_tick(GpuTick((sample(0, mig=True), sample(1))), 1.0)
    picture.saw_facts(
        GpuFacts(
            topology=Topology(
                ("GPU0", "GPU1", "NIC0"),
                (("X", "NV18", "PIX"), ("NV18", "X", "SYS"), ("PIX", "SYS", "X")),
                ("0-15", "16-31", None),
                ("0", "1", None),
            ),
            nvlinks=(NvlinkState(1, 16, 2, 26.562),),
            mig_devices=(MigDevice(0, 0, 3, 0, "3g.71gb", "MIG-1", 14 * GIB, 69 * GIB),),
        )
    )
    picture.saw_faults([GpuFault("0000:11:00", 500.0, 79, "Xid 79: the GPU has fallen off the bus", True)])
    first, second = picture.views(1.0, uptime_s=680.0)
    assert picture.links() == (("X", "NV18"), ("NV18", "X"))
    assert (first.numa_node, second.numa_node) == ("0", "1")
    assert second.nvlink == "16 NVLinks up, 26.6 GB/s each, 2 inactive"
    assert first.mig_devices == ("0: 3g.71gb 14.0/69.0 GiB",)
    assert second.faults == ("Xid 79: the GPU has fallen off the bus, 3 min ago",)
    assert first.faults == ()


def test_a_process_in_a_mig_device_stands_with_its_gpu() -> None:
    picture = GpuPicture()
    picture.saw_tick(GpuTick((sample(0, mig=True), sample(1))), 1.0)
    picture.saw_facts(GpuFacts(mig_devices=(MigDevice(0, 0, 3, 0, "3g.71gb", "MIG-1", GIB, 69 * GIB),)))
    picture.saw_processes([GpuProcess("MIG-1", 5, "a", GIB), GpuProcess("MIG-9", 6, "b", GIB)], Owners({}))
    assert [len(view.processes) for view in picture.views(1.0)] == [1, 0]


def test_the_largest_holder_comes_first_and_hidden_memory_is_said() -> None:
    picture = GpuPicture()
    picture.saw_tick(GpuTick((sample(0, memory_used_bytes=90 * GIB),)), 1.0)
    picture.saw_processes(
        [GpuProcess("GPU-0", 5, "a", GIB), GpuProcess("GPU-0", 6, "sglang::scheduler_TP0", 60 * GIB)],
        Owners({6: Owner(6, command="sglang::scheduler_TP0", launch_id="L1", environ_seen=True)}, in_container=True),
    )
    (view,) = picture.views(1.0, [KnownLaunch("L1", "eagle3")])
    assert [process.pid for process in view.processes] == [6, 5]
    assert view.processes[0].label == "eagle3, TP0"
    assert view.hidden == "29 GiB held in another container (process ids are hidden here)"


def test_a_hosts_fields_name_the_disk_of_the_watched_path() -> None:
    picture = HostPicture()
    mounts = {
        "/data": Mount("/data", "259:1", "ext4", "/dev/nvme1n1"),
        "/nfs": Mount("/nfs", "0:50", "nfs4", "filer:/m"),
    }
    for uptime_s, read in ((10.0, 0), (12.0, 4 * GIB)):
        disks = {"nvme0n1": DiskCounters(7, 7, "259:0"), "nvme1n1": DiskCounters(read, 0, "259:1")}
        cpu = CpuTimes(uptime_s, 0, uptime_s * 10)
        picture.saw_counters(HostCounters(uptime_s=uptime_s, cpu=cpu, disks=disks, memory_total_bytes=8 * GIB,
                                          memory_available_bytes=GIB), mounts)  # fmt: skip
    assert (picture.fields(12.0)["disk_name"], picture.fields(12.0)["disk_read_bytes_s"]) == ("all disks", 2 * GIB)
    asked = [SHM, "/data/model", "/nfs/model"]
    picture.saw_filesystems(
        asked,
        [
            Filesystem("tmpfs", SHM, 100, 40, 60),
            Filesystem("/dev/nvme1n1", "/data", 100, 1, 99),
            Filesystem("f", "/nfs", 9, 1, 8),
        ],
    )
    fields = picture.fields(12.0)
    assert (fields["disk_name"], fields["disk_read_bytes_s"]) == ("nvme1n1", 2 * GIB)
    assert (fields["shm_used_bytes"], fields["shm_total_bytes"]) == (40, 100)
    data, nfs = fields["disks"]
    assert (data.disk, data.read_bytes_s, nfs.over_network, nfs.disk) == ("nvme1n1", 2 * GIB, True, None)
    picture.saw_filesystems(asked, [Filesystem("/dev/nvme1n1", "/data", 100, 1, 99)])  # the others are gone
    assert [disk.path for disk in picture.fields(12.0)["disks"]] == ["/data/model"]


def test_a_note_is_said_once_and_taken_back() -> None:
    picture = HostPicture()
    picture.note("df", "df does not answer")
    picture.note("df", "df does not answer")
    assert picture.fields(1.0)["hardware_notes"] == ("df does not answer",)
    picture.note("df", "")
    assert picture.fields(1.0)["hardware_notes"] == ()


def gpu(index: int, util: float, traffic: float = 40.0, **changed: object) -> GpuView:
    view = GpuView(
        index,
        "NVIDIA H200",
        util_history_pct=(util,) * 120,
        memory_util_history_pct=(traffic,) * 120,
        processes=(GpuProcessView(1, 1, None, None, None, "L1", ""),),
    )
    return replace(view, **changed)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("gpus", "kinds"),
    [
        ([gpu(i, 0.0, 0.0) for i in range(8)], ["all-idle"]),
        ([gpu(i, 100.0, 0.0) for i in range(8)], ["spinning"]),
        ([gpu(i, 100.0, 0.0) for i in range(7)] + [gpu(7, 0.0, 0.0)], ["one-different"]),
        ([gpu(i, 3.0) for i in range(7)] + [gpu(7, 100.0)], ["one-different"]),
        ([gpu(i, 97.0) for i in range(8)], []),
        ([gpu(0, 97.0), gpu(1, 10.0), gpu(2, 50.0)], []),
        ([gpu(0, 97.0), gpu(1, 0.0, lost=True)], ["gpu-lost"]),
        ([gpu(0, 97.0, faults=("Xid 79: off the bus",))], ["gpu-fault"]),
        ([gpu(0, 0.0, util_history_pct=(None,) * 118 + (0.0, 0.0))], []),
    ],
)
def test_facts_about_a_silence(gpus: list[GpuView], kinds: list[str]) -> None:
    assert [fact.kind for fact in gpu_evidence(gpus)] == kinds


def test_evidence_is_of_the_launchs_own_gpus() -> None:
    foreign = gpu(1, 0.0, 0.0, processes=())
    host = HostView("gpu-a", "up", gpus=(gpu(0, 97.0), foreign))
    assert stall_evidence(host, "L1") == ()
    idle = replace(host, gpus=(gpu(0, 0.0, 0.0), gpu(1, 97.0, processes=())))
    assert stall_evidence(idle, "L1")[0].text == "0 % on the GPU for 60 s or more"
    waits = stall_evidence(replace(host, gpus=(*(gpu(i, 100.0, 0.0) for i in range(3)), gpu(3, 0.0, 0.0))), "L1")
    assert waits[0].text == "GPU 3 at 0 % while the others are at 100 to 100 % (they wait for it)"


def test_where_weights_come_from() -> None:
    nvme = DiskView("/data/m", "/data", 9, 1, 8, "nvme1n1", read_bytes_s=2.1e9)
    nfs = DiskView("/nfs/m", "/nfs", 9, 1, 8, None, over_network=True)
    host = HostView(
        "gpu-a", "up", disks=(nvme, nfs), network_rx_bytes_s=1.2e9, disk_read_bytes_s=0.0, disk_name="all disks"
    )
    assert loading_text(host, "/data/m") == "reads 2.1 GB/s from nvme1n1 (cold)"
    assert loading_text(host, "/nfs/m") == "on a network file system; the host receives 1.2 GB/s"
    assert loading_text(host, None) == "no reads from all disks: warm in the page cache, or nothing moves"
    assert loading_text(HostView("gpu-a", "up"), "/data/m") == ""


def test_a_recorded_start_shows_why_zero_percent_is_no_verdict() -> None:
    """An H200 loading a model: idle by every figure for long stretches while the start went on."""
    fields = ("timestamp", "index", "uuid", "name", "utilization.gpu", "utilization.memory", "memory.used",
              "memory.total", "temperature.gpu", "power.draw", "power.limit", "clocks.sm", "clocks.mem", "fan.speed",
              "pstate", "ecc.errors.uncorrected.volatile.total", "mig.mode.current")  # fmt: skip
    picture = GpuPicture()
    idle = 0
    for number, tick in enumerate(QueryStream(fields).feed((DATA / "gpu_lms500-spec1.csv").read_bytes())):
        assert isinstance(tick, GpuTick)
        picture.saw_tick(tick, number * 0.5)
        facts = gpu_evidence(picture.views(number * 0.5), window_s=10.0)
        idle += any(fact.kind == "all-idle" for fact in facts)
    (view,) = picture.views(135.0)
    assert idle > 0
    assert max(value for value in view.util_history_pct if value is not None) > 40


def test_pauses_double_and_start_anew() -> None:
    pace = Pace(least_s=2, most_s=10)
    assert [pace.badly() for _ in range(4)] == [2, 4, 8, 10]
    pace.well()
    assert pace.badly() == 2


def test_more_hosts_are_asked_seldomer() -> None:
    assert [gpu_interval_s(hosts) for hosts in (1, 10, 11, 33, 64, 65)] == [1, 1, 2, 3, 3, 5]
