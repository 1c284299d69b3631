"""What the window knows of a launch: immutable, built by `services`, drawn by `ui`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from specconsole.core.launching.effective import Account
    from specconsole.core.launching.waiting import Waiting
    from specconsole.core.reading.model import Reading

LaunchState = Literal[
    "queued", "preparing", "starting", "loading", "answers", "not-answering", "stalled", "stopping",
    "stopped", "failed", "gone", "unknown",
]  # fmt: skip
"""`answers` is proven by us (own process holds the port, health 200, a request of 16 tokens came back);
`unknown` is what a launch is while its host can't be reached."""

HealthAnswer = Literal["not-asked", "link-down", "refused", "reset", "timeout", "503", "200", "http-error"]


@dataclass(frozen=True, slots=True)
class ProbeView:
    """One number that the profile has read from the log."""

    name: str
    count: int
    """Numbers read so far."""
    last: float | None = None
    mean: float | None = None
    """Of all; None without any."""
    unreadable: int = 0
    """Lines that matched, and held no number there."""
    shown: tuple[float, ...] = ()
    """Means over what was read so far, evenly: for a small plot."""


@dataclass(frozen=True, slots=True)
class LaunchView:
    """One launch, as of `as_of_s` (console's monotonic clock)."""

    launch_id: str
    name: str
    """The profile's name, or what an adopted server is called."""
    host: str
    engine: str
    port: int | None
    state: LaunchState
    reading: Reading | None = None
    health: HealthAnswer = "not-asked"
    health_detail: str = ""
    answered_after_s: float | None = None
    """Seconds from launch to the first proven answer."""
    started_at_s: float | None = None
    """Host's wall clock, seconds since the epoch."""
    ended_at_s: float | None = None
    age_s: float | None = None
    """Seconds since start by the host's uptime; None while unknown."""
    exit_status: int | None = None
    owner: str = ""
    """`user@client-machine` that started it."""
    ours: bool = True
    """Whether the person at this console started it (else stopping needs typing)."""
    adopted: bool = False
    tags: tuple[str, ...] = ()
    command: str = ""
    """The command line, secrets masked, for showing only."""
    log_path: str | None = None
    spool_path: str | None = None
    """Local file that holds the log so far."""
    last_log_mtime_age_s: float | None = None
    left_over: tuple[str, ...] = ()
    """What was still there after a stop: one line each (`pid 71 (bob): python ..., holds 60 GiB of GPU 3`)."""
    stale_since_s: float | None = None
    as_of_s: float = 0.0
    processes: tuple[tuple[int, int], ...] = ()
    """(pid, start ticks) of the server's first process, while it is known; what it forks is told by its ancestors."""
    running_benches: int = 0
    history_note: str = ""
    """`last: 8:30`, or "" without history."""
    account: Account | None = None
    """How it really runs, by its own account, beside what was asked; None before it answers."""
    probes: tuple[ProbeView, ...] = ()
    """In the profile's order; () where it has none."""
    waiting: Waiting | None = None
    """What a queued launch waits for on its host; None for any other."""
    last_start_s: float | None = None
    """How long the last start of this kind took until it answered."""
