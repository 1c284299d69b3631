"""Which journal where: the decision alone, from what the system said."""

from __future__ import annotations

from pathlib import Path

import pytest

from specconsole.adapters.sqlite_store_files import file_system_of, journal_mode_for, mounts_text

MOUNTS = r"""/dev/vda1 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
tmpfs /tmp tmpfs rw 0 0
nas:/export/home /home nfs4 rw,vers=4.2,addr=10.0.0.9 0 0
/dev/sdb1 /home/local xfs rw 0 0
nas:/with\040blank /mnt/with\040blank nfs rw 0 0
//srv/share /mnt/share cifs rw 0 0
10.1.1.1@tcp:/scratch /scratch lustre rw 0 0
me@host:/x /mnt/ssh fuse.sshfs rw 0 0
tmpfs /home/covered tmpfs rw 0 0
nas:/late /home/covered nfs rw 0 0
"""

MACOS = """/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//me@nas/home on /Users/me/net home (smbfs, nodev, nosuid, mounted by me)
"""


@pytest.mark.parametrize(
    ("path", "kind", "mode"),
    [
        ("/var/lib/x", "ext4", "wal"),
        ("/tmp/x", "tmpfs", "wal"),
        ("/tmpfoo", "ext4", "wal"),
        ("/home/me/.local/state", "nfs4", "delete"),
        ("/home", "nfs4", "delete"),
        ("/home/local/me", "xfs", "wal"),
        ("/mnt/with blank/x", "nfs", "delete"),
        ("/mnt/share/x", "cifs", "delete"),
        ("/scratch/x", "lustre", "delete"),
        ("/mnt/ssh/x", "fuse.sshfs", "delete"),
        ("/home/covered/x", "nfs", "delete"),
    ],
)
def test_file_system_and_journal_on_linux(path: str, kind: str, mode: str) -> None:
    assert file_system_of(path, MOUNTS) == kind
    assert journal_mode_for(kind) == mode


def test_file_system_on_macos() -> None:
    assert file_system_of("/Users/me/Library", MACOS) == "apfs"
    assert file_system_of("/Users/me/net home/state", MACOS) == "smbfs"


def test_unknown_is_treated_as_a_network() -> None:
    assert file_system_of("/x", "") is None
    assert file_system_of("/x", "garbage\n\n a b\n") is None
    assert journal_mode_for(None) == "delete"
    assert journal_mode_for("somethingfs") == "delete"


def test_this_systems_mounts_are_understood(tmp_path: Path) -> None:
    kind = file_system_of(str(tmp_path.resolve()), mounts_text())
    assert kind is not None
    assert kind.islower()
