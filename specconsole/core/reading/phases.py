"""Events to phases: where the start is, which stays it had, what each rank did last.

Ranks run side by side and print the same lines. A stay is entered by the first rank that says so for the n-th
time; ranks that say it later are behind, not a new stay. Nothing here assumes an order of phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from specconsole.core.reading.bar_phases import told_bar
from specconsole.core.reading.bars import Bar
from specconsole.core.reading.eta import BarTrack, track
from specconsole.core.reading.eta_set import BarSet
from specconsole.core.reading.events import BarSeen, Count, Enter, Event, HttpUp, Leave, Line, Ready, StopAsked, Stopped
from specconsole.core.reading.model import START_PHASES, Part, Phase, RankReading, TimelineEntry

_AFTER_READY: tuple[Phase, ...] = ("ready", "serving", "stopping", "stopped")
MAX_STAYS = 400
MAX_RANKS = 4096


@dataclass(slots=True)
class Stay:
    """One stay in a phase."""

    phase: Phase
    part: Part | None
    line_no: int
    start_s: float | None
    end_s: float | None = None
    claims_s: dict[str, float] = field(default_factory=dict)
    """Rank -> its own figures for what it did in this stay, summed."""
    since_s: float | None = None
    """Where the present stay began; `start_s` is where the first one did (`ready` and `serving` come again)."""
    earlier_s: float = 0.0
    """For `ready` and `serving`: the seconds of stays before the present one."""
    count: int = 1
    left: bool = False
    """The phase said that it is over and none has begun since."""
    start_at_s: float | None = None
    """Arrival of its first line on the caller's clock."""


@dataclass(slots=True)
class RankState:
    """What one rank did."""

    phase: Phase = "starting"
    part: Part | None = None
    line_no: int = 0
    loads: int = 0
    """How often it began to load weights: 1 the target's, 2 the draft's."""
    entered: dict[str, int] = field(default_factory=dict)
    """`phase/part` -> how often."""
    at_s: float | None = None


