"""All spools together stay within a limit."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from specconsole.services.spool_room import make_room


def spool(root: Path, name: str, size_bytes: int, used_at_s: float) -> Path:
    folder = root / "local" / name
    folder.mkdir(parents=True)
    (folder / "log").write_bytes(b"x" * size_bytes)
    (folder / "checkpoint.json").write_text("{}")
    os.utime(folder / "checkpoint.json", (used_at_s, used_at_s))
    return folder


def test_the_oldest_go_until_the_rest_fits_and_an_open_one_stays(tmp_path: Path) -> None:
    oldest, old, new = (spool(tmp_path, name, 400_000, at) for name, at in (("a", 1.0), ("b", 2.0), ("c", 3.0)))
    assert make_room(tmp_path, 10**9) == 0
    fd = os.open(oldest / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    freed = make_room(tmp_path, 900_000)
    os.close(fd)
    assert freed >= 400_000
    assert (oldest.exists(), old.exists(), new.exists()) == (True, False, True)
    assert make_room(tmp_path, 500_000) >= 400_000
    assert (oldest.exists(), new.exists()) == (False, True)


def test_no_spools_at_all(tmp_path: Path) -> None:
    assert make_room(tmp_path / "none") == 0
