"""Estimates of whole recorded starts, leave-one-out: each start is foretold from all the others and its own bars."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._eta_shapes import Guess
from specconsole.core.reading.bars import Bar
from specconsole.core.reading.eta import BarTrack, bar_eta, track
from specconsole.core.reading.history import History, PhaseSample, StartKey, samples_of
from specconsole.core.reading.history_eta import combined_phase_eta, phase_history_eta, ready_eta
from specconsole.core.reading.model import EtaRange, TimelineEntry

STARTS = Path(__file__).parent.parent / "tests" / "data" / "eta" / "starts.jsonl"


def recorded_starts(path: Path = STARTS) -> list[dict[str, Any]]:
    """The recorded starts as JSON objects: name, key, ready_s, phases, bars (see tests/data/eta/README.md)."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def bar_of(shape: dict[str, Any], update: list[Any]) -> tuple[float, Bar]:
    """(arrival, bar) of one recorded update."""
    at_s, done, elapsed_s, remaining_s, rate = update
    unit = shape.get("unit", "item")
    return at_s, Bar(shape["desc"], done, shape["total"], unit, None, elapsed_s, remaining_s, rate, 0, 0, True)


def samples(start: dict[str, Any]) -> tuple[PhaseSample, ...]:
    entries = [TimelineEntry(phase, part, begin, seconds, 0) for phase, part, begin, seconds in start["phases"]]
    if start["ready_s"] is not None:
        entries.append(TimelineEntry("ready", None, start["ready_s"], None, 0))
    return samples_of(StartKey(**start["key"]), entries, at_s=0.0)


def start_guesses(starts: list[dict[str, Any]], moments: tuple[float, ...]) -> Iterator[tuple[str, Guess]]:
    """("ready" or "phase", guess) for each start that became ready, at each moment of its way."""
    taken = {start["name"]: samples(start) for start in starts}
    for start in starts:
        if start["ready_s"] is None:
            continue
        key = StartKey(**start["key"])
        history = History(s for name, found in taken.items() if name != start["name"] for s in found)
        for moment in moments:
            now_s = moment * start["ready_s"]
            phase_eta, to_ready = _foretold(start, key, history, now_s)
            yield "ready", _guess(start["name"], moment, start["ready_s"] - now_s, start["ready_s"], to_ready)
        for _, part, begin_s, seconds in (p for p in start["phases"] if p[3] >= 1.0):
            for moment in moments:
                phase_eta, _ = _foretold(start, key, history, begin_s + moment * seconds)
                yield "phase", _guess(f"{start['name']} {part}", moment, (1 - moment) * seconds, seconds, phase_eta)


def _foretold(
    start: dict[str, Any], key: StartKey, history: History, now_s: float
) -> tuple[EtaRange | None, EtaRange | None]:
    index = max(i for i, phase in enumerate(start["phases"]) if phase[2] <= now_s)
    phase, part, begin_s, _ = start["phases"][index]
    nth = sum(1 for p in start["phases"][:index] if (p[0], p[1]) == (phase, part))
    state: BarTrack | None = None
    for shape in start["bars"]:
        for update in shape["updates"]:
            at_s, bar = bar_of(shape, update)
            if begin_s <= at_s <= now_s:
                state = track(state, bar, arrival_s=at_s)
    own = bar_eta(state, now_s=now_s) if state and not state.complete else None
    spent_s = now_s - begin_s
    phase_eta = combined_phase_eta(history, key, phase, part, nth, spent_s, own)
    if phase_eta is None:
        phase_eta = phase_history_eta(history, key, phase, part, nth, spent_s)
    return phase_eta, ready_eta(history, key, phase, part, nth, phase_eta)


def _guess(name: str, moment: float, truth_s: float, whole_s: float, eta: EtaRange | None) -> Guess:
    ends = (eta.low, eta.mid, eta.high) if eta else (None, None, None)
    return Guess(name, moment, True, truth_s, whole_s, *ends, None)
