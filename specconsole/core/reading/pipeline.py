"""Events to state: engine, starts, and the reducers, fed line by line. All of it is plain data for a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specconsole.core.reading import generic
from specconsole.core.reading.bar_phases import bar_phase
from specconsole.core.reading.bars import Bar
from specconsole.core.reading.budgets import Budgets
from specconsole.core.reading.dialect import Dialect
from specconsole.core.reading.events import (
    PROGRESS_EVENTS,
    BarSeen,
    Busy,
    Enter,
    Event,
    Facts,
    Heartbeat,
    HttpUp,
    Idle,
    Leave,
    Line,
    Prefill,
    Ready,
    Started,
    StopAsked,
    Stopped,
    Trouble,
    Warn,
    Window,
)
from specconsole.core.reading.failures import Failures
from specconsole.core.reading.findings import Findings
from specconsole.core.reading.model import Phase, ServerFacts
from specconsole.core.reading.phases import Phases
from specconsole.core.reading.prefilter import Moments
from specconsole.core.reading.serving import Serving
from specconsole.core.reading.stamps import LogClock
from specconsole.core.reading.where import Where
from specconsole.core.reading.wrappers import Shapes

SURE = 6
"""Score from which the engine is settled: two lines that only it prints."""
MAX_ARGS = 600
_NEAR_START_LINES = 400


@dataclass(slots=True)
class Pipeline:
    """Everything that is known of the log; plain data."""

    scores: dict[str, int] = field(default_factory=dict)
    forced: str = ""
    clock: LogClock = field(default_factory=LogClock)
    shapes: Shapes = field(default_factory=Shapes)
    phases: Phases = field(default_factory=Phases)
    serving: Serving = field(default_factory=Serving)
    findings: Findings = field(default_factory=Findings)
    failures: Failures = field(default_factory=Failures)
    facts: ServerFacts = field(default_factory=ServerFacts)
    budgets: Budgets = field(default_factory=Budgets)
    starts: int = 0
    start_line_no: int = 1
    announced: bool = False
    """Whether this start's own begin was seen (else the log begins in the middle)."""
    trouble_line_no: int = 0
    """Last line that stated a failure or passed one on."""
    fresh_trouble: bool = False
    """The line that was read last stated or passed on a failure."""
    trouble_stamps: dict[str, float] = field(default_factory=dict)
    """Line number -> the log's time there, for the first lines of trouble."""

    # ------------------------------------------------------------------ engine

    @property
    def engine(self) -> str:
        """The engine that the lines speak for most; `unknown` before any does."""
        if self.forced:
            return self.forced
        return max(self.scores, key=lambda name: self.scores[name]) if self.scores else "unknown"

    @property
    def settled(self) -> bool:
        """Whether other engines' lines need no look any more."""
        if self.forced:
            return True
        if self.failures.messenger_no or self.phases.phase == "stopped":
            return False  # it is over: what comes next in the file may be another server's start
        ranked = sorted(self.scores.values(), reverse=True)
        return bool(ranked) and ranked[0] >= SURE and (len(ranked) < 2 or ranked[0] >= 2 * ranked[1])

    def _choose(self, line: Line, dialects: Sequence[Dialect]) -> Dialect | None:
        """The dialect to read this line with: the settled one, else the likeliest after this line's evidence."""
        if len(dialects) == 1:
            only = dialects[0]
            if not self.forced and not self.settled:
                self._weigh(only, line)
            return only
        best: tuple[int, Dialect] | None = None
        for dialect in dialects:
            here = self._weigh(dialect, line)
            if here and (best is None or here > best[0]):
                best = (here, dialect)
        leader = self.engine
        for dialect in dialects:
            if dialect.engine == leader:
                if best is None or best[1] is dialect or best[0] < 3:
                    return dialect
                break
        return best[1] if best else None

    def _weigh(self, dialect: Dialect, line: Line) -> int:
        weight = dialect.evidence(line)
        known = self.scores.get(dialect.engine, 0)
        # Hints (a prefix that others share, a word) count once; what only this engine prints counts each time.
        if weight < 3 and line.form == dialect.engine:
            weight = max(weight, 1 if line.rank is None else 2)
        if weight >= 3:
            self.scores[dialect.engine] = min(known + weight, 60)
        elif weight > known:
            self.scores[dialect.engine] = weight
        return weight

    # ------------------------------------------------------------------ lines

    def line(self, line: Line, found: tuple[Bar, ...], dialects: Sequence[Dialect], *, worked: bool = False) -> None:
        """One message and the bars in it. `worked`: a steady line of which only the time counts."""
        now_s = self.clock.now_s if line.stamp_s is None else line.stamp_s
        self.phases.touch(line)
        dialect = self._choose(line, dialects)
        events: list[Event]
        if found:
            events = [BarSeen(bar, *bar_phase(bar)) for bar in found]
        else:
            events = list(dialect.parse(line)) if dialect is not None else []
            if not events or not isinstance(events[0], Window | Prefill | Busy | Idle):
                events += generic.parse(line)
        if not events and not self.failures.hungry:
            return
        if worked and events and isinstance(events[0], Window | Prefill):
            events[0] = Prefill(2, 1, group=events[0].group)
        if any(isinstance(event, Started) for event in events):
            self._started(line)
        self.failures.see(line, events, self._where(line))
        trouble = any(isinstance(event, Trouble) for event in events)
        if trouble or any(known.line_no == line.no for known in self.failures.candidates[-1:]):
            self.fresh_trouble = True
            self.trouble_line_no = line.no
            if len(self.trouble_stamps) < 64 and now_s is not None:
                self.trouble_stamps.setdefault(str(line.no), now_s)
        self.budgets.see(line)
        for event in events:
            self._see(line, event, now_s)
        if not trouble and any(isinstance(event, PROGRESS_EVENTS) for event in events):
            self.failures.life(line.no, self.phases.phase)

    def failures_open(self) -> bool:
        """Whether something is undecided that any line may decide."""
        failures = self.failures
        return bool(failures.candidates or failures.messenger_no or failures.traces or failures.compiler_no)

    def steady(self, line: Line, event: Window | Prefill) -> None:
        """A steady line; to be called only while no failure is open."""
        self.phases.touch(line)
        self._see(line, event, line.stamp_s)

    def moments(self, row: Moments, first: int, first_no: int, at_s: float | None) -> None:
        """The entries from `first` on of lines at which work began or ended; `first_no` is the number of the block's
        first line. To be called only while no failure is open."""
        stamps_s = self.clock.read_row(row.stamp_source, row.stamp_kind, row.seconds[first:])
        # Before the ready marker a prompt is the server's own; one rank's idling says nothing while others work.
        warming, others = self._warming(), self.serving.others_running(row.group)
        steps: list[tuple[Phase, int, float]] = [
            ("ready" if what == "idle" else "serving", first_no + index, stamp_s)
            for index, what, stamp_s in zip(row.indexes[first:], row.whats[first:], stamps_s, strict=True)
            if not (warming and what == "prompt") and not (others and what == "idle")
        ]
        self.phases.switch_row(steps, row.rank, at_s)
        self.serving.at_work(row.group)
        last = Line("", first_no + row.indexes[-1], "", "", "", row.rank, "", stamps_s[-1], at_s)
        self.phases.touch(last)
        self.phases.moved(last)

    def _where(self, line: Line) -> Where:
        return Where(
            self.phases.phase, self.phases.part, line.rank, self.engine, self.facts, self.phases.was_ready,
            self.phases.draft_expected, self.start_line_no, self.phases.done_share, self.budgets,
        )  # fmt: skip

    def _see(self, line: Line, event: Event, now_s: float | None) -> None:
        if isinstance(event, Window | Prefill | Busy | Idle):
            phase = self.serving.see(line, event, now_s, self.phases.was_ready)
            if phase == "serving" and not (isinstance(event, Prefill) and self._warming()):
                self.phases.switch(line, "serving", now_s)
            elif phase == "ready":
                self.phases.switch(line, "ready", now_s)
            self.phases.moved(line)
            self.findings.progress()
        elif isinstance(event, Ready):
            if not self.failures.http_bind_failed:
                self.phases.see(line, event, now_s)
                self.serving.begin()
        elif isinstance(event, Enter | Leave | BarSeen | HttpUp | StopAsked | Stopped):
            self.phases.see(line, event, now_s)
            self.findings.progress()
        elif isinstance(event, Facts):
            self._facts(event)
        elif isinstance(event, Warn):
            self.findings.see(line, event)
        elif isinstance(event, Heartbeat):
            self.findings.beat(line, event)
        elif not isinstance(event, Started | Trouble):
            self.phases.see(line, event, now_s)

    def _warming(self) -> bool:
        """Before the ready marker a prefill is the server's own warm-up request."""
        return not self.phases.was_ready and self.announced

    def _facts(self, event: Facts) -> None:
        known = self.facts
        args = known.args
        if event.args:
            args = {**known.args, **event.args} if len(known.args) < MAX_ARGS else known.args
        self.facts = ServerFacts(
            event.version or known.version,
            event.model or known.model,
            event.draft_model or known.draft_model,
            event.port or known.port,
            args,
        )
        if self.facts.draft_model or args.get("speculative_algorithm") or args.get("speculative_config"):
            self.phases.draft_expected = _has_draft_weights(self.facts)

    def _started(self, line: Line) -> None:
        """A server announces itself: the first time it is this start, later it is another one, unless several
        nodes or processes of one start announce themselves side by side."""
        phases = self.phases
        begun = phases.was_ready or any(
            stay.phase not in ("starting", "distributed", "download") for stay in phases.stays
        )
        failed = self.failures.verdict(
            dead=False, exit_code=None, stop_asked=False, clean_stop=False, phase=phases.phase, part=phases.part
        )[0]
        another = self.starts > 0 and (begun or failed is not None)
        if self.starts == 0 and (begun or failed is not None):
            # The file begins inside an earlier start whose own begin is not in it.
            self.starts, another = 1, True
        if another:
            self.start_over(line)
        elif self.starts == 0:
            self.starts = 1
        self.announced = True

    def start_over(self, line: Line) -> None:
        """From here on it is another start: nothing of the earlier one remains but the count."""
        self.starts += 1
        self.start_line_no = line.no
        since = max(self.trouble_line_no, self.phases.progress_line_no) + 1
        self.phases = Phases(first_line_no=line.no)
        self.serving = Serving()
        self.facts = ServerFacts()
        self.budgets = Budgets()
        self.findings.since(since)
        self.failures.start_over()
        self.trouble_stamps = {}
        self.scores = {name: min(score, 2) for name, score in self.scores.items()}
        # Times are told from the first stamped line of the start that is read.
        if self.clock.now_s is not None:
            shift = self.clock.now_s if line.stamp_s is None else line.stamp_s
            self.clock.offsets = {key: value - shift for key, value in self.clock.offsets.items()}
            self.clock.now_s = 0.0


def _has_draft_weights(facts: ServerFacts) -> bool:
    """Whether a second set of weights is to be expected: n-gram methods have none."""
    method = str(facts.args.get("speculative_algorithm") or "")
    config = facts.args.get("speculative_config")
    if not method and isinstance(config, dict):
        method = str(config.get("method") or "")
    if method.lower() in ("ngram", "ngram_gpu", "suffix", "none"):
        return False
    return bool(facts.draft_model or method)
