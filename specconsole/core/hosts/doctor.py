"""`hosts check`: what works on a host, what is missing, and what to do about it. Pure: facts in, findings out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from specconsole.core.hosts.facts import HostFacts

Level = Literal["works", "limited", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    level: Level
    what: str
    detail: str = ""
    try_: str = ""


@dataclass(frozen=True, slots=True)
class Connection:
    """What was found out about the way to the host. None: not tried, or not knowable."""

    server: str = ""
    via: str = "directly"
    round_trip_s: float | None = None
    sftp: bool | None = None
    sessions: int | None = None
    """Session channels that could be opened at once, counted up to 4."""
    chatter_bytes: int = 0
    forwards: bool | None = None
    """Whether the host connects us to its own ports."""


def findings(connection: Connection | None, facts: HostFacts) -> tuple[Finding, ...]:
    """`connection` None: this machine itself."""
    return (*_of_connection(connection), *_of_host(facts), *_of_launching(facts), *_of_hardware(facts))


def _of_connection(found: Connection | None) -> Iterable[Finding]:
    if found is None:
        return
    trip = "" if found.round_trip_s is None else f", round trip {found.round_trip_s * 1000:.0f} ms"
    yield Finding("works", "connection", f"{found.server or 'SSH'}, {found.via}{trip}")
    if found.sftp is True:
        yield Finding("works", "SFTP", "logs are followed at their offset")
    elif found.sftp is False:
        yield Finding(
            "limited", "SFTP", "none here: logs are read with tail, and what is rotated away and deleted is lost",
            "Subsystem sftp internal-sftp in sshd_config",
        )  # fmt: skip
    if found.sessions is not None:
        many = found.sessions >= 4
        yield Finding(
            "works" if many else "limited", "session channels", "4 or more" if many else f"{found.sessions} at once",
            "" if many else "raise MaxSessions in sshd_config: below 4 GPU figures and log commands are polled",
        )  # fmt: skip
    if found.forwards is True:
        yield Finding("works", "ports of the host", "reached through the connection")
    elif found.forwards is False:
        yield Finding(
            "broken", "ports of the host", "its sshd forwards no TCP connections: servers can't be asked",
            "AllowTcpForwarding yes in sshd_config",
        )  # fmt: skip
    if found.chatter_bytes:
        yield Finding(
            "works", "login shell", f"prints {found.chatter_bytes} bytes at every login; they are skipped",
            "print only when [ -t 1 ]",
        )  # fmt: skip


def _of_host(facts: HostFacts) -> Iterable[Finding]:
    uid = "?" if facts.uid is None else facts.uid
    who = f"{facts.user or '?'} (uid {uid}), login shell {facts.login_shell or '?'}"
    yield Finding("works", "account", who)
    yield Finding(
        "works", "system", ", ".join(part for part in (facts.os, facts.kernel, facts.arch) if part) or "unknown"
    )
    if facts.machine_id is None or facts.boot_id is None:
        yield Finding(
            "limited", "identity", "no machine id or boot id: launches are told apart by pid and start time only"
        )
    offset_s = facts.clock_offset_s
    if offset_s is not None:
        off = abs(offset_s) > max(2.0, 2 * (facts.clock_uncertainty_s or 0.0))
        yield Finding(
            "limited" if off else "works", "clock",
            f"{offset_s:+.1f} s against ours, to within {facts.clock_uncertainty_s or 0:.2f} s",
            "start NTP there; silence and ages are computed with the offset meanwhile" if off else "",
        )  # fmt: skip
    if facts.missing:
        yield Finding(
            "broken", "tools", f"missing: {', '.join(facts.missing)}", "install coreutils, procps and util-linux"
        )
    else:
        yield Finding("works", "tools", "everything that launching and watching needs")
    if facts.processes_hidden:
        yield Finding("limited", "processes", "hidepid hides other users' processes", "ask for the proc group, or root")


def _of_launching(facts: HostFacts) -> Iterable[Finding]:
    folder = facts.state_folder or "the state folder"
    if facts.state_writable is False:
        yield Finding(
            "broken", "launching", f"{folder} can't be written", "check the home folder's owner, mode and quota"
        )
    elif facts.state_writable:
        network = (facts.state_filesystem or "").startswith(("nfs", "lustre", "gpfs", "ceph", "beegfs", "fuse", "smb"))
        free = "" if facts.state_free_bytes is None else f", {facts.state_free_bytes / 1e9:.0f} GB free"
        shared = " (shared over the network: launches are kept apart by machine id)" if network else ""
        yield Finding(
            "works", "launching", f"{folder}, {facts.state_filesystem or 'unknown file system'}{free}{shared}"
        )
    if facts.kill_user_processes and not facts.lingers:
        yield Finding(
            "broken", "servers outlive the login", "KillUserProcesses=yes ends them when your last session ends",
            f"loginctl enable-linger {facts.user or ''}".rstrip(),
        )  # fmt: skip
    if facts.pythons:
        yield Finding("works", "python3", ", ".join(f"{version} ({path})" for path, version in facts.pythons))
    else:
        yield Finding("limited", "python3", "none: benchmarks can't run on this host", "install Python 3.9 or newer")


def _of_hardware(facts: HostFacts) -> Iterable[Finding]:
    if facts.gpu_tools:
        yield Finding("works", "GPU tool", ", ".join(facts.gpu_tools))
    else:
        yield Finding(
            "limited", "GPU tool", "none found: no GPU figures", "install the driver's tool (nvidia-smi, amd-smi)"
        )
    if facts.shm_free_bytes is not None and facts.shm_free_bytes < 1 << 30:
        yield Finding(
            "limited", "shared memory",
            f"{facts.shm_free_bytes / 1e6:.0f} MB of /dev/shm free: tensor parallel servers need gigabytes",
            "docker run --ipc=host, or --shm-size",
        )  # fmt: skip
