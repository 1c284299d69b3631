"""Starts the victim and its innocent neighbour, and knows every process of theirs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.waiting import is_alive, wait_until

VICTIM = Path(__file__).with_name("victim.py")


def victim_argv(*flags: str) -> list[str]:
    """A command line for a launcher under test; `-S -E` start faster and import nothing of ours."""
    return [sys.executable, "-S", "-E", str(VICTIM), *flags]


def said_by(log: bytes) -> list[dict[str, Any]]:
    """What a victim said in its log: whole JSON lines, others passed over."""
    return [json.loads(line) for line in log.split(b"\n")[:-1] if line.startswith(b"{") and line.endswith(b"}")]


def pids_in(log: bytes) -> dict[int, str]:
    """Every process that the log of a victim names, with its role."""
    return {fact["pid"]: fact["role"] for fact in said_by(log)}


class Victim:
    """A victim run by the test itself; what it says is in the file `log`."""

    def __init__(self, folder: Path, *flags: str, environment: dict[str, str] | None = None) -> None:
        self.log = folder / f"victim-{len(list(folder.glob('victim-*')))}.log"
        with self.log.open("wb") as sink:
            self.process = subprocess.Popen(
                victim_argv(*flags),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        wait_until(lambda: b'"state": "running"' in self.log.read_bytes(), what="the victim runs")

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def pids(self) -> dict[int, str]:
        return pids_in(self.log.read_bytes())

    @property
    def port(self) -> int:
        return next(int(fact["port"]) for fact in said_by(self.log.read_bytes()) if "port" in fact)

    def alive(self) -> dict[int, str]:
        """Those of its processes that still run."""
        return {pid: role for pid, role in self.pids.items() if is_alive(pid)}

    def destroy(self) -> None:
        """Ends all of it, main first so that nothing is respawned."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        kill_all(self.log)


def kill_all(log: Path) -> None:
    """KILLs every process that a victim's log names until none runs (one may be respawned meanwhile)."""

    def none_left() -> bool:
        left = [pid for pid in pids_in(log.read_bytes()) if is_alive(pid)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    wait_until(none_left, what=f"the victim of {log} is gone")
