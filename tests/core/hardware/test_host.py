"""/proc and cgroup parsers: a recording of the sampling shell, and files of machines that were not at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from specconsole.core.hardware.host import CpuTimes, DiskCounters, HostCounters, figures, rate
from specconsole.core.hardware.mounts import disk_of, parse_df, parse_mountinfo, whole_disks
from specconsole.core.hardware.proc_frames import (
    FrameReader,
    counters,
    parse_cgroup_memory,
    parse_cpu_list,
    parse_cpu_quota,
)
from specconsole.core.hardware.series import BUCKETS, History

DATA = Path(__file__).parents[2] / "data" / "proc"
GIB = 1 << 30


def test_the_recorded_shell_gives_its_rounds_however_it_is_cut() -> None:
    data = (DATA / "frames.txt").read_bytes()
    whole, cut = FrameReader(), FrameReader()
    rounds = whole.feed(data)
    pieces = [piece for at in range(0, len(data), 37) for piece in cut.feed(data[at : at + 37])]
    assert pieces == rounds
    assert len(rounds) == 3
    first, second = (counters(files, whole.once) for files in rounds[:2])
    assert first.uptime_s == 1160.26
    assert second.uptime_s == 1161.26
    assert set(first.cpus) == {0, 1} == set(first.numa[0])
    assert first.network["eth0"] == (125669392, 306408)
    assert first.cgroup is None  # 9223372036854771712 is how cgroup v1 says "no limit"
    assert first.cpu_quota is None
    shown = figures(first, second)
    assert shown.cpu_pct is not None
    assert 0 <= shown.cpu_pct <= 100
    assert shown.cpu_count == 2
    assert shown.numa_pct[0][0] == 0
    assert shown.network_rx_bytes_s == 0


def host(uptime_s: float, busy: float, read_bytes: int, rx: int) -> HostCounters:
    cpus = {0: CpuTimes(busy, 0, uptime_s * 100), 1: CpuTimes(0, 0, uptime_s * 100)}
    return HostCounters(
        uptime_s=uptime_s,
        cpu=CpuTimes(busy, 0, uptime_s * 200),
        cpus=cpus,
        disks={"nvme0n1": DiskCounters(read_bytes, 0, "259:0")},
        network={"eth0": (rx, 0), "lo": (rx * 9, 0), "veth1": (rx, 0)},
        numa={0: frozenset({0}), 1: frozenset({1})},
    )


def test_rates_use_the_hosts_own_time_and_skip_loopback() -> None:
    shown = figures(host(100, 0, 0, 1000), host(102, 200, 4 * GIB, 5000))
    assert shown.cpu_pct == pytest.approx(50)
    assert shown.numa_pct == ((0, 100.0), (1, 0.0))
    assert shown.disk_read_bytes_s == {"nvme0n1": 2 * GIB}
    assert shown.network_rx_bytes_s == 2000


def test_a_counter_that_went_backwards_is_unknown_for_that_step() -> None:
    shown = figures(host(100, 0, 4 * GIB, 5000), host(102, 200, GIB, 1000))
    assert shown.disk_read_bytes_s == {}
    assert shown.network_rx_bytes_s is None
    assert rate(5, 3, 1) is None


def test_after_a_reboot_nothing_of_before_holds() -> None:
    shown = figures(host(100_000, 5, GIB, 5000), host(12, 100, 2 * GIB, 9000))
    assert (shown.cpu_pct, shown.network_rx_bytes_s, shown.numa_pct) == (None, None, ())


def test_the_tightest_cgroup_above_us_counts_and_droppable_cache_does_not() -> None:
    group = "/sys/fs/cgroup/kubepods/pod1"
    files = {
        f"{group}/memory.max": [str(64 * GIB)],
        f"{group}/memory.current": [str(60 * GIB)],
        f"{group}/memory.stat": [f"inactive_file {40 * GIB}"],
        f"{group}/memory.events": ["oom_kill 2"],
        f"{group}/c/memory.max": ["max"],
        "/sys/fs/cgroup/kubepods/memory.max": [str(512 * GIB)],
        f"{group}/cpu.max": ["1600000 100000"],
        "/sys/fs/cgroup/kubepods/cpu.max": ["max 100000"],
    }
    cgroup = parse_cgroup_memory(files)
    assert cgroup is not None
    assert (cgroup.limit_bytes, cgroup.used_bytes, cgroup.oom_kills) == (64 * GIB, 20 * GIB, 2)
    assert parse_cpu_quota(files) == 16
    v1 = {"/sys/fs/cgroup/memory/memory.limit_in_bytes": [str(8 * GIB)]}
    limited = parse_cgroup_memory(v1)
    assert limited is not None
    assert (limited.limit_bytes, limited.used_bytes) == (8 * GIB, None)
    assert (
        parse_cpu_quota({"/sys/fs/cgroup/cpu/cpu.cfs_quota_us": ["-1"], "/sys/fs/cgroup/cpu/cpu.cfs_period_us": ["1"]})
        is None
    )


def test_broken_files_leave_their_part_unknown() -> None:
    shown = counters(
        {
            "/proc/stat": ["cpu  x y"],
            "/proc/meminfo": ["MemTotal:"],
            "/proc/uptime": [""],
            "/proc/diskstats": ["1 2 3"],
        },
        {},
    )
    assert shown == HostCounters()
    old = counters({"/proc/meminfo": ["MemFree: 10 kB", "Cached: 5 kB", "Buffers: 1 kB"]}, {})
    assert old.memory_available_bytes == 16 * 1024


def test_the_disk_under_a_path() -> None:
    mounts = parse_mountinfo(
        [
            "27 1 0:23 / / rw - overlay overlay rw",
            "36 27 259:2 / /data/my\\040models rw,noatime shared:1 - ext4 /dev/nvme1n1p2 rw",
            "37 27 0:50 / /nfs rw - nfs4 filer:/models rw",
            "38 27 0:44 / /b rw - btrfs /dev/sdb1 rw",
        ]
    )
    disks = {
        "nvme1n1": DiskCounters(0, 0, "259:1"),
        "nvme1n1p2": DiskCounters(0, 0, "259:2"),
        "sdb1": DiskCounters(0, 0, "8:17"),
    }
    assert disk_of(mounts["/data/my models"], disks) == "nvme1n1p2"
    assert disk_of(mounts["/b"], disks) == "sdb1"
    assert disk_of(mounts["/nfs"], disks) is None
    assert mounts["/nfs"].over_network
    assert disk_of(mounts["/"], disks) is None
    assert whole_disks(["nvme1n1", "nvme1n1p2", "sdb", "sdb1", "dm-0", "loop3", "md0"]) == ["nvme1n1", "sdb"]


def test_df_rows() -> None:
    text = "Filesystem 1024-blocks Used Available Capacity Mounted on\n" + "tmpfs 100 40 60 40% /dev/shm\n"
    (shm,) = parse_df(text + "df: /gone: No such file or directory\n")
    assert (shm.mount_point, shm.total_bytes, shm.used_bytes, shm.free_bytes) == ("/dev/shm", 102400, 40960, 61440)


def test_cpu_lists() -> None:
    assert parse_cpu_list("0-2,8") == {0, 1, 2, 8}
    assert parse_cpu_list("") == frozenset()
    assert len(parse_cpu_list("0-99999999999")) == 8193


def test_history_keeps_gaps_and_a_fixed_size() -> None:
    history = History()
    for second in range(0, 1200, 1):
        if not 900 <= second < 1000:
            history.add(float(second), float(second % 10))
    values = history.values(1199.0)
    assert len(values) == BUCKETS
    assert values[0] == pytest.approx(2.0)  # mean of 0..4
    assert [index for index, value in enumerate(values) if value is None] == list(range(60, 80))
    assert history.values(1199.0 + 3600) == (None,) * BUCKETS
