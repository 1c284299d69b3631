"""CPU, memory, disks and network of a host: one long-lived shell over any Transport, psutil for the own machine."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import psutil

from specconsole.core.hardware.host import CpuTimes, DiskCounters, HostCounters
from specconsole.core.hardware.mounts import Mount, parse_mountinfo
from specconsole.core.hardware.proc_frames import (
    SAMPLER_SH,
    Files,
    FrameReader,
    counters,
    parse_cgroup_memory,
    parse_cpu_list,
    parse_cpu_quota,
)
from specconsole.errors import LinkLostError, RefusedError
from specconsole.ports import Transport


class ShellReadings:
    """One `sh` that prints /proc every so often (a `HostProbe`)."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._mounts: dict[str, Mount] = {}

    async def readings(self, every_s: int) -> AsyncGenerator[HostCounters, None]:
        frames = FrameReader()
        try:
            async with self._transport.stream(["sh", "-c", SAMPLER_SH, "sh", str(every_s)]) as output:
                while data := await output.read():
                    for files in frames.feed(data):
                        yield self._counters(files, frames)
        except RefusedError:
            while True:  # no session channel left: one short command now and then
                yield await self._once()
                await asyncio.sleep(max(10, every_s))
        raise LinkLostError("the sampling shell ended", where=self._transport.host)

    def mounts(self) -> Mapping[str, Mount]:
        return self._mounts

    async def _once(self) -> HostCounters:
        # `sleep stop` fails at once and ends the loop after its first round.
        answer = await self._transport.run_sh(SAMPLER_SH, ["stop"], timeout_s=20.0)
        frames = FrameReader()
        rounds = frames.feed(answer.stdout)
        return self._counters(rounds[0], frames) if rounds else HostCounters()

    def _counters(self, files: Files, frames: FrameReader) -> HostCounters:
        if not self._mounts and "/proc/self/mountinfo" in frames.once:
            self._mounts = parse_mountinfo(frames.once["/proc/self/mountinfo"])
        return counters(files, frames.once)


class PsutilReadings:
    """The own machine, Linux or macOS, without a process at all (a `HostProbe`)."""

    def __init__(self) -> None:
        self._mounts: dict[str, Mount] = {}
        self._cgroup_files: tuple[Path, ...] | None = None
        self._numa: dict[int, frozenset[int]] = {}

    async def readings(self, every_s: int) -> AsyncGenerator[HostCounters, None]:
        while True:
            yield await asyncio.to_thread(self._read)
            await asyncio.sleep(every_s)

    def mounts(self) -> Mapping[str, Mount]:
        return self._mounts

    def _read(self) -> HostCounters:
        if self._cgroup_files is None:
            linux = sys.platform == "linux"
            self._cgroup_files = _cgroup_paths() if linux else ()
            self._numa = _numa_nodes()
            self._mounts = parse_mountinfo(_lines(Path("/proc/self/mountinfo")))
        numbers = {line.split()[2]: ":".join(line.split()[:2]) for line in _lines(Path("/proc/diskstats"))}
        memory = psutil.virtual_memory()
        files = {str(path): _lines(path) for path in self._cgroup_files}
        disks = psutil.disk_io_counters(perdisk=True, nowrap=False) or {}
        return HostCounters(
            uptime_s=time.time() - psutil.boot_time(),
            cpu=_cpu(psutil.cpu_times()),
            cpus={index: _cpu(times) for index, times in enumerate(psutil.cpu_times(percpu=True))},
            memory_total_bytes=memory.total,
            memory_available_bytes=memory.available,
            page_cache_bytes=getattr(memory, "cached", None),
            cgroup=parse_cgroup_memory(files),
            cpu_quota=parse_cpu_quota(files),
            disks={
                name: DiskCounters(io.read_bytes, io.write_bytes, numbers.get(name, "")) for name, io in disks.items()
            },
            network={
                name: (io.bytes_recv, io.bytes_sent)
                for name, io in psutil.net_io_counters(pernic=True, nowrap=False).items()
            },
            numa=self._numa,
        )


def _cpu(times: object) -> CpuTimes:
    # Guest time is part of user time; macOS has no iowait.
    fields = ("user", "nice", "system", "irq", "softirq", "steal")
    busy = sum(float(getattr(times, field, 0.0)) for field in fields)
    iowait = float(getattr(times, "iowait", 0.0))
    return CpuTimes(busy, iowait, busy + iowait + float(getattr(times, "idle", 0.0)))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _numa_nodes() -> dict[int, frozenset[int]]:
    nodes = Path("/sys/devices/system/node")
    found = {}
    for folder in nodes.glob("node[0-9]*") if nodes.is_dir() else ():
        lines = _lines(folder / "cpulist")
        if lines:
            found[int(folder.name.removeprefix("node"))] = parse_cpu_list(lines[0])
    return found


def _cgroup_paths() -> tuple[Path, ...]:
    """The same files that the sampling shell reads: every group from our own up to the root."""
    groups = {"memory": Path("/sys/fs/cgroup/memory"), "": Path("/sys/fs/cgroup")}
    names = ("memory.max", "memory.current", "memory.limit_in_bytes", "memory.usage_in_bytes", "cpu.max",
             "memory.stat", "memory.events", "memory.oom_control")  # fmt: skip
    found = []
    for line in _lines(Path("/proc/self/cgroup")):
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        root = groups.get("memory" if "memory" in controllers.split(",") else controllers)
        if root is None or ".." in group:
            continue
        folder = root / group.lstrip("/")
        for level in (folder, *folder.parents):
            if level == root.parent:
                break
            found += [level / name for name in names if (level / name).is_file()]
    found += [path for name in ("cfs_quota_us", "cfs_period_us")
              if (path := Path(f"/sys/fs/cgroup/cpu/cpu.{name}")).is_file()]  # fmt: skip
    return tuple(found)
