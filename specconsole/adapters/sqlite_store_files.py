"""Where the store's file lies and what that allows: its file system, its permissions, the version in its header.

Decisions are pure functions of what the system said, so that network file systems need no network to be tested.
"""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path
from typing import Literal

from specconsole.errors import BadInputError, SpecconsoleError

JournalMode = Literal["wal", "delete"]

_LOCAL = frozenset({
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "reiserfs", "bcachefs", "nilfs2", "tmpfs", "ramfs",
    "rootfs", "overlay", "aufs", "apfs", "hfs", "ufs", "ecryptfs", "fuseblk", "ntfs3", "vfat", "exfat", "msdos",
})  # fmt: skip
"""File systems of one machine. WAL keeps its index in shared memory, which two machines don't share: on anything else
(nfs, nfs4, cifs, smb3, lustre, ceph, glusterfs, beegfs, gpfs, 9p, virtiofs, fuse.sshfs ...), and where the type is not
known, the store uses a rollback journal (SQLite's own documentation of WAL rules out network file systems)."""

_HEADER = struct.Struct(">16s44xI4xI")
_MAGIC = b"SQLite format 3\x00"


def journal_mode_for(file_system: str | None) -> JournalMode:
    """WAL on a file system of this machine alone, a rollback journal elsewhere and where it is unknown (None)."""
    return "wal" if file_system in _LOCAL else "delete"


def file_system_of(path: str, mounts: str) -> str | None:
    """The type of the file system that holds `path` (absolute, symbolic links resolved).

    `mounts` is the text of /proc/mounts (Linux: `device folder type options 0 0`, blanks as \\040) or the output of
    `mount` (macOS: `device on folder (type, options)`). The last mount of the longest folder counts.
    """
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        place = _mount_of(line)
        if place is None:
            continue
        folder, kind = place
        inside = path == folder or path.startswith(folder.rstrip("/") + "/")
        if inside and (found is None or len(folder) >= found[0]):
            found = (len(folder), kind)
    return found[1] if found else None


def _mount_of(line: str) -> tuple[str, str] | None:
    if " on /" in line and line.endswith(")"):
        folder, _, options = line.split(" on ", 1)[1].rpartition(" (")
        return folder, options.rstrip(")").split(",")[0].strip()
    fields = line.split(" ")
    if len(fields) < 3 or not fields[1].startswith("/"):
        return None
    folder = fields[1]
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        folder = folder.replace(code, character)
    return folder, fields[2]


def mounts_text() -> str:
    """What this system says of its mounts; "" where it says nothing."""
    try:
        return Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        pass
    try:
        done = subprocess.run(["/sbin/mount"], capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")


def make_private(path: Path) -> None:
    """Creates the file (0600, its folder 0700) if it is missing, and takes others' rights to an existing one away.

    SQLite gives its journal files the permissions of the database. Raises SpecconsoleError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SpecconsoleError(
            f"the store can't be opened for writing: {error.strerror}",
            where=str(path),
            try_="make the folder writable, or set XDG_STATE_HOME to one that is",
        ) from error


def refuse_foreign(path: Path, *, application_id: int, newest: int) -> None:
    """Looks at the file's header without opening it as a database, so that a store that is not ours, or of a newer
    version, stays exactly as it is. Raises BadInputError."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
    except (FileNotFoundError, NotADirectoryError):
        return  # nothing there to refuse; making it will say what is wrong with the place
    except OSError as error:
        raise BadInputError(error.strerror or "can't be read", where=str(path)) from error
    if not head:
        return
    if len(head) < _HEADER.size or not head.startswith(_MAGIC):
        raise BadInputError("is not a specconsole store", where=str(path), try_="move it away; a new one is made")
    _, version, owner = _HEADER.unpack(head)
    if owner not in (0, application_id):
        raise BadInputError("is another program's database", where=str(path), try_="move it away; a new one is made")
    refuse_newer(path, version, newest)


def refuse_newer(path: Path, version: int, newest: int) -> None:
    if version > newest:
        raise BadInputError(
            f"written by a newer specconsole (schema {version}; this one knows {newest}), left as it is",
            where=str(path),
            try_="update specconsole, or set XDG_STATE_HOME to another folder",
        )
