"""The launch history: what is asked of it, and its rows. The store makes them, verbs and screens show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from specconsole.core.launching.annotations import NONE_YET, Annotations


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """Which launches; every condition that is given must hold."""

    text: str = ""
    """Words, each of which must stand somewhere in profile, arguments, names of environment variables, model, owner,
    host, tags, notes, or the cause of a failure; upper and lower case are the same."""
    host: str | None = None
    profile: str | None = None
    engine: str | None = None
    outcome: str | None = None
    """`stopped`, `failed`, ..., a failure's class (`gpu-oom`), or `open`: not seen to end."""
    tag: str | None = None
    since_s: float | None = None
    """Asked for at this moment or later, seconds since the epoch."""
    launch_ids: tuple[str, ...] | None = None
    """Only these."""
    id_begins: str = ""
    """Only those whose id begins so."""
    limit: int = 200

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.text.casefold().split())


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One launch. None: not known, never 0."""

    launch_id: str
    host: str
    profile: str
    engine: str
    outcome: str
    """The life cycle's last word; "" when nobody saw it end."""
    at_s: float
    """When it was asked for, seconds since the epoch by its console; 0 where that is not known."""
    owner: str = ""
    folder: str = ""
    cause: str = ""
    """Class of the failure; "" without one."""
    cause_line: str = ""
    started_at_s: float | None = None
    """Host's wall clock."""
    ended_at_s: float | None = None
    answered_after_s: float | None = None
    """From the start to the first proven answer."""
    accept_length: float | None = None
    """Tokens per target step, bonus token included: of the best point if one was measured, else the log's last word."""
    best_tok_s: float | None = None
    """Highest output throughput of its points."""
    best_at: str = ""
    """Where: `C=32` or `4/s`."""
    exit_status: int | None = None
    port: int | None = None
    model: str = ""
    draft_model: str = ""
    description: str = ""
    command: str = ""
    """Secrets masked."""
    profile_tags: tuple[str, ...] = ()
    annotations: Annotations = NONE_YET
    state: str = ""
    """What it is just now, of a launch that is watched; "" for others."""

    @property
    def tags(self) -> tuple[str, ...]:
        return self.annotations.tags(self.profile_tags)

    @property
    def duration_s(self) -> float | None:
        """From its start to its end; None while it runs, and when either is unknown."""
        if self.started_at_s is None or self.ended_at_s is None:
            return None
        return max(0.0, self.ended_at_s - self.started_at_s)

    @property
    def state_text(self) -> str:
        """What it is now, or its outcome with the cause: `failed gpu-oom`."""
        word = self.state or self.outcome
        if not word:
            return "not seen to end"
        return f"{word} {self.cause}" if self.cause and word == "failed" else word

    def to_json(self) -> dict[str, Any]:
        """One object of `history --json` (docs/json.md)."""
        shape = asdict(self)
        shape.pop("annotations")
        shape.pop("profile_tags")
        notes = [asdict(note) for note in self.annotations.notes]
        named = {name: shape[name] or None for name in ("state", "outcome", "cause", "cause_line")}
        return {**shape, **named, "duration_s": self.duration_s, "tags": list(self.tags), "notes": notes}


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """The newest first."""

    rows: tuple[HistoryRow, ...]
    more: bool = False
    """Whether the limit left some out."""


def pick(shape: Mapping[str, Any], key: str, *kinds: type) -> Any:
    """A value of a stored object where it has one of these types, else None (true and false are no numbers)."""
    value = shape.get(key)
    if isinstance(value, bool) and bool not in kinds:
        return None
    return value if isinstance(value, kinds) else None
