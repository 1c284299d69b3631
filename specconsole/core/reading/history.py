"""What earlier starts took: phase durations under the key of the start that they come from.

A sample is one stay of one start in one phase. Starts differ, and so many keys seldom match exactly: `History.alike`
drops keys in a stated order, those that don't matter for the phase first, and says how many that matter it had to
drop, so that the estimate can widen. Phases that never finished (killed, failed, console gone) stay in as lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from specconsole.core.reading.model import START_PHASES, Part, Phase, TimelineEntry


@dataclass(frozen=True, slots=True)
class StartKey:
    """What a start's durations depend on."""

    engine: str
    version: str | None = None
    """None: unknown, matches any."""
    model: str | None = None
    quantization: str | None = None
    """None: as the checkpoint is."""
    tp: int = 1
    pp: int = 1
    dp: int = 1
    draft: str | None = None
    """The speculation in one word, such as `EAGLE3:my-draft`; None without speculation."""
    graph_sizes: str | None = None
    """The sizes captured, or the setting that decides them; None: the server's default."""
    host: str | None = None
    """None: unknown, matches any."""
    cache: Literal["cold", "warm"] | None = None
    """Page cache and compiled kernels at the start; None: unknown, matches any."""

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> StartKey:
        """Keys that this version does not know are left out."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in shape.items() if name in known})


_UNKNOWN_MATCHES_ANY = frozenset({"version", "host", "cache"})

MATTERS: dict[str, tuple[str, ...]] = {
    # The last is dropped first. Keys not named don't matter for the phase and are dropped before all of these.
    "starting": ("host", "version", "cache"),
    "distributed": ("host", "tp", "pp", "dp", "version"),
    "download": ("model", "quantization", "host"),
    "weights": ("model", "quantization", "host", "cache", "tp", "pp", "draft", "version"),
    "kv-cache": ("model", "host", "tp", "pp", "draft", "quantization", "version"),
    "compile": ("model", "cache", "host", "tp", "quantization", "draft", "graph_sizes", "version"),
    "graph-capture": ("model", "graph_sizes", "cache", "host", "tp", "draft", "quantization", "version"),
    "warm-up": ("model", "host", "draft", "cache", "tp", "version"),
    "to-ready": (
        "model", "host", "cache", "draft", "graph_sizes", "tp", "pp", "quantization", "dp", "version",
    ),
}  # fmt: skip
"""Per phase, the keys that matter for its duration, the weightiest first (`to-ready` is the way from a phase's end to a
server that answers). The engine is never dropped, and `weights`, `download` and `compile` never without the model:
another model's size says nothing."""

_NEVER_DROPPED: dict[str, frozenset[str]] = {
    "weights": frozenset({"model"}),
    "download": frozenset({"model"}),
    "compile": frozenset({"model"}),
}
ENOUGH = 3
"""This many samples under the exact key make it unnecessary to look at starts that differ where it does not matter."""
NEWEST = 40
"""Older samples than the newest so many are not looked at: machines change."""


