"""What /proc prints, on made-up lines and against this machine's own process table."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import psutil

from specconsole.core.hardware.processes import parse_detail, parse_port_holders, parse_stat, parse_table
from specconsole.core.launching import probes


def run(script: str, *args: str) -> bytes:
    return subprocess.run(["sh", "-s", "--", *args], input=script.encode(), capture_output=True, check=True).stdout


# Linux 6.18, /proc/PID/stat of a process that named itself `a) S 1 (b`; cut behind field 24.
ODD = "77 (a) S 1 (b) S 70 77 77 0 -1 4194560 102 0 0 0 0 0 0 0 20 0 1 0 81130 3133440 390"


def test_a_name_with_brackets_does_not_shift_the_fields() -> None:
    process = parse_stat(ODD)
    assert process is not None
    assert (process.pid, process.name, process.state, process.ppid) == (77, "a) S 1 (b", "S", 70)
    assert (process.pgid, process.sid, process.start_ticks) == (77, 77, 81130)


def test_a_cut_line_is_none() -> None:
    for size in range(len(ODD) - 20):
        assert parse_stat(ODD[:size]) is None or size > 80
    assert parse_stat("") is None
    assert parse_stat("x (y) S a b c") is None


def test_the_table_agrees_with_psutil() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        table = parse_table(run(probes.PROCESS_TABLE, "no-such-launch"))
        assert table.whole
        found = table.by_pid()[child.pid]
        witness = psutil.Process(child.pid)
        assert (found.ppid, found.pgid, found.sid) == (os.getpid(), child.pid, child.pid)
        assert found.name == witness.name()[:15]
        age_s = table.age_s(found)
        assert age_s is not None
        assert abs(age_s - (psutil.time.time() - witness.create_time())) < 3
        assert not found.marked
    finally:
        child.communicate(b"\n")


def test_the_mark_is_found_and_nothing_else_is_marked() -> None:
    launch_id = "20261129-140211-aaaaaa"
    env = {**os.environ, "SPECCONSOLE_LAUNCH": launch_id}
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=env)
    try:
        table = parse_table(run(probes.PROCESS_TABLE, launch_id))
        assert [process.pid for process in table.processes if process.marked] == [child.pid]
    finally:
        child.communicate(b"\n")


def test_a_cut_table_is_not_whole() -> None:
    output = run(probes.PROCESS_TABLE, "x")
    assert parse_table(output).whole
    for cut in (0, len(output) // 2, len(output) - 3):
        assert not parse_table(output[:cut]).whole


def test_details_name_user_and_command() -> None:
    details = parse_detail(run(probes.PROCESS_DETAIL, str(os.getpid()), "999999999"))
    assert list(details) == [os.getpid()]
    assert details[os.getpid()].user == psutil.Process().username()
    assert details[os.getpid()].command.startswith(psutil.Process().cmdline()[0])


def test_the_holder_of_a_port_is_found_for_both_families() -> None:
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as listener:
            listener.bind((address, 0))
            listener.listen()
            port = listener.getsockname()[1]
            with socket.create_connection((address, port)):
                holders = parse_port_holders(run(probes.PORT_HOLDERS, str(port)))
            assert holders.pids == (os.getpid(),)
            assert len(holders.inodes) == 1
            assert holders.uids == (os.getuid(),)
        assert parse_port_holders(run(probes.PORT_HOLDERS, str(port))).free
