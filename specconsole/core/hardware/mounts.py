"""Which disk a path is on, and how full it is: `df -kP`, mountinfo and diskstats joined."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specconsole.core.hardware.host import DiskCounters
from specconsole.core.hardware.values import clean

_NETWORK_TYPES = frozenset(
    {"nfs", "nfs4", "lustre", "ceph", "beegfs", "cifs", "smb3", "9p", "virtiofs", "gpfs", "wekafs", "glusterfs", "afs"}
)

# `/dev/nvme0n1p1   1031992064  417312320  562182880      43% /data/models` (df -kP; POSIX, one line a file system)
_DF = re.compile(r"^(.*\S)\s+(\d+)\s+(\d+)\s+(-?\d+)\s+(\d+%|-)\s+(/.*)$")


@dataclass(frozen=True, slots=True)
class Filesystem:
    """A mounted file system as `df` counts it."""

    source: str
    mount_point: str
    total_bytes: int
    used_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of mountinfo."""

    mount_point: str
    device_number: str
    kind: str
    source: str

    @property
    def over_network(self) -> bool:
        return self.kind in _NETWORK_TYPES or self.kind.startswith("fuse.")


def parse_df(text: str) -> tuple[Filesystem, ...]:
    """Rows of `df -kP`, in its order; the header and error lines are skipped."""
    found = []
    for line in text.splitlines():
        if match := _DF.match(line):
            source, total, used, free, _, mount_point = match.groups()
            found.append(
                Filesystem(
                    clean(source), clean(mount_point), int(total) * 1024, int(used) * 1024, max(0, int(free)) * 1024
                )
            )
    return tuple(found)


def parse_mountinfo(lines: Sequence[str]) -> dict[str, Mount]:
    """By mount point; a later mount on the same point hides an earlier one.

    `36 35 259:2 / /data rw,noatime shared:1 - ext4 /dev/nvme0n1p2 rw` (proc(5)); blanks are written as `\\040`.
    """
    mounts = {}
    for line in lines:
        left, dash, right = line.partition(" - ")
        before, after = left.split(), right.split()
        if dash and len(before) >= 5 and len(after) >= 2:
            point = clean(_unescape(before[4]))
            mounts[point] = Mount(point, before[2], clean(after[0]), clean(_unescape(after[1])))
    return mounts


def disk_of(mount: Mount | None, disks: Mapping[str, DiskCounters]) -> str | None:
    """The kernel's name of the disk under a mount; None for network and layered file systems."""
    if mount is None or mount.over_network:
        return None
    for name, disk in disks.items():
        if disk.device_number and disk.device_number == mount.device_number:
            return name
    # btrfs and zfs mounts carry an anonymous number; the source still names a device.
    base = mount.source.rpartition("/")[2]
    return base if mount.source.startswith("/dev/") and base in disks else None


def whole_disks(names: Sequence[str]) -> list[str]:
    """Names without partitions and layers, so that a sum counts each byte once."""
    skipped = ("loop", "ram", "zram", "dm-", "md", "sr")
    plain = [name for name in names if not name.startswith(skipped)]
    return [name for name in plain if not any(_is_partition(name, disk) for disk in plain if disk != name)]


def _is_partition(name: str, disk: str) -> bool:
    rest = name[len(disk) :]
    return name.startswith(disk) and (rest.isdigit() or (rest[:1] == "p" and rest[1:].isdigit()))


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)
