"""Which processes are a launch's own: by the mark in their environment, by its session, by descent.

Never by a name. What can't be proven is `possible`: shown, and never signalled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specconsole.core.hardware.processes import Process, ProcessTable
from specconsole.core.launching.folder import ServerProcess

Identity = tuple[int, int]
"""pid and start ticks, within one boot."""


def identity(process: Process) -> Identity:
    return process.pid, process.start_ticks


@dataclass(frozen=True, slots=True)
class Owned:
    """The processes of one launch in one process table."""

    proven: tuple[Process, ...]
    """Alive and surely its own, the server itself first."""
    wrapper: Process | None
    """The one that waits for the exit status."""
    possible: tuple[Process, ...] = ()
    """In a session of that number, without proof that it is still the launch's."""


def owned(
    table: ProcessTable,
    server: ServerProcess | None,
    *,
    wrapper: Identity | None = None,
    seen: Iterable[Identity] = (),
    leads_session: bool = True,
) -> Owned:
    """Sorts a process table. `leads_session` False: its session may be somebody's shell (an adopted server).
    `seen` are those that an earlier look has proven (a child that was then still a child)."""
    before = set(seen)
    same_boot = server is not None and server.boot == table.boot
    alive = [process for process in table.processes if not process.dead]
    proven: dict[int, Process] = {}
    waiting: Process | None = None
    for process in alive:
        if wrapper is not None and identity(process) == wrapper:
            waiting = process
        elif (
            process.marked
            or identity(process) in before
            or (same_boot and server is not None and identity(process) == (server.pid, server.start_ticks))
        ):
            proven[process.pid] = process
    possible: list[Process] = []
    # The number of a session is not given out again while anybody is in it (Linux pid.c: free_pid after the last
    # detach), so one proven member proves the others.
    if server is not None and same_boot and leads_session:
        members = [process for process in alive if process.sid == server.pid and process is not waiting]
        if any(process.pid in proven for process in members):
            proven.update({process.pid: process for process in members})
        else:
            possible = [p for p in members if p.start_ticks >= server.start_ticks]
    _add_descendants(alive, proven, waiting)
    possible = [process for process in possible if process.pid not in proven]
    lead = server.pid if server is not None else -1
    ordered = sorted(proven.values(), key=lambda p: (p.pid != lead, p.start_ticks, p.pid))
    return Owned(tuple(ordered), waiting, tuple(possible))


def _add_descendants(alive: list[Process], proven: dict[int, Process], waiting: Process | None) -> None:
    children: dict[int, list[Process]] = {}
    for process in alive:
        children.setdefault(process.ppid, []).append(process)
    todo = list(proven)
    while todo:
        for child in children.get(todo.pop(), ()):
            if child.pid not in proven and child is not waiting:
                proven[child.pid] = child
                todo.append(child.pid)


def signal_words(chosen: Iterable[Process], table: ProcessTable) -> list[str]:
    """`pid:start_ticks:pgid` words for `probes.SIGNAL`.

    A group is signalled as a whole (nothing can fork out of the way) when everybody in it is chosen; else pgid is 0 and
    each process is signalled by itself, so that a stranger in the same group is never hit.
    """
    mine = list(chosen)
    pids = {process.pid for process in mine}
    strangers = {p.pgid for p in table.processes if p.pid not in pids and not p.dead}
    words: list[str] = []
    done: set[int] = set()
    for process in mine:
        if process.pgid in strangers or process.pgid <= 1:
            words.append(f"{process.pid}:{process.start_ticks}:0")
        elif process.pgid not in done:
            done.add(process.pgid)
            words.append(f"{process.pid}:{process.start_ticks}:{process.pgid}")
    return words