@dataclass(frozen=True, slots=True)
class PhaseSample:
    """One stay in one phase."""

    key: StartKey
    phase: Phase
    part: Part | None
    nth: int
    """0 for the start's first stay in this phase and part, 1 for its second."""
    seconds: float
    finished: bool
    """False: it took at least `seconds`."""
    to_ready_s: float | None
    """From the end of this stay to a server that answers; None when that never came."""
    at_s: float = 0.0
    """Wall clock of the start, seconds since the epoch."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> PhaseSample:
        return cls(**{**shape, "key": StartKey.from_json(shape["key"])})


@dataclass(frozen=True, slots=True)
class Alike:
    """The samples that an estimate may rest on."""

    finished_s: tuple[float, ...]
    at_least_s: tuple[float, ...]
    """Stays that never finished."""
    dropped: tuple[str, ...]
    """Keys that matter and differ."""


class History:
    """Samples of earlier starts; never changes."""

    def __init__(self, samples: Iterable[PhaseSample] = ()) -> None:
        self._by_place: dict[tuple[str, str | None, int], list[PhaseSample]] = {}
        for sample in samples:
            self._by_place.setdefault((sample.phase, sample.part, sample.nth), []).append(sample)
        for stays in self._by_place.values():
            stays.sort(key=lambda sample: sample.at_s)

        self._known: dict[tuple[str, StartKey, str, str | None, int], Alike | None] = {}
        """Answers already given: a reading asks the same five times a second."""

    def __len__(self) -> int:
        return sum(len(stays) for stays in self._by_place.values())

    def phase_seconds(self, key: StartKey, phase: Phase, part: Part | None, nth: int) -> Alike | None:
        """Durations of this stay in the starts most alike; None where none is alike enough."""
        asked = (phase, key, phase, part, nth)
        if asked not in self._known:
            stays = self._by_place.get((phase, part, nth), [])
            self._known[asked] = _alike([(s.key, s.seconds, s.finished) for s in stays], key, phase)
        return self._known[asked]

    def seconds_to_ready(self, key: StartKey, phase: Phase, part: Part | None, nth: int) -> Alike | None:
        """Times from the end of this stay to a server that answers."""
        asked = ("to-ready", key, phase, part, nth)
        if asked not in self._known:
            stays = self._by_place.get((phase, part, nth), [])
            found = [(s.key, s.to_ready_s, True) for s in stays if s.to_ready_s is not None]
            self._known[asked] = _alike(found, key, "to-ready")
        return self._known[asked]


def answered_on_timeline(timeline: Sequence[TimelineEntry], silent_s: float | None) -> float | None:
    """The present moment, at which the server was proven to answer, in seconds on the timeline's scale.

    `silent_s` is how long nothing was written. None where either is unknown, or the log's end can't be told from the
    timeline: `ready` and `serving` that came again are one entry for all their stays.
    """
    if silent_s is None or any(entry.count > 1 for entry in timeline):
        return None
    ends = [e.start_s + (e.seconds or 0.0) for e in timeline if e.start_s is not None]
    return max(ends) + silent_s if ends else None


def samples_of(
    key: StartKey, timeline: Sequence[TimelineEntry], *, at_s: float, answered_s: float | None = None
) -> tuple[PhaseSample, ...]:
    """The samples of one start, from the timeline of its reading.

    `answered_s` is when it was proven to answer, in seconds on the timeline's scale; without it the log's own word,
    the first `ready`, ends the start. The last stay of a start that never became ready is a lower bound, and so is
    one that ended in a failure.
    """
    ready_s = answered_s
    if ready_s is None:
        ready_s = next((e.start_s for e in timeline if e.phase == "ready"), None)
    seen: dict[tuple[Phase, Part | None], int] = {}
    samples = []
    for index, entry in enumerate(timeline):
        if entry.phase not in START_PHASES:
            if entry.phase in ("ready", "serving"):
                break
            continue
        place = (entry.phase, entry.part)
        nth = seen.get(place, 0)
        seen[place] = nth + 1
        if entry.seconds is None or entry.start_s is None:
            continue
        following = timeline[index + 1] if index + 1 < len(timeline) else None
        finished = following is not None and following.phase not in ("failed", "stopping", "stopped")
        # A server's own word ("elapsed=1.23 s") leaves out what it does before the next phase begins.
        end_s = entry.start_s + entry.seconds
        if following is not None and following.start_s is not None:
            end_s = max(end_s, following.start_s)
        to_ready_s = max(0.0, ready_s - end_s) if ready_s is not None and finished else None
        seconds = end_s - entry.start_s
        samples.append(PhaseSample(key, entry.phase, entry.part, nth, seconds, finished, to_ready_s, at_s))
    return tuple(samples)


def _alike(stays: list[tuple[StartKey, float, bool]], key: StartKey, what: str) -> Alike | None:
    matters = MATTERS.get(what)
    if matters is None:
        # No start-up phase (`ready`, `serving`, `stopped`): how long it lasts is no matter of history.
        return None
    every = tuple(asdict(key).keys())
    exact = _matching(stays, key, every)
    if len(exact) >= ENOUGH and any(finished for _, finished in exact):
        return _found(exact, ())
    kept = list(matters)
    dropped: list[str] = []
    while True:
        rows = _matching(stays, key, ("engine", *kept))
        if any(finished for _, finished in rows):
            return _found(rows, tuple(dropped))
        if not kept or kept[-1] in _NEVER_DROPPED.get(what, frozenset()):
            return None
        dropped.append(kept.pop())


def _matching(
    stays: list[tuple[StartKey, float, bool]], key: StartKey, names: Sequence[str]
) -> list[tuple[float, bool]]:
    return [(seconds, finished) for other, seconds, finished in stays if _same(other, key, names)][-NEWEST:]


def _same(one: StartKey, other: StartKey, names: Sequence[str]) -> bool:
    for name in names:
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs and not (name in _UNKNOWN_MATCHES_ANY and (mine is None or theirs is None)):
            return False
    return True


def _found(rows: list[tuple[float, bool]], dropped: tuple[str, ...]) -> Alike:
    return Alike(
        tuple(seconds for seconds, finished in rows if finished),
        tuple(seconds for seconds, finished in rows if not finished),
        dropped,
    )
