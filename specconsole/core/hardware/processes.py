"""What /proc and the probes print -> processes, listeners and their holders.

A process is pid + start ticks + boot: a pid alone may be somebody else's a second later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specconsole.core.launching.masking import mask_text


@dataclass(frozen=True, slots=True)
class Process:
    """One row of the process table (proc(5), /proc/PID/stat)."""

    pid: int
    name: str
    """The kernel's short name (15 bytes), its line ends escaped by the kernel."""
    state: str
    """`R`, `S`, `D`, `Z` (dead, not yet reaped), ..."""
    ppid: int
    pgid: int
    sid: int
    start_ticks: int
    marked: bool = False
    """True when its environment carries the launch's id."""

    @property
    def dead(self) -> bool:
        """A zombie holds nothing any more; only its parent can remove it."""
        return self.state in ("Z", "X")


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """All processes that the account can see, at one moment."""

    boot: str
    uptime_s: float | None
    hertz: int
    processes: tuple[Process, ...]
    whole: bool
    """False when the probe's output was cut: what is missing is unknown, not gone."""

    def by_pid(self) -> dict[int, Process]:
        return {process.pid: process for process in self.processes}

    def age_s(self, process: Process) -> float | None:
        """Seconds since a process was started."""
        return None if self.uptime_s is None else max(0.0, self.uptime_s - process.start_ticks / self.hertz)


def parse_stat(line: str) -> Process | None:
    """One line of /proc/PID/stat; None when it is cut. The name may hold blanks and brackets: the last `)` ends it."""
    head, bracket, rest = line.rpartition(") ")
    pid, opening, name = head.partition(" (")
    fields = rest.split()
    if not bracket or not opening or not pid.strip().isdigit() or len(fields) < 20:
        return None
    try:
        return Process(int(pid), name, fields[0], int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))
    except ValueError:
        return None


def parse_table(output: bytes) -> ProcessTable:
    """The output of `probes.PROCESS_TABLE`."""
    text = output.decode("utf-8", "replace")
    head, _, rest = text.partition("#stat\n")
    rows, _, marks = rest.partition("#environ\n")
    facts = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    marked = {int(part) for line in marks.splitlines() if (part := line.removeprefix("/proc/").split("/")[0]).isdigit()}
    own = facts.get("self", "")
    found: list[Process] = []
    for line in rows.splitlines():
        process = parse_stat(line)
        # The probe's own shell and its children are not part of the picture.
        if process is None or own == str(process.pid) or own == str(process.ppid):
            continue
        found.append(mark(process) if process.pid in marked else process)
    hertz = facts.get("hertz", "")
    return ProcessTable(
        boot=facts.get("boot", ""),
        uptime_s=seconds(facts.get("uptime")),
        hertz=int(hertz) if hertz.isdigit() and int(hertz) > 0 else 100,
        processes=tuple(found),
        whole=text.endswith("#end\n") and bool(found),
    )


def mark(process: Process) -> Process:
    """The same process, as one whose environment carries the launch's id."""
    return Process(
        process.pid, process.name, process.state, process.ppid, process.pgid, process.sid, process.start_ticks, True
    )


def seconds(text: str | None) -> float | None:
    """A number of seconds as text; None when it is none."""
    try:
        return float(text) if text else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class ProcessDetail:
    """Whose a process is and what it runs; "" when that can't be seen."""

    user: str = ""
    command: str = ""


def parse_detail(output: bytes) -> dict[int, ProcessDetail]:
    """The output of `probes.PROCESS_DETAIL`, by pid; keys in command lines masked."""
    details: dict[int, ProcessDetail] = {}
    for part in output.decode("utf-8", "replace").split("#pid=")[1:]:
        lines = part.splitlines()
        if not lines or not lines[0].isdigit():
            continue
        facts = dict(line.split("=", 1) for line in lines[1:] if "=" in line)
        details[int(lines[0])] = ProcessDetail(facts.get("user", ""), mask_text(facts.get("command", "").strip()))
    return details


@dataclass(frozen=True, slots=True)
class PortHolders:
    """Who listens on a port."""

    inodes: tuple[int, ...]
    """Sockets that listen; () when the port is free."""
    uids: tuple[int, ...]
    """Users of those sockets."""
    pids: tuple[int, ...]
    """Processes that hold one of them, as far as this account may look (() for another user's)."""

    @property
    def free(self) -> bool:
        return not self.inodes


def parse_port_holders(output: bytes) -> PortHolders:
    """The output of `probes.PORT_HOLDERS`: rows of /proc/net/tcp*, then `ls -l` of the holders' descriptors."""
    text = output.decode("utf-8", "replace")
    _, _, rest = text.partition("#listen\n")
    rows, _, listing = rest.partition("#fd\n")
    inodes: list[int] = []
    uids: list[int] = []
    for line in rows.splitlines():
        fields = line.split()
        if len(fields) > 9 and fields[7].isdigit() and fields[9].isdigit():
            inodes.append(int(fields[9]))
            uids.append(int(fields[7]))
    return PortHolders(tuple(inodes), tuple(dict.fromkeys(uids)), tuple(_holding_pids(listing.splitlines())))


def _holding_pids(lines: Iterable[str]) -> list[int]:
    pids: list[int] = []
    current: int | None = None
    for line in lines:
        if line.startswith("/proc/"):
            part = line.split("/")[2]
            current = int(part) if part.isdigit() else None
        elif "socket:" in line and current is not None and current not in pids:
            pids.append(current)
    return pids
