"""What the Launcher suites start: specs, and a view of a launch that does not go through the launcher."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from specconsole.adapters.process_launcher import ProcessLauncher
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.launching.stopping import StopEvent
from specconsole.ports import Launcher
from tests.contracts.conftest import Host
from tests.support.victims import VICTIM, kill_all, pids_in
from tests.support.waiting import PATIENCE_S, environ_of, is_alive, until

ME = "tester@here"


class Bench:
    """One host with a launcher, and the means to look behind its back."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.launcher: Launcher = ProcessLauncher(host.transport)
        self._victim = host.folder / "victim.py"
        self._logs: list[Path] = []
        self._number = 0
        self.running: list[str] = []
        """Launches that this test has not stopped yet."""

    def spec(self, *argv: str, launch_id: str = "", **more: object) -> LaunchSpec:
        self._number += 1
        launch_id = launch_id or f"20260101-00000{self._number}-{os.urandom(2).hex()}"
        return LaunchSpec(launch_id, "test", "other", argv, owner=ME, **more)  # type: ignore[arg-type]  # field values

    def victim(self, *flags: str, **more: object) -> LaunchSpec:
        """A spec that runs the victim with a Python which every account may run."""
        if not self._victim.exists():
            shutil.copy(VICTIM, self._victim)
            self._victim.chmod(0o644)
        python = sys.executable if self.host.as_root else "/usr/bin/python3"
        return self.spec(python, "-S", "-E", str(self._victim), *flags, **more)

    async def start(self, spec: LaunchSpec, secrets: dict[str, str] | None = None) -> LaunchRecord:
        record = await self.launcher.start(spec, secrets or {})
        self._logs.append(Path(record.log_path))
        self.running.append(record.launch_id)
        return record

    async def start_victim(self, *flags: str, **more: object) -> LaunchRecord:
        """Started, and all of its processes stand."""
        record = await self.start(self.victim(*flags, **more))
        await until(lambda: b'"state": "running"' in log_of(record), what=f"the victim runs: {log_of(record)!r}")
        return record

    async def stop(self, launch_id: str, grace_s: float = 5.0, by: str = ME) -> list[StopEvent]:
        events = [event async for event in self.launcher.stop(launch_id, by=by, at_s=time.time(), grace_s=grace_s)]
        assert events[-1].phase == "finished"
        if launch_id in self.running:
            self.running.remove(launch_id)
        return events

    async def ended(self, launch_id: str) -> LaunchRecord:
        """The record once the wrapper has written the exit status into it."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := await self.launcher.observe(launch_id)) is None or not found.exited:
            assert time.monotonic() < deadline, f"no exit status of {launch_id}: {found}"
            await asyncio.sleep(0.02)
        return found

    def destroy(self) -> None:
        """What a failed test leaves; by pids from the logs, then by the launch's mark."""
        for log in self._logs:
            if log.exists():
                kill_all(log)


@asynccontextmanager
async def bench_on(host: Host) -> AsyncIterator[Bench]:
    bench = Bench(host)
    home = (await host.transport.run_sh('printf %s "$HOME"')).stdout.decode()
    try:
        yield bench
    finally:
        for launch_id in list(bench.running):
            await bench.stop(launch_id, grace_s=0)
        bench.destroy()
        # An account of the lab keeps its home from test to test.
        shutil.rmtree(Path(home) / ".local" / "state" / "specconsole", ignore_errors=True)


def log_of(record: LaunchRecord) -> bytes:
    """The bytes of the server's log, read by ourselves."""
    return Path(record.log_path).read_bytes()


def alive_of(record: LaunchRecord) -> dict[int, str]:
    """Living processes of a victim, by what it says itself."""
    return {pid: role for pid, role in pids_in(log_of(record)).items() if is_alive(pid)}


def mark_of(pid: int) -> str:
    """The launch that a process belongs to by its environment; "" without one."""
    return environ_of(pid).get(b"SPECCONSOLE_LAUNCH", b"").decode()
