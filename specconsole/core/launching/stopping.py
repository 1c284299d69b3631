"""What a stop tells while it goes on, and how it ended. Pure values; `adapters.process_launcher` carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StopPhase = Literal[
    "waiting-for-lock",  # another console is at it
    "asked",  # the marker is in the folder
    "dropping-requests",
    "term",
    "grace",  # waiting for the server to end by itself
    "kill",
    "verifying",
    "finished",
]


@dataclass(frozen=True, slots=True)
class LeftOver:
    """A process that is still there after a stop, or a holder of the port."""

    pid: int
    user: str
    age_s: float | None
    command: str
    why: str
    """`survived KILL`, `in its session, not proven its own`, `holds port 30000`."""

    @property
    def who(self) -> str:
        """`pid 71 (bob, 3 min): python -m ...`, without the reason."""
        age = "" if self.age_s is None else f", {describe_age(self.age_s)}"
        command = self.command if len(self.command) <= 100 else f"{self.command[:99]}…"
        return f"pid {self.pid} ({self.user or 'unknown user'}{age}): {command or '?'}"

    def __str__(self) -> str:
        return f"{self.who} - {self.why}"


@dataclass(frozen=True, slots=True)
class StopEvent:
    """One step of a stop."""

    phase: StopPhase
    text: str
    """One line for a person."""
    alive: int | None = None
    """Processes of the launch that still run; None while unknown."""
    seconds_left: float | None = None
    """Of the grace period."""
    left_over: tuple[LeftOver, ...] = ()
    exit_status: int | None = None
    killed: bool = False
    """Whether KILL was needed."""

    @property
    def clean(self) -> bool:
        """Finished, and nothing is left."""
        return self.phase == "finished" and not self.left_over


def describe_age(age_s: float) -> str:
    """`42 s`, `7 min`, `3 h`, `2 d`."""
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if age_s < limit:
            return f"{age_s / unit:.0f} {name}"
    return f"{age_s / 86400:.0f} d"


def describe_exit(status: int | None) -> str:
    """An exit status as a shell reports it, for a person."""
    if status is None:
        return "exit status unknown"
    names = {1: "HUP", 2: "INT", 3: "QUIT", 6: "ABRT", 9: "KILL", 11: "SEGV", 15: "TERM"}
    if status > 128:
        number = status - 128
        return f"ended by signal {names.get(number, number)}"
    return f"exit status {status}"
