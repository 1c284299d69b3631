"""What a test leaves behind: processes, listening ports, files outside its own folder.

Every process that a test starts inherits `SPECCONSOLE_TEST_RUN` (an sshd of ours hands it on with SetEnv), so it
can be told from everybody else's whatever it forked and whatever it calls itself.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.waiting import all_pids, environ_of, is_alive

RUN_VARIABLE = "SPECCONSOLE_TEST_RUN"
WORKER_VARIABLE = "SPECCONSOLE_TEST_WORKER"
LAUNCH_VARIABLE = b"SPECCONSOLE_LAUNCH"
ALONE_VARIABLE = "SPECCONSOLE_TEST_ALONE"
"""Set where nobody else works on this machine (CI): every new file in /tmp, the real home or the checkout is ours.

Elsewhere it may be anybody's, and TMPDIR, HOME and the XDG folders keep ours in the test's own folder.
"""

REPOSITORY = Path(__file__).resolve().parents[2]
GRACE_S = 10.0
"""How long a process may take to end after its test: killed, but not yet gone."""
CACHES = {".git", ".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache",
          ".pytest_cache", ".benchmarks", "specconsole.egg-info"}  # fmt: skip

_kept: set[int] = set()


def mark_this_run() -> str:
    """Names this run in our own environment, for all that we start to inherit.

    Each worker of a parallel run is a run of its own: what another one starts is none of its tests' doing.
    """
    if os.environ.get("PYTEST_XDIST_WORKER") and os.environ.get(WORKER_VARIABLE) != os.environ["PYTEST_XDIST_WORKER"]:
        os.environ[WORKER_VARIABLE] = os.environ["PYTEST_XDIST_WORKER"]
        os.environ[RUN_VARIABLE] = uuid.uuid4().hex
    return os.environ.setdefault(RUN_VARIABLE, uuid.uuid4().hex)


def keep_for_session(pid: int) -> None:
    """This one process belongs to a session-wide fixture; what it starts does not."""
    _kept.add(pid)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The world before a test."""

    pids: set[int] = field(default_factory=all_pids)
    listening: set[tuple[str, int]] = field(default_factory=lambda: own_listening_ports())


def processes_of_this_run(*, besides: set[int]) -> dict[int, str]:
    """Living processes with the mark of this run that are not in `besides`, each with its command line."""
    run = os.environ.get(RUN_VARIABLE, "").encode()
    found = {}
    for pid in all_pids() - besides - _kept - {os.getpid()}:
        environment = environ_of(pid)
        if environment.get(RUN_VARIABLE.encode()) == run and is_alive(pid):
            launch = environment.get(LAUNCH_VARIABLE, b"").decode(errors="replace")
            found[pid] = f"{command_of(pid)}" + (f" (launch {launch})" if launch else "")
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "gone"


def own_listening_ports() -> set[tuple[str, int]]:
    """(inode, port) of every TCP socket on which this very process listens."""
    inodes = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    if not inodes:
        return set()
    return {(inode, port) for inode, port in listening_sockets() if inode in inodes}


def listening_sockets() -> Iterator[tuple[str, int]]:
    """(inode, port) of every listening TCP socket of this network namespace."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(FileNotFoundError), open(table) as lines:
            next(lines)
            for line in lines:
                fields = line.split()
                # Column 3 is the state, 0A is LISTEN; column 2 address:port in hex; column 10 the inode.
                if fields[3] == "0A":
                    yield fields[9], int(fields[1].rpartition(":")[2], 16)


def watched_files() -> Iterator[str]:
    """Paths outside any test's folder that a leak of ours would show up among.

    Looked at before and after the whole run: a walk over the checkout for each of thousands of tests would cost
    minutes, and tests that run at the same time see each other's temporary files.
    """
    if not alone():
        return
    for entry in os.scandir("/tmp"):
        if not entry.name.startswith("pytest-of-"):
            yield entry.path
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    for folder in (".config", ".local/state", ".local/share", ".cache"):
        yield from files_below(home / folder / "specconsole")
    yield from files_below(REPOSITORY)


def files_below(folder: Path) -> Iterator[str]:
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in CACHES]
        yield from (os.path.join(path, name) for name in names)


def alone() -> bool:
    return bool(os.environ.get(ALONE_VARIABLE))


def left_behind(before: Surroundings) -> list[str]:
    """One line for each thing that is there now and was not before; leaked processes are then KILLed."""
    deadline = time.monotonic() + GRACE_S
    while (processes := processes_of_this_run(besides=before.pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    leaks = [f"process {pid}: {command}" for pid, command in processes.items()]
    destroy_processes(besides=before.pids)
    leaks += [f"listening on port {port}" for _, port in own_listening_ports() - before.listening]
    return leaks


def destroy_processes(*, besides: set[int]) -> None:
    """KILLs what `processes_of_this_run` finds, again and again: some are replaced by others meanwhile."""
    deadline = time.monotonic() + GRACE_S + 5
    while (processes := processes_of_this_run(besides=besides)) and time.monotonic() < deadline:
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
