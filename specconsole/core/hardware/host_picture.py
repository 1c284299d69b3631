"""All that is known of a host's hardware, as the fields of its view. Pure: time is an argument."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from specconsole.core.hardware.gpu import GpuFacts
from specconsole.core.hardware.gpu_owners import KnownLaunch
from specconsole.core.hardware.gpu_picture import GpuPicture
from specconsole.core.hardware.host import HostCounters, HostFigures, figures
from specconsole.core.hardware.mounts import Filesystem, Mount, disk_of, whole_disks
from specconsole.core.views.host import DiskView

SHM = "/dev/shm"  # noqa: S108 - read with df, never written


class HostPicture:
    """What the sampler has learned of one host. One writer."""

    def __init__(self) -> None:
        self.gpus = GpuPicture()
        self.gpu_tool = ""
        self.gpu_note = ""
        """Why there are no GPU figures; "" when there are."""
        self.source_note = ""
        self.facts = GpuFacts()
        self._before: HostCounters | None = None
        self._figures = HostFigures()
        self._filesystems: tuple[tuple[str, Filesystem], ...] = ()
        self._mounts: Mapping[str, Mount] = {}
        self._notes: dict[str, str] = {}

    @property
    def uptime_s(self) -> float | None:
        return self._figures.uptime_s

    def saw_counters(self, now: HostCounters, mounts: Mapping[str, Mount]) -> None:
        self._figures = figures(self._before, now)
        self._before, self._mounts = now, mounts

    def saw_filesystems(self, asked: Sequence[str], found: Sequence[Filesystem]) -> None:
        """`found` answers `asked` in its order, as df does; fewer when paths are missing (then matched by mount)."""
        if len(found) == len(asked):
            self._filesystems = tuple(zip(asked, found, strict=True))
        else:
            self._filesystems = tuple((path, fs) for path in asked if (fs := _longest_mount(path, found)) is not None)

    def saw_facts(self, facts: GpuFacts) -> None:
        self.facts = facts
        self.gpus.saw_facts(facts)

    def note(self, about: str, text: str) -> None:
        """Says something once; "" takes it back."""
        if text:
            self._notes[about] = text
        else:
            self._notes.pop(about, None)

    def fields(self, now_s: float, launches: Collection[KnownLaunch] = ()) -> dict[str, Any]:
        """What to replace in the host's view."""
        shown = self._figures
        disks = tuple(self._disk_view(path, fs) for path, fs in self._filesystems)
        read, written, name = self._disk_rates(disks)
        shm = next((disk for disk in disks if disk.path == SHM), None)
        cgroup = shown.cgroup
        limit = cgroup.limit_bytes if cgroup else None
        if limit is not None and shown.memory_total_bytes is not None and limit >= shown.memory_total_bytes:
            limit = None
        return {
            "as_of_s": now_s,
            "gpus": self.gpus.views(now_s, launches, shown.uptime_s),
            "gpu_tool": self.gpu_tool,
            "gpu_driver": self.facts.driver,
            "gpu_as_of_s": self.gpus.as_of_s,
            "gpu_source_note": self.source_note,
            "gpu_links": self.gpus.links(),
            "gpu_note": self.gpu_note,
            "cpu_pct": shown.cpu_pct,
            "cpu_count": shown.cpu_count,
            "cpu_quota": shown.cpu_quota,
            "iowait_pct": shown.iowait_pct,
            "numa_pct": shown.numa_pct,
            "memory_used_bytes": shown.memory_used_bytes,
            "memory_total_bytes": shown.memory_total_bytes,
            "page_cache_bytes": shown.page_cache_bytes,
            "cgroup_memory_used_bytes": cgroup.used_bytes if cgroup and limit is not None else None,
            "cgroup_memory_limit_bytes": limit,
            "oom_kills": cgroup.oom_kills if cgroup else None,
            "shm_used_bytes": shm.used_bytes if shm else None,
            "shm_total_bytes": shm.total_bytes if shm else None,
            "disks": tuple(disk for disk in disks if disk.path != SHM),
            "disk_read_bytes_s": read,
            "disk_written_bytes_s": written,
            "disk_name": name,
            "network_rx_bytes_s": shown.network_rx_bytes_s,
            "network_tx_bytes_s": shown.network_tx_bytes_s,
            "uptime_s": shown.uptime_s,
            "hardware_notes": (*((self.source_note,) if self.source_note else ()), *self._notes.values()),
        }

    def _disk_view(self, path: str, fs: Filesystem) -> DiskView:
        mount = self._mounts.get(fs.mount_point)
        disk = disk_of(mount, self._before.disks if self._before else {})
        return DiskView(
            path=path,
            mount_point=fs.mount_point,
            total_bytes=fs.total_bytes,
            used_bytes=fs.used_bytes,
            free_bytes=fs.free_bytes,
            disk=disk,
            over_network=mount.over_network if mount else False,
            read_bytes_s=self._figures.disk_read_bytes_s.get(disk) if disk else None,
        )

    def _disk_rates(self, disks: Sequence[DiskView]) -> tuple[float | None, float | None, str]:
        reads, writes = self._figures.disk_read_bytes_s, self._figures.disk_written_bytes_s
        for disk in disks:
            if disk.path != SHM and disk.disk is not None and disk.disk in reads:
                return reads[disk.disk], writes.get(disk.disk), disk.disk
        whole = whole_disks(list(reads))
        if not whole:
            return None, None, ""
        return sum(reads[name] for name in whole), sum(writes.get(name, 0.0) for name in whole), "all disks"


def _longest_mount(path: str, found: Sequence[Filesystem]) -> Filesystem | None:
    under = [fs for fs in found if path == fs.mount_point or path.startswith(fs.mount_point.rstrip("/") + "/")]
    return max(under, key=lambda fs: len(fs.mount_point), default=None)
