"""The reading: what a server's log says, in the vocabulary that every pane, verb and store uses.

Plain values, no behaviour but `to_json`. Units are SI; None is "unknown" and never stands for a number.
The vocabulary (`PHASES`, `FAILURE_CLASSES`, `WARNING_CLASSES`) is closed: adding an id is fine, renaming is not.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from specconsole.core.reading.phase_names import PHASES as PHASES
from specconsole.core.reading.phase_names import START_PHASES as START_PHASES
from specconsole.core.reading.phase_names import Phase as Phase

FailureClass = Literal[
    "gpu-oom", "kv-cache-too-small", "gpu-busy", "host-memory", "killed", "port-in-use", "bad-argument",
    "model-not-found", "checkpoint-corrupt", "unsupported-model", "draft-mismatch", "context-too-long",
    "import-error", "jit-build-failed", "driver-mismatch", "collective-failure", "network", "hang",
    "gpu-hardware", "device-error", "code-error",
]  # fmt: skip

WarningClass = Literal[
    "speculation-useless", "speculation-off", "setting-overridden", "kv-full", "zombie-requests",
    "health-failing", "heartbeat-no-progress", "slow-load", "deprecated-flag", "exception-logged",
]  # fmt: skip

Part = Literal["target", "draft", "draft-extend"]


@dataclass(frozen=True, slots=True)
class EtaRange:
    """Seconds from now; `low <= mid <= high`, meant to hold the truth nine times in ten."""

    low: float
    mid: float
    high: float
    basis: str
    """What it rests on: `bar`, `stamps`, `arrival`, `history:n=7`, `bar+history:n=7`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Of the current phase and part."""

    done: int
    total: int | None
    unit: str
    """`shard`, `graph`, `percent`, `byte`, `file`, `token`, `item`."""
    rate_per_s: float | None
    eta_s: EtaRange | None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to try; `set` holds launch settings to change, computed from this start's numbers, or None."""

    text: str
    set: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The cause, not the messenger: the first fatal statement in time over all ranks."""

    failure_class: FailureClass
    line_no: int | None
    """1-based line of the cause in the file; None when no line states it (`killed`)."""
    line: str | None
    in_phase: Phase | None
    in_part: Part | None
    rank: str | None
    messenger: str | None
    advice: Advice | None
    before: tuple[str, ...] = ()
    """The last lines before the cause, oldest first, sanitised."""

    def to_json(self) -> dict[str, Any]:
        shape = asdict(self)
        return {"class": shape.pop("failure_class"), **shape}


@dataclass(frozen=True, slots=True)
class ReadingWarning:
    """Not fatal, worth a look."""

    warning_class: WarningClass
    line_no: int
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"class": self.warning_class, "line_no": self.line_no, "text": self.text}


@dataclass(frozen=True, slots=True)
class Metrics:
    """Of the last full window; sums over data-parallel ranks, accept length weighted by running requests."""

    accept_length: float | None = None
    """Tokens per target step, bonus token included."""
    gen_throughput_tok_s: float | None = None
    running: int | None = None
    queued: int | None = None
    kv_usage: float | None = None
    """0 to 1."""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server said about itself."""

    version: str | None = None
    model: str | None = None
    draft_model: str | None = None
    port: int | None = None
    args: dict[str, Any] = field(default_factory=dict)
    """Resolved settings by their Python name, as the server printed them; secrets masked."""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One stay in a phase."""

    phase: Phase
    part: Part | None
    start_s: float | None
    """Seconds from the first stamped line; None without stamps."""
    seconds: float | None
    """Length of the stay; None while unknown. The last entry's grows."""
    line_no: int
    count: int = 1
    """`ready` and `serving` are one entry each after the first `ready`, with total seconds and a count."""


@dataclass(frozen=True, slots=True)
class RankReading:
    """The last thing that one rank said."""

    rank: str
    phase: Phase
    line_no: int
    silent_s: float | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a launch's log says now."""

    engine: str
    phase: Phase
    part: Part | None
    progress: Progress | None
    ready_eta_s: EtaRange | None
    failure: Failure | None
    warnings: tuple[ReadingWarning, ...]
    metrics: Metrics | None
    server: ServerFacts
    timeline: tuple[TimelineEntry, ...]
    suspect: Failure | None
    ranks: tuple[RankReading, ...]
    starts: int
    basis: Literal["whole", "tail"]
    lines: int
    bytes: int
    silent_s: float | None = None
    """Only a reading with a clock fills this and `stalled`."""
    stalled: bool | None = None
    stall_reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The contract's JSON object; every key present."""
        return {
            "engine": self.engine,
            "phase": self.phase,
            "part": self.part,
            "progress": asdict(self.progress) if self.progress else None,
            "ready_eta_s": asdict(self.ready_eta_s) if self.ready_eta_s else None,
            "failure": self.failure.to_json() if self.failure else None,
            "warnings": [w.to_json() for w in self.warnings],
            "metrics": asdict(self.metrics) if self.metrics else None,
            "server": asdict(self.server),
            "timeline": [asdict(entry) for entry in self.timeline],
            "suspect": self.suspect.to_json() if self.suspect else None,
            "ranks": [asdict(rank) for rank in self.ranks],
            "starts": self.starts,
            "basis": self.basis,
            "lines": self.lines,
            "bytes": self.bytes,
            "silent_s": self.silent_s,
            "stalled": self.stalled,
            "stall_reason": self.stall_reason,
        }
