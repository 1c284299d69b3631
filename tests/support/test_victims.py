"""The victim does resist, and its log is a complete witness."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

from tests.support.fixtures_processes import StartVictim
from tests.support.waiting import environ_of, is_alive, wait_gone, wait_until


def test_every_role_says_its_pid(start_victim: StartVictim) -> None:
    victim = start_victim("--children", "2", "--daemons", "1", "--scrubbed", "1", "--renamed", "1", "--respawn")
    expected = ["child", "child", "daemon", "main", "renamed", "respawned", "scrubbed"]
    wait_until(lambda: sorted(victim.alive().values()) == expected, what="all roles run")


def test_a_daemon_left_its_session_and_a_scrubbed_child_its_environment(start_victim: StartVictim) -> None:
    victim = start_victim("--daemons", "1", "--scrubbed", "1", environment={"SPECCONSOLE_LAUNCH": "L7"})
    wait_until(lambda: len(victim.pids) == 3, what="three processes")
    pid_of = {role: pid for pid, role in victim.pids.items()}
    assert os.getsid(pid_of["daemon"]) != os.getsid(victim.pid)
    assert environ_of(pid_of["daemon"])[b"SPECCONSOLE_LAUNCH"] == b"L7"
    assert os.getsid(pid_of["scrubbed"]) == os.getsid(victim.pid)
    wait_until(lambda: environ_of(pid_of["scrubbed"]) == {}, what="its environment is empty")


def test_a_respawned_child_comes_back(start_victim: StartVictim) -> None:
    victim = start_victim("--respawn")
    first = wait_until(lambda: [pid for pid, role in victim.alive().items() if role == "respawned"])[0]
    os.kill(first, signal.SIGKILL)
    second = wait_until(lambda: [pid for pid, role in victim.alive().items() if role == "respawned" and pid != first])
    assert second


def test_a_hopping_process_is_always_another_one(start_victim: StartVictim) -> None:
    victim = start_victim("--hopping")
    wait_until(lambda: sum(role == "hopping" for role in victim.pids.values()) > 5, what="it hopped")
    assert {os.getsid(pid) for pid in victim.alive()} == {os.getsid(victim.pid)}


def test_ignoring_and_draining_outlive_term(start_victim: StartVictim) -> None:
    for flags in (["--ignore-term"], ["--drain", "--port", "0"]):
        victim = start_victim(*flags)
        victim.process.terminate()
        wait_for_text(victim.log, b'"signal": 15')
        assert is_alive(victim.pid)


def test_it_answers_and_ends_on_term_with_the_status_asked_for(start_victim: StartVictim) -> None:
    victim = start_victim("--port", "0", "--exit-status", "7", "--log-lines", "3")
    with urllib.request.urlopen(f"http://127.0.0.1:{victim.port}/health", timeout=10) as response:
        assert response.status == 200
    assert b"line 1 of 3\nline 2 of 3\nline 3 of 3\n" in victim.log.read_bytes()
    victim.process.terminate()
    assert victim.process.wait(10) == 7


def test_a_child_can_keep_the_port_of_a_dead_parent(start_victim: StartVictim) -> None:
    victim = start_victim("--port", "0", "--children", "1", "--child-holds-port")
    victim.process.kill()
    victim.process.wait(10)
    with socket.create_connection(("127.0.0.1", victim.port), timeout=5):
        pass


def test_the_neighbour_is_alive_and_not_a_victim(neighbour: subprocess.Popen[bytes]) -> None:
    assert neighbour.poll() is None


def test_destroying_leaves_nothing(start_victim: StartVictim) -> None:
    victim = start_victim("--respawn", "--daemons", "2", "--ignore-term")
    wait_until(lambda: len(victim.alive()) == 4, what="four processes")
    victim.destroy()
    wait_gone(*victim.pids)
    assert victim.alive() == {}


def wait_for_text(log: Path, text: bytes) -> None:
    wait_until(lambda: text in log.read_bytes(), what=f"{text!r} in {log}")
