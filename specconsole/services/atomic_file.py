"""Replaces a small file of the console's own: the old one or the new one, at whatever moment it is killed."""

from __future__ import annotations

import os
from pathlib import Path

from specconsole.errors import SpecconsoleError


def replace_file(path: Path, data: bytes) -> None:
    """Mode 0600. Not flushed to the disk: a crash of the machine may lose it, a crash of the console can't."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        raise SpecconsoleError(
            f"can't be written: {error.strerror}", where=str(path), try_="check owner, mode and free space"
        ) from error
