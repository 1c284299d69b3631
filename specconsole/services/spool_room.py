"""Keeps all spools together within a limit: the oldest go first, one that a console has open never goes.

A spool is a copy. What is removed here is read again from the host when somebody looks at that launch.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

DEFAULT_LIMIT_BYTES = 10 * 1024**3


def make_room(spools: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> int:
    """Removes the oldest `HOST/LAUNCH` folders until the rest fits; returns the bytes that were given back."""
    folders = [folder for host in _folders(spools) for folder in _folders(host)]
    sizes = {folder: _disk_bytes(folder) for folder in folders}
    over = sum(sizes.values()) - limit_bytes
    freed = 0
    for folder in sorted(folders, key=_last_use):
        if freed >= over:
            break
        if _remove(folder):
            freed += sizes[folder]
    return freed


def _folders(path: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _disk_bytes(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            # Blocks, not length: a spool whose start was given back has a hole.
            total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def _last_use(folder: Path) -> float:
    for name in ("checkpoint.json", "log"):
        with contextlib.suppress(OSError):
            return (folder / name).stat().st_mtime
    return 0.0


def _remove(folder: Path) -> bool:
    """False when a console has it open."""
    try:
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()
    finally:
        os.close(fd)
