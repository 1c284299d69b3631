"""What a line of a server's log can mean: the values that dialects produce and reducers consume.

A dialect looks at one `Line` and answers with events; it keeps no state. Which stay in a phase is meant, whether
a complaint was the cause, what the throughput of all ranks is: that is for the reducers, which see all lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from specconsole.core.reading.bars import Bar
from specconsole.core.reading.model import FailureClass, Part, Phase, WarningClass


@dataclass(frozen=True, slots=True)
class Line:
    """One line as a dialect sees it: wrappers, the server's own prefix and every escape are already off."""

    text: str
    """The message alone, without control characters, right-stripped; indentation is kept (tracebacks need it)."""
    no: int
    """1-based number of the physical line (separated by LF; updates separated by CR share a number)."""
    whole: str = ""
    """The line as a person should see it: sanitised, with the server's own prefix, without foreign wrappers."""
    form: str = ""
    """Whose prefix it carried: an engine's name, `python`, `glog`, `nccl`, `torch`, or "" for none."""
    level: str = ""
    """`INFO`, `WARNING`, `ERROR`, ... in full and upper case; "" when the prefix names none."""
    rank: str | None = None
    """`TP3`, `DP1 TP3`, `Worker_TP0`, `EngineCore_DP0`, `Rank 2`, as printed; None without one."""
    source: str = ""
    """`core.py:500` where the prefix names the place in the server's code."""
    stamp_s: float | None = None
    """Seconds on the log's own clock (since the first stamped line); None when the line has no stamp."""
    at_s: float | None = None
    """When its bytes arrived, on the caller's clock; None when it was not read live."""
    complete: bool = True
    """False for what stands behind the last separator: the file may go on inside this line."""


@dataclass(frozen=True, slots=True)
class Started:
    """A server process begins here (its arguments, its banner). A second one in a file is a new start."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the server says about itself; None and missing keys leave what was known."""

    version: str | None = None
    model: str | None = None
    draft_model: str | None = None
    port: int | None = None
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Enter:
    """A phase begins, or a line that only this phase prints was seen."""

    phase: Phase
    part: Part | None = None
    ordinal: bool = False
    """True where the line is the same for target and draft and only its count tells them apart (SGLang's
    `Load weight begin`): the reducer counts per rank, and the second one is the draft's."""
    stay: bool = False
    """True for a line that may come at any time (a JIT message): it does not end a phase that has a bar going."""


@dataclass(frozen=True, slots=True)
class Leave:
    """A phase says that it is over. `seconds` is its own claim, None where it makes none."""

    phase: Phase
    part: Part | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class BarSeen:
    """A progress bar's update. `phase` is None where the bar's text does not tell (then: the current one)."""

    bar: Bar
    phase: Phase | None = None
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """Progress that is told in words (`Loaded shard 3 of 8`)."""

    done: int
    total: int | None
    unit: str
    phase: Phase
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Figures of one interval of serving. None: this line does not say (another line of the interval may)."""

    accept_length: float | None = None
    gen_throughput_tok_s: float | None = None
    running: int | None = None
    queued: int | None = None
    kv_usage: float | None = None
    group: str = ""
    """The data-parallel rank that the figures belong to; "" where there is one."""
    spans_idle: bool | None = None
    """True where the line counts idle time before it in its rate (SGLang's first decode line after idling).
    None: let the reducer find out from what came before."""
    empty: bool = False
    """True where nothing was held in the KV cache: such a line, behind health probes alone, is theirs."""
    opens: bool = True
    """False for a line that adds to the interval that the line before it opened (vLLM's SpecDecoding line)."""


@dataclass(frozen=True, slots=True)
class Prefill:
    """A prompt was taken in. At most one new token on an idle server is a health probe, not traffic."""

    new_tokens: int
    """0 where the line itself shows that it is a probe."""
    running: int
    queued: int | None = None
    kv_usage: float | None = None
    group: str = ""


@dataclass(frozen=True, slots=True)
class Busy:
    """A request is being worked on."""

    prompt: bool = False
    """Its prompt was taken in; before the ready marker that may be the server's own warm-up."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The server says that nothing is left to do."""


@dataclass(frozen=True, slots=True)
class HttpUp:
    """The HTTP port is open; that is not ready."""

    port: int | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """The server's own last start-up marker."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """A shutdown was asked for and has begun."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The server says that its shutdown is complete."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Alive, and no progress (vLLM's `Waiting for 1 core engine proc(s) to start`)."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Worth a person's look."""

    warning_class: WarningClass
    text: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """A line that states a failure, complains, or passes one on.

    `fatal`: states a cause by itself. `suspect`: may be harmless. `messenger`: says that it is over, not why.
    """

    weight: Literal["fatal", "suspect", "messenger"]
    failure_class: FailureClass | None = None
    text: str | None = None
    """The cause's own words when they are only a part of the line (glued to a bar); None: the whole line."""
    http_bind: bool = False
    """The HTTP port could not be bound: a ready marker after that is another server's."""


Event = (
    Started | Facts | Enter | Leave | BarSeen | Count | Window | Prefill | Busy | Idle | HttpUp | Ready | StopAsked
    | Stopped | Heartbeat | Warn | Trouble
)  # fmt: skip

PROGRESS_EVENTS = (Enter, Leave, BarSeen, Count, Window, Prefill, Busy, Idle, HttpUp, Ready)
"""Signs of life: any of these after a complaint shows that the server went on."""
