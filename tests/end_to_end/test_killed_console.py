"""The console is killed at random moments; the server, its log and its launch survive, and it is ended provably.

Witness: the bytes of the server's own log file, the pids that the server itself said, and /proc.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.leaks import RUN_VARIABLE, Surroundings, destroy_processes, processes_of_this_run
from tests.support.victims import VICTIM, pids_in
from tests.support.waiting import all_pids, environ_of, is_alive, wait_until

CONSOLE = [sys.executable, "-m", "specconsole"]

PROFILE = """
engine = "other"
command = [{python}, "-S", "-E", {victim}, "--port", "{{port}}", "--children", "1", "--daemons", "1",
           "--log-lines", "10000000", "--line-interval-s", "0.001"]
grace_s = 2
"""


def verb(*argv: str) -> bytes:
    ended = subprocess.run([*CONSOLE, *argv], capture_output=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert ended.returncode == 0, (argv, ended.stdout[-500:], ended.stderr)
    assert b"Traceback" not in ended.stderr
    return ended.stdout


def running() -> list[dict[str, Any]]:
    """What a new console finds, from the host alone."""
    found = json.loads(verb("status", "--json"))
    assert isinstance(found, list)
    return found


def marks() -> set[str]:
    """Launches of which a process runs, by the environments in /proc."""
    run = os.environ[RUN_VARIABLE].encode()
    seen = map(environ_of, all_pids())
    return {env[b"SPECCONSOLE_LAUNCH"].decode() for env in seen
            if b"SPECCONSOLE_LAUNCH" in env and env.get(RUN_VARIABLE.encode()) == run}  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", [4, pytest.param(10, marks=pytest.mark.faults)])
def test_killed_consoles_and_one_server(isolated_home: Path, kills: int) -> None:
    before = Surroundings()
    profiles = isolated_home / ".config" / "specconsole" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "endless.toml").write_text(
        PROFILE.format(python=json.dumps(sys.executable), victim=json.dumps(str(VICTIM)))
    )
    dice = random.Random(20261129)
    try:
        began_s = time.monotonic()
        once = start()
        start_s = time.monotonic() - began_s
        verb("stop", once["launch_id"])
        for number in range(kills):
            there = marks()
            assert len(there) <= 1, there
            argv = ["logs", "-f", "--raw", *there] if there else ["launch", "endless", "--wait"]
            kill_console(argv, after_s=dice.uniform(0.05, 1.5) * start_s)
            wait_until(lambda: settled(before), what=f"round {number}: a server runs whole, or nothing does")
        [launch] = running() or [start()]
        prove_log_and_stop(launch)
    finally:
        destroy_processes(besides=before.pids)


def kill_console(argv: list[str], *, after_s: float) -> None:
    console = subprocess.Popen(
        [*CONSOLE, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(after_s)
    console.kill()
    console.wait()


def settled(before: Surroundings) -> bool:
    """What a killed console had under way on the host has come to its end: nothing runs, or a recorded server does."""
    folders = list(Path(os.environ["HOME"], ".local/state/specconsole/launches").glob("*/*"))
    recorded = [folder for folder in folders if (folder / "process").exists()]
    return bool(recorded) or not processes_of_this_run(besides=before.pids)


def start() -> dict[str, Any]:
    verb("launch", "endless")
    return running()[0]


def prove_log_and_stop(launch: dict[str, Any]) -> None:
    launch_id, log = launch["launch_id"], Path(launch["log_path"])
    size = log.stat().st_size
    copy = verb("logs", "--raw", launch_id)
    assert len(copy) >= size
    assert log.read_bytes().startswith(copy)
    assert {role for pid, role in pids_in(copy).items() if is_alive(pid)} >= {"main", "child", "daemon"}

    verb("stop", launch_id)
    whole = log.read_bytes()
    assert len(whole) > size
    assert verb("logs", "--raw", launch_id) == whole
    assert [pid for pid in pids_in(whole) if is_alive(pid)] == []
    assert marks() == set()
    # One line a number, none lost, none twice, whoever was killed in between.
    numbers = [int(line.split()[1]) for line in whole.splitlines() if line.startswith(b"line ")]
    assert numbers == list(range(1, len(numbers) + 1))
    [ended] = [one for one in json.loads(verb("status", "--all", "--json")) if one["launch_id"] == launch_id]
    assert ended["state"] == "stopped"
