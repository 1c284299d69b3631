"""Who still carries the mark of a launch on this machine: read from /proc, with nothing else of the console."""

from __future__ import annotations

import os
from pathlib import Path


def processes_marked(launch_id: str) -> list[int]:
    """Pids whose environment holds SPECCONSOLE_LAUNCH=`launch_id`, as far as this account may look."""
    mark = b"SPECCONSOLE_LAUNCH=" + launch_id.encode()
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                if mark in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                    found.append(int(name))
            except OSError:
                continue
    return sorted(found)
