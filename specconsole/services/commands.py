"""What a client may ask of the live services: the window's only way out, besides reading the board.

One Protocol, so that the window can be driven against a scripted double. Every coroutine raises
`SpecconsoleError` (what, where, what to try) when it did not do what it says; nothing here blocks the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from specconsole.services.form_desk import FormCommands
    from specconsole.services.history_commands import HistoryCommands
    from specconsole.services.holder_commands import HolderCommands
    from specconsole.services.measuring_commands import MeasuringCommands

Progress = Callable[[str], None]
"""Called with one line for a person whenever something moved on."""


class LineSource(Protocol):
    """A launch's log as far as it is in the local spool. Line numbers are 0-based here, as slices are.

    Calls are cheap enough for the loop as long as a range is about a screen; `blocks` is for a thread.
    """

    @property
    def line_count(self) -> int:
        """Lines so far, an unfinished last one included."""

    @property
    def size_bytes(self) -> int:
        """Bytes so far; grows with every change, so equal means nothing new."""

    @property
    def generation(self) -> int:
        """Changes when what was read before no longer holds (the file was truncated, a quota dropped its start)."""

    def lines(self, start: int, stop: int) -> list[str]:
        """Decoded and sanitised lines of a range, fewer at the end. A redrawn bar is its last state."""

    def blocks(self, start: int) -> Iterator[tuple[int, bytes]]:
        """(number of its first line, raw bytes of whole lines) from line `start` to the end as it is now.

        A block is about a megabyte; may be called in another thread than the follower's.
        """


@dataclass(frozen=True, slots=True)
class ProfileSummary:
    """A profile as the launch form offers it."""

    name: str
    engine: str
    summary: str
    """One line: model and what is special."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Resolved settings by their Python name (`extends` applied), secrets masked; values may be overridden."""
    host: str | None = None
    """The host the profile names; None when it leaves that open."""
    problem: str = ""
    """Why it can't be used (a broken file); "" when it can."""


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """Start one server from one profile."""

    profile: str
    host: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Settings that differ from the profile's; a value of None removes the setting."""
    preflight: bool = True
    """False: nothing is looked at before the start, and a bad one fails by itself."""
    allow_key_argument: bool = False
    """A person has agreed that a key goes as an argument, where everybody on the host sees it."""
    when_free: bool = False
    """It waits on its host until the GPUs and ports that it needs are free, whatever becomes of this console."""
    look_every_s: float = 10.0
    """Seconds between two looks of what waits there."""


@dataclass(frozen=True, slots=True)
class AttachOrder:
    """Adopt a server that somebody started by hand, found by one of these."""

    host: str
    by: Literal["log", "log-command", "port", "pid"]
    value: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A running engine on a host that is not watched yet; offered unasked."""

    host: str
    pid: int
    engine: str
    port: int | None
    user: str | None
    command: str
    """Secrets masked."""
    log_path: str | None


@dataclass(frozen=True, slots=True)
class StopPlan:
    """What a stop would hit, for the question that is asked first."""

    launch_id: str
    owner: str
    ours: bool
    """False: the person must type the launch's name to go on."""
    processes: tuple[str, ...]
    """One line a process."""
    running_requests: int | None
    running_benches: int
    notes: tuple[str, ...] = ()


class Commands(Protocol):
    """What the person at the console may do."""

    read_only: bool

    @property
    def measuring(self) -> MeasuringCommands | None:
        """None where nothing can be measured."""

    @property
    def history(self) -> HistoryCommands | None:
        """None where no history is kept."""

    @property
    def form(self) -> FormCommands | None:
        """None where no profile can be edited."""

    @property
    def holders(self) -> HolderCommands | None:
        """None where no host can be looked at."""

    def can(self, what: str) -> str:
        """Why `what` (the name of a method here, or `bench`) can't be done at all now; "" when it can."""

    def why_no_change(self, host: str) -> str:
        """Why nothing may be changed on this host from here; "" when it may."""

    def line_source(self, launch_id: str) -> LineSource | None:
        """None while nothing of its log has arrived."""

    async def profiles(self) -> Sequence[ProfileSummary]: ...

    async def known_hosts(self) -> Sequence[str]:
        """Names that could be added: aliases of ~/.ssh/config that are not added yet, and `local`."""

    async def add_host(self, name: str) -> None:
        """Adds and connects. What stands in the way shows as the host's state on the board."""

    async def remove_host(self, name: str) -> None: ...

    async def reconnect(self, name: str) -> None: ...

    async def trust_key(self, host: str, fingerprint: str) -> None:
        """Writes the key that has this fingerprint to known_hosts and connects; any other key is refused."""

    async def answer(self, question_id: str, text: str | None) -> None:
        """Answers a question on the board; None declines it."""

    async def found_servers(self, host: str) -> Sequence[FoundServer]: ...

    async def launch(self, order: LaunchOrder) -> str:
        """Returns the new launch's id as soon as its start is under way."""

    def agree_to_key_argument(self, profile: str) -> None:
        """The person agrees that this profile's key goes as an argument, as long as this console runs."""

    async def relaunch(self, launch_id: str, overrides: Mapping[str, Any]) -> str:
        """Stops it when it runs, then starts the same with `overrides`; returns the new id."""

    async def stop_plan(self, launch_id: str) -> StopPlan: ...

    async def stop(self, launch_id: str, progress: Progress) -> None:
        """Stops and verifies; what is left over stands in the launch's view."""

    async def attach(self, order: AttachOrder) -> str: ...

    async def forget(self, launch_id: str) -> None:
        """Drops an ended launch from the list; its folder on the host stays."""

    async def collect_evidence(self, launch_id: str, progress: Progress) -> Path:
        """py-spy of our ranks where it is there, NCCL environment, GPU samples, last lines a rank, in a new folder."""
