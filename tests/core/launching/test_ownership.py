"""Whose process is whose: by mark, by session, by descent; what is not proven is never signalled."""

from __future__ import annotations

from specconsole.core.hardware.processes import Process, ProcessTable
from specconsole.core.launching.folder import ServerProcess
from specconsole.core.launching.ownership import identity, owned, signal_words

SERVER = ServerProcess(100, 5000, "boot")
WRAPPER = (90, 4999)


def process(
    pid: int, ppid: int = 1, *, sid: int | None = None, pgid: int | None = None, ticks: int = 6000,
    marked: bool = False, state: str = "S",
) -> Process:  # fmt: skip
    session = sid if sid is not None else pid
    return Process(pid, f"p{pid}", state, ppid, pgid if pgid is not None else session, session, ticks, marked)


def table(*processes: Process, boot: str = "boot") -> ProcessTable:
    return ProcessTable(boot, 1000.0, 100, processes, whole=True)


LEADER = process(100, 90, ticks=5000, marked=True)
WAITING = process(90, 1, ticks=4999, marked=True)
NEIGHBOUR = process(500, 1)


def pids(found: tuple[Process, ...]) -> list[int]:
    return [one.pid for one in found]


def test_a_whole_tree() -> None:
    child = process(101, 100, sid=100)
    daemon = process(102, 1, marked=True)
    scrubbed = process(103, 1, sid=100)
    grandchild = process(104, 102)
    found = owned(table(NEIGHBOUR, grandchild, scrubbed, daemon, child, LEADER, WAITING), SERVER, wrapper=WRAPPER)
    assert pids(found.proven)[0] == 100
    assert sorted(pids(found.proven)) == [100, 101, 102, 103, 104]
    assert found.wrapper is WAITING
    assert found.possible == ()


def test_a_dead_leaders_session_is_proven_by_any_member_that_is() -> None:
    worker = process(101, 1, sid=100, marked=True)
    scrubbed = process(103, 1, sid=100)
    found = owned(table(worker, scrubbed, NEIGHBOUR), SERVER, wrapper=WRAPPER)
    assert sorted(pids(found.proven)) == [101, 103]


def test_a_session_number_alone_proves_nothing() -> None:
    stranger = process(103, 1, sid=100)
    found = owned(table(stranger, NEIGHBOUR), SERVER)
    assert found.proven == ()
    assert pids(found.possible) == [103]


def test_a_reused_pid_is_a_stranger() -> None:
    reused = process(100, 1, ticks=9000)
    found = owned(table(reused, process(105, 100, sid=100, ticks=9001)), SERVER)
    assert found.proven == ()


def test_after_a_reboot_nothing_is_ours() -> None:
    same_numbers = process(100, 1, ticks=5000)
    found = owned(table(same_numbers, boot="another"), SERVER)
    assert (found.proven, found.possible) == ((), ())


def test_what_was_proven_once_stays_so_by_pid_and_start() -> None:
    runaway = process(110, 1, ticks=7000)
    seen = {identity(runaway)}
    assert pids(owned(table(runaway), SERVER, seen=seen).proven) == [110]
    other = process(110, 1, ticks=7001)
    assert owned(table(other), SERVER, seen=seen).proven == ()


def test_zombies_hold_nothing() -> None:
    zombie = process(100, 90, ticks=5000, marked=True, state="Z")
    assert owned(table(zombie, WAITING), SERVER, wrapper=WRAPPER).proven == ()


def test_a_group_is_signalled_whole_only_when_nobody_else_is_in_it() -> None:
    child = process(101, 100, sid=100)
    whole = table(LEADER, child, NEIGHBOUR)
    assert signal_words([LEADER, child], whole) == ["100:5000:100"]
    in_a_shell = process(120, 119, sid=40, pgid=45, marked=True)
    stranger = process(46, 40, sid=40, pgid=45)
    assert signal_words([in_a_shell], table(in_a_shell, stranger)) == ["120:6000:0"]
    assert signal_words([process(130, 1, pgid=1, sid=1)], whole) == ["130:6000:0"]