@dataclass(slots=True)
class Phases:
    """State of the reducer; plain data."""

    stays: list[Stay] = field(default_factory=list)
    current: int = -1
    """Which of them goes on."""
    ranks: dict[str, RankState] = field(default_factory=dict)
    entered: dict[str, int] = field(default_factory=dict)
    bar: BarTrack | None = None
    downloads: BarSet = field(default_factory=BarSet)
    """Of a download all bars, one a file and one for all; `bar` is then the one that stands for it."""
    bar_desc: str = ""
    bars_done: int = 0
    """Bars of this phase and part that reached their total."""
    was_ready: bool = False
    port: int | None = None
    draft_expected: bool = False
    first_line_no: int = 1
    """Where this start begins in the file."""
    progress_line_no: int = 0
    progress_at_s: float | None = None
    dropped: int = 0
    """Stays left out of the timeline because there were too many."""

    # ------------------------------------------------------------------ reading it

    @property
    def now(self) -> Stay:
        """The stay that goes on; `starting` before the first line."""
        return self.stays[self.current] if self.stays else Stay("starting", None, self.first_line_no, None)

    @property
    def phase(self) -> Phase:
        return self.now.phase

    @property
    def part(self) -> Part | None:
        return self.now.part

    @property
    def done_share(self) -> float | None:
        """How much of the bar that goes on was done, 0 to 1; None without one that knows its end."""
        return self.bar.done / self.bar.total if self.bar is not None and self.bar.total else None

    @property
    def nth(self) -> int:
        """How many earlier stays in the same phase and part there were."""
        here = self.now
        return sum(1 for stay in self.stays if stay is not here and (stay.phase, stay.part) == (here.phase, here.part))

    # ------------------------------------------------------------------ feeding it

    def see(self, line: Line, event: Event, now_s: float | None) -> None:
        """One event; `now_s` is the log's time at this line (its own stamp, else the last one before)."""
        if isinstance(event, Enter):
            self._enter(line, event, now_s)
        elif isinstance(event, Leave):
            self._leave(line, event, now_s)
        elif isinstance(event, BarSeen):
            self._bar(line, event, now_s)
        elif isinstance(event, Count):
            self._enter(line, Enter(event.phase, event.part), now_s)
            self._track(line, told_bar(event), now_s)
        elif isinstance(event, HttpUp):
            self.port = event.port or self.port
            if not self.was_ready and self.phase not in ("warm-up", "stopping", "stopped"):
                self._begin(line, "warm-up", None, now_s)
        elif isinstance(event, Ready):
            self.was_ready = True
            if self.phase not in _AFTER_READY:
                self._begin(line, "ready", None, now_s)
        elif isinstance(event, StopAsked):
            if self.phase not in ("stopping", "stopped"):
                self._begin(line, "stopping", None, now_s)
        elif isinstance(event, Stopped) and self.phase == "stopping":
            self._begin(line, "stopped", None, now_s)

    def switch(self, line: Line, phase: Phase, now_s: float | None) -> None:
        """To `serving` or `ready`, as requests come and go; also in a log cut at its left: what serves has started."""
        if self.phase in (phase, "stopping", "stopped"):
            return
        if phase == "ready" and not self.was_ready and self.phase != "serving":
            return
        self._begin(line, phase, None, now_s)

    def switch_row(self, steps: Sequence[tuple[Phase, int, float]], rank: str | None, at_s: float | None) -> None:
        """`switch` for many lines, each told as phase, line number and the log's time."""
        for i, (phase, no, now_s) in enumerate(steps):
            if {"ready", "serving"} <= {stay.phase for stay in self.stays} and self.phase in ("ready", "serving"):
                self._alternate(steps[i:], at_s)
                return
            self.switch(Line("", no, "", "", "", rank, "", now_s, at_s), phase, now_s)

    def _alternate(self, steps: Sequence[tuple[Phase, int, float]], at_s: float | None) -> None:
        """What `switch` does between two stays that there are already, without a call for each."""
        here = self.now
        index, there = next(
            (i, stay) for i, stay in enumerate(self.stays) if stay.phase in ("ready", "serving") and stay is not here
        )
        indexes = {here.phase: self.current, there.phase: index}
        switched = False
        for phase, _, now_s in steps:
            if phase == here.phase:
                continue
            if here.since_s is not None and now_s < here.since_s:
                now_s = here.since_s
            if not here.left:
                here.end_s = now_s
            if there.since_s is not None and there.end_s is not None:
                there.earlier_s += max(0.0, there.end_s - there.since_s)
            there.since_s, there.end_s, there.left = now_s, None, False
            there.count, there.start_at_s = there.count + 1, at_s
            here, there, switched = there, here, True
        if switched:
            self.current = indexes[here.phase]
            self.bar, self.bar_desc, self.bars_done = None, "", 0

    def touch(self, line: Line) -> None:
        """A rank said something."""
        if line.rank is None or (line.rank not in self.ranks and len(self.ranks) >= MAX_RANKS):
            return
        rank = self.ranks.setdefault(line.rank, RankState())
        rank.line_no = line.no
        rank.at_s = line.at_s if line.at_s is not None else rank.at_s

    def _enter(self, line: Line, event: Enter, now_s: float | None) -> None:
        if self.was_ready and event.phase in START_PHASES:
            return
        if self.phase in ("stopping", "stopped") and event.phase in START_PHASES:
            return
        if event.stay and self.bar is not None and not self.bar_finished():
            return
        rank = self.ranks.setdefault(line.rank or "", RankState()) if len(self.ranks) < MAX_RANKS else RankState()
        rank.line_no, rank.at_s = line.no, line.at_s if line.at_s is not None else rank.at_s
        part = event.part
        if event.ordinal:
            if not rank.loads and any(key.startswith(("weights/left", "kv-cache/", "graph-")) for key in rank.entered):
                rank.loads = 1  # a log cut at its left: the target's begin is not in it
            rank.loads += 1
            part = "target" if rank.loads == 1 else "draft"
        elif part is None and event.phase == "graph-capture":
            part = self._graph_part(rank)
        elif part is None and event.phase == "weights":
            part = "target" if rank.loads < 2 else "draft"
        key = f"{event.phase}/{part or ''}"
        again = (rank.phase, rank.part) == (event.phase, part) and key in rank.entered and not event.ordinal
        if not again:
            rank.entered[key] = rank.entered.get(key, 0) + 1
        rank.phase, rank.part = event.phase, part
        if rank.entered[key] > self.entered.get(key, 0):
            self.entered[key] = rank.entered[key]
            if (self.phase, self.part) != (event.phase, part) or self.now.left or event.ordinal:
                self._begin(line, event.phase, part, now_s)
        elif again and (self.phase, self.part) == (event.phase, part):
            self.now.left = False
        self.moved(line)

    def _graph_part(self, rank: RankState) -> Part:
        """Which graphs, where the line does not say: those of the model that was loaded last, except that newer
        SGLang loads both before it captures any and then names the draft's."""
        if rank.loads >= 2 and "graph-capture/target" in rank.entered:
            return "draft"
        return "target"

    def _leave(self, line: Line, event: Leave, now_s: float | None) -> None:
        rank = self.ranks.get(line.rank or "")
        if rank is None and len(self.ranks) < MAX_RANKS:
            rank = self.ranks[line.rank or ""] = RankState()
        here = self.now
        part = event.part
        if part is None and rank is not None and rank.phase == event.phase:
            part = rank.part
        if here.phase == event.phase and (part is None or here.part == part):
            here.end_s = now_s if now_s is not None else here.end_s
            if event.seconds is not None and (line.rank in here.claims_s or len(here.claims_s) < 64):
                key = line.rank or ""
                here.claims_s[key] = here.claims_s.get(key, 0.0) + event.seconds
            here.left = True
            self.bar, self.bar_desc = None, ""
        elif event.seconds is not None:
            for stay in reversed(self.stays):
                if stay.phase == event.phase and (part is None or stay.part == part):
                    stay.claims_s.setdefault(line.rank or "", event.seconds)
                    break
        if rank is not None:
            rank.entered.setdefault(f"{event.phase}/left", 1)
        self.moved(line)

    def _bar(self, line: Line, event: BarSeen, now_s: float | None) -> None:
        if self.was_ready or self.phase in ("stopping", "stopped"):
            return
        phase, part = event.phase, event.part
        if phase is None:
            phase, part = self.phase, self.part
        elif phase == self.phase and part is None:
            part = self.part
        elif part is None:
            part = self._bar_part(line, phase)
        if phase == "weights" and self._second_model(event):
            part = "draft"
        if (phase, part) != (self.phase, self.part):
            if line.rank is not None:
                # A rank that is behind goes on with its bar; one that is ahead takes the start with it.
                self._enter(line, Enter(phase, part), now_s)
            else:
                self.entered[f"{phase}/{part or ''}"] = self.entered.get(f"{phase}/{part or ''}", 0) + 1
                self._begin(line, phase, part, now_s)
            if (phase, part) != (self.phase, self.part):
                return
        elif self.now.left and event.bar.total != event.bar.done:
            self.now.left = False
        bare = phase == "graph-capture" and event.bar.unit == "item"  # to SGLang 0.4: `  4%|4  | 1/23 [00:02<...`
        self._track(line, replace(event.bar, unit="graph") if bare else event.bar, now_s)

    def _bar_part(self, line: Line, phase: Phase) -> Part | None:
        rank = self.ranks.get(line.rank or "") or RankState()
        if phase == "graph-capture":
            return self._graph_part(rank)
        if phase == "weights":
            return (
                "draft" if rank.loads >= 2 or (self.draft_expected and "weights/target" in self.entered) else "target"
            )
        return None

    def _second_model(self, event: BarSeen) -> bool:
        """vLLM prints no word between the target's bar and the draft's: full, then from the start again."""
        done_before = self.phase == "weights" and (self.bars_done > 0 or self.now.left)
        fresh = event.bar.done == 0 or (event.bar.total is not None and event.bar.done < event.bar.total)
        named = any(rank.loads for rank in self.ranks.values())
        return bool(done_before and fresh and self.draft_expected and not named and self.part != "draft")

    def _track(self, line: Line, bar: Bar, now_s: float | None) -> None:
        if self.phase == "download":
            self.downloads = self.downloads.with_bar(bar, stamp_s=now_s, arrival_s=line.at_s)
            self.bar = self.downloads.main()
        else:
            self.bar = track(self.bar, bar, stamp_s=now_s, arrival_s=line.at_s)
        self.bar_desc = bar.desc
        if bar.total is not None and bar.done >= bar.total:
            self.bars_done += 1
        self.moved(line)

    def bar_finished(self) -> bool:
        """Whether the bar that was seen last is at its end."""
        return self.bars_done > 0 and self.bar is not None

    def moved(self, line: Line) -> None:
        """Something went on: silence counts from here."""
        self.progress_line_no = line.no
        if line.at_s is not None:
            self.progress_at_s = line.at_s

    def _begin(self, line: Line, phase: Phase, part: Part | None, now_s: float | None) -> None:
        self.moved(line)
        if not self.stays and phase != "starting" and line.no > self.first_line_no:
            start_s = None if now_s is None else 0.0
            self.stays.append(Stay("starting", None, self.first_line_no, start_s, since_s=start_s))
        if self.stays:
            last = self.now
            if now_s is not None and last.since_s is not None:
                now_s = max(now_s, last.since_s)  # ranks' stamps overtake each other
            if not last.left and now_s is not None:
                last.end_s = now_s
        self.bar, self.bar_desc, self.bars_done, self.downloads = None, "", 0, BarSet()
        if phase in ("ready", "serving"):
            for i, stay in enumerate(self.stays):
                if stay.phase == phase:
                    # One entry for all stays in it.
                    stay.earlier_s = _length(stay) or 0.0
                    stay.since_s, stay.end_s, stay.left = now_s, None, False
                    stay.count, stay.start_at_s = stay.count + 1, line.at_s
                    self.current = i
                    return
        if len(self.stays) >= MAX_STAYS:
            self.dropped += 1
            del self.stays[MAX_STAYS // 2]
        self.stays.append(Stay(phase, part, line.no, now_s, since_s=now_s, start_at_s=line.at_s))
        self.current = len(self.stays) - 1

    # ------------------------------------------------------------------ results

    def timeline(self, now_s: float | None) -> tuple[TimelineEntry, ...]:
        """The stays, the last one as long as the log so far."""
        entries = []
        if not self.stays:
            return (
                TimelineEntry("starting", None, None if now_s is None else 0.0, _rounded(now_s), self.first_line_no),
            )
        for i, stay in enumerate(self.stays):
            seconds = _length(stay, now_s if i == self.current % len(self.stays) else None)
            entries.append(
                TimelineEntry(
                    stay.phase, stay.part, _rounded(stay.start_s), _rounded(seconds), stay.line_no, stay.count
                )
            )
        return tuple(entries)

    def rank_readings(self, now_at_s: float | None) -> tuple[RankReading, ...]:
        """Ranks in their natural order."""
        return tuple(
            RankReading(
                name,
                rank.phase if not self.was_ready else self.phase,
                rank.line_no,
                None if now_at_s is None or rank.at_s is None else max(0.0, now_at_s - rank.at_s),
            )
            for name, rank in sorted(self.ranks.items(), key=lambda item: _natural(item[0]))
            if name
        )


def _length(stay: Stay, now_s: float | None = None) -> float | None:
    end = stay.end_s if stay.end_s is not None else now_s
    if stay.phase in ("ready", "serving"):
        if stay.since_s is None or end is None:
            return stay.earlier_s or None
        return stay.earlier_s + max(0.0, end - stay.since_s)
    measured = max(0.0, end - stay.start_s) if end is not None and stay.start_s is not None else None
    # Stamps have whole seconds; the server's own figure is finer, unless it leaves out part of the stay.
    claimed = max(stay.claims_s.values(), default=None)
    if claimed is not None and (measured is None or abs(measured - claimed) <= 1.5):
        return claimed
    return measured


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _natural(name: str) -> tuple[object, ...]:
    digits, out = "", []
    for c in name + "\0":
        if c.isdigit():
            digits += c
        else:
            if digits:
                out.append((1, int(digits[:18]), ""))
                digits = ""
            out.append((0, 0, c))
    return tuple(out)
