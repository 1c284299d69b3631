"""The launch folder, as the host reports it -> records.

The folder is the truth; whatever is cut or garbled in it becomes `problem`, never an exception, so that one
half-written launch can't hide the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from specconsole.core.hardware.processes import Process, parse_stat, seconds
from specconsole.core.launching.spec import LaunchSpec, decode_spec
from specconsole.core.launching.waiting import Waiting, parse_waiting
from specconsole.errors import BadInputError, RefusedError, SpecconsoleError


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """The process that was started, as `server.sh` recorded it. It leads its session and its group."""

    pid: int
    start_ticks: int
    boot: str
    """Boot id and pid namespace."""
    started_uptime_s: float | None = None


@dataclass(frozen=True, slots=True)
class StopMark:
    """Who asked for a stop first."""

    by: str
    at_s: float
    """That client's wall clock."""


@dataclass(frozen=True, slots=True)
class HostMoment:
    """The host's own clocks when the folder was read."""

    boot: str = ""
    uptime_s: float | None = None
    now_s: float | None = None
    user: str = ""
    root: str = ""
    hertz: int = 100


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One launch folder at one moment."""

    launch_id: str
    folder: str
    spec: LaunchSpec | None
    """None when it can't be read: see `problem`."""
    process: ServerProcess | None = None
    wrapper: tuple[int, int] | None = None
    """Pid and start ticks of the wrapper that waits for the exit status."""
    alive: bool | None = None
    """Whether the recorded process runs now (a zombie does not); None when there is no record of one."""
    waiter: ServerProcess | None = None
    """Of a launch that waits in the host's queue: the process that will start it."""
    waits: bool | None = None
    """Whether that one runs, and has not started the server yet; None when there is none."""
    waiting: Waiting | None = None
    """What it waits for, while it does."""
    exit_status: int | None = None
    """As the shell reports it: 128 + signal number for a signal. None while unknown."""
    exited: bool = False
    exit_at_s: float | None = None
    """Host's wall clock."""
    exit_uptime_s: float | None = None
    stop: StopMark | None = None
    being_stopped: bool = False
    """Whether some console is at it now (it holds the lock)."""
    ended: str = ""
    """How the verified stop ended; "" without one."""
    answered_after_s: float | None = None
    """Seconds from its start to the first answer that a console proved; None while none has."""
    folder_mtime_s: float | None = None
    log_bytes: int | None = None
    log_mtime_s: float | None = None
    moment: HostMoment = field(default_factory=HostMoment)
    problem: str = ""
    """What is wrong with the folder; "" for a whole one."""

    @property
    def over(self) -> bool:
        """Whether it has ended, or will never be started."""
        return not self.alive and (self.exited or (self.process is None and self.waits is False))

    @property
    def folder_age_s(self) -> float | None:
        """Seconds since the folder last changed, by the host's clocks."""
        if self.folder_mtime_s is None or self.moment.now_s is None:
            return None
        return max(0.0, self.moment.now_s - self.folder_mtime_s)

    @property
    def log_path(self) -> str:
        return (self.spec.log_path if self.spec is not None else "") or f"{self.folder}/server.log"

    @property
    def age_s(self) -> float | None:
        """Seconds since the server was started, by the host's uptime; None in another boot."""
        if self.process is None or self.process.boot != self.moment.boot:
            return None
        if self.process.started_uptime_s is None or self.moment.uptime_s is None:
            return None
        return max(0.0, self.moment.uptime_s - self.process.started_uptime_s)

    @property
    def started_at_s(self) -> float | None:
        """Host's wall clock when the server was started, from its age; None in another boot."""
        return None if self.age_s is None or self.moment.now_s is None else self.moment.now_s - self.age_s


def parse_observed(output: bytes) -> tuple[LaunchRecord, ...]:
    """The output of `probes.OBSERVE`."""
    head, blocks = _blocks(output)
    moment = _moment(head)
    return tuple(_record(block, moment) for block in blocks)


def parse_moment(output: bytes) -> HostMoment:
    """The host's own facts alone."""
    return _moment(_blocks(output)[0])


def _blocks(output: bytes) -> tuple[dict[str, str], list[dict[str, str]]]:
    head: dict[str, str] = {}
    blocks: list[dict[str, str]] = []
    for line in output.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("=")
        if key == "launch":
            blocks.append({"launch": value})
        else:
            (blocks[-1] if blocks else head)[key] = value
    return head, blocks


def _moment(head: dict[str, str]) -> HostMoment:
    hertz = head.get("hertz", "")
    return HostMoment(
        boot=head.get("boot", ""),
        uptime_s=seconds(head.get("uptime")),
        now_s=seconds(head.get("now")),
        user=head.get("user", ""),
        root=head.get("root", ""),
        hertz=int(hertz) if hertz.isdigit() and int(hertz) else 100,
    )


def _record(block: dict[str, str], moment: HostMoment) -> LaunchRecord:
    problems: list[str] = []
    spec: LaunchSpec | None = None
    if "requested.json" in block:
        try:
            spec = decode_spec(block["requested.json"])
        except SpecconsoleError as error:
            problems.append(error.what)
    else:
        problems.append("half written: its start never finished")
    process = parse_process(block.get("process", ""))
    waiter = parse_process(block.get("waiter", ""))
    seen = parse_stat(block.get("stat", ""))
    waits = None if waiter is None else process is None and _alive(waiter, moment.boot, seen)
    if process is None and "process" in block:
        problems.append("the record of its process can't be read")
    if process is not None and moment.boot and process.boot != moment.boot and "exit" not in block:
        problems.append("its machine (or container) was started anew since, and the server ended with it")
    status, exit_uptime_s = _exit(block.get("exit", ""))
    if waits is False and process is None and status is None and "ended" not in block:
        problems.append("it was never started: what waited on the host for its turn is gone")
    log_bytes, log_mtime_s = _log(block.get("log", ""))
    return LaunchRecord(
        launch_id=block["launch"],
        folder=f"{moment.root}/{block['launch']}",
        spec=spec,
        process=process,
        wrapper=_wrapper(block.get("wrapper", "")),
        alive=None if process is None else _alive(process, moment.boot, seen),
        waiter=waiter,
        waits=waits,
        waiting=_waiting(block.get("waiting", ""), waiter, spec, moment) if waits else None,
        exit_status=status,
        exited="exit" in block,
        exit_at_s=seconds(block.get("exit_at")),
        exit_uptime_s=exit_uptime_s,
        stop=parse_stop_mark(block.get("stop", "")) if "stop" in block else None,
        being_stopped="stopping" in block,
        ended=block.get("ended", ""),
        answered_after_s=seconds(block.get("answered")),
        folder_mtime_s=seconds(block.get("made_at")),
        log_bytes=log_bytes,
        log_mtime_s=log_mtime_s,
        moment=moment,
        problem="; ".join(problems),
    )


def parse_process(line: str) -> ServerProcess | None:
    """A line `pid=... start_ticks=... boot=... uptime=...`; None when it is cut."""
    facts = dict(part.split("=", 1) for part in line.split() if "=" in part)
    pid, ticks = facts.get("pid", ""), facts.get("start_ticks", "")
    if not (pid.isdigit() and ticks.isdigit()) or "boot" not in facts or "uptime" not in facts:
        return None
    return ServerProcess(int(pid), int(ticks), facts["boot"], seconds(facts["uptime"]))


def _waiting(line: str, waiter: ServerProcess | None, spec: LaunchSpec | None, moment: HostMoment) -> Waiting:
    began = waiter.started_uptime_s if waiter is not None else None
    return parse_waiting(
        line, uptime_s=moment.uptime_s, began_uptime_s=began, needs=spec.needs if spec is not None else ()
    )


def _wrapper(line: str) -> tuple[int, int] | None:
    facts = dict(part.split("=", 1) for part in line.split() if "=" in part)
    pid, ticks = facts.get("pid", ""), facts.get("start_ticks", "")
    return (int(pid), int(ticks)) if pid.isdigit() and ticks.isdigit() else None


def _alive(process: ServerProcess, boot: str, seen: Process | None) -> bool:
    return process.boot == boot and seen is not None and seen.start_ticks == process.start_ticks and not seen.dead


def _exit(line: str) -> tuple[int | None, float | None]:
    parts = line.split()
    status = int(parts[0]) if parts and parts[0].isdigit() else None
    return status, seconds(parts[1]) if len(parts) > 1 else None


def _log(line: str) -> tuple[int | None, float | None]:
    parts = line.split()
    return (int(parts[0]), seconds(parts[1])) if len(parts) == 2 and parts[0].isdigit() else (None, None)


def stop_mark_line(mark: StopMark) -> str:
    """One line for the `stop` file."""
    return json.dumps({"by": mark.by, "at_s": mark.at_s})


def parse_stop_mark(line: str) -> StopMark:
    """A cut or foreign mark still says that a stop was asked for."""
    try:
        data = json.loads(line)
        return StopMark(str(data["by"]), float(data["at_s"]))
    except (ValueError, KeyError, TypeError):
        return StopMark("", 0.0)


_START_ERRORS = {
    "no-setsid": ("`setsid` is not on this host", "install util-linux"),
    "state-folder": ("can't make the state folder ~/.local/state/specconsole", "check its owner and mode"),
    "launch-folder": ("can't make the launch folder", "check owner and mode of ~/.local/state/specconsole"),
    "write": ("can't write the launch folder", "free space (`df -h ~`) or raise the quota"),
    "no-queue": ("it can't be put into the host's queue", "check owner and space of ~/.local/state/specconsole/queue"),
    "no-process": ("the server's process did not come up within 5 s", "see wrapper.log in the launch folder"),
}


def parse_start(output: bytes, host: str) -> str:
    """The folder that a start made. Raises SpecconsoleError with the host's own reason."""
    lines = output.decode("utf-8", "replace").splitlines()
    facts = dict(_pairs(lines))
    code = facts.get("error")
    if code is not None:
        what, try_ = _START_ERRORS.get(code, (f"the start failed ({code})", ""))
        reason = next((line for line in lines[lines.index(f"error={code}") + 1 :] if line.strip()), "").strip()
        kind = RefusedError if code == "launch-folder" and "exists" in reason.lower() else BadInputError
        raise kind(f"{what}: {reason}" if reason else what, where=host, try_=try_)
    if "started" not in facts or "folder" not in facts:
        raise SpecconsoleError(
            "the start did not finish; whether a server runs is unknown", where=host, try_="specconsole status"
        )
    return facts["folder"]


def _pairs(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        key, eq, value = line.partition("=")
        if eq:
            yield key, value
