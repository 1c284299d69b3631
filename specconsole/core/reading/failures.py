"""The verdict: which line was the cause, over all ranks, and whether the server went on after it.

A cause may stand hundreds of lines before the end, behind the messenger that announces it, inside a build's output
or on another rank. What is seen first wins among statements of equal weight; life on the same rank takes a
complaint back, and a messenger right after brings it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specconsole.core.reading import failures_cause as cause_module
from specconsole.core.reading.events import (
    BarSeen,
    Busy,
    Event,
    Idle,
    Line,
    Prefill,
    Ready,
    StopAsked,
    Trouble,
    Window,
)
from specconsole.core.reading.failures_cause import Candidate, candidate, classify, refine
from specconsole.core.reading.failures_messengers import MESSENGERS, OPENERS_OF_HARMLESS
from specconsole.core.reading.failures_rules import CAUSE, Passing
from specconsole.core.reading.failures_traceback import NAMED, OPENING, Trace, stream_of
from specconsole.core.reading.model import Advice, Failure, Part, Phase
from specconsole.core.reading.where import Where

MAX_CANDIDATES = 48
MAX_TRACES = 16
REVIVAL_LINES = 400
"""A messenger brings back causes that life took back at most so many lines before it."""
_SERVED = (Ready, Window, Prefill, Busy, Idle)


@dataclass(slots=True)
class Failures:
    """State of the reducer; plain data."""

    candidates: list[Candidate] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    messenger_no: int = 0
    """Line of the first messenger that still stands; 0 none."""
    messenger: str = ""
    """The last messenger's line."""
    messenger_rank: str = ""
    messenger_phase: Phase = "starting"
    messenger_part: Part | None = None
    messenger_raised: bool = False
    """It announced an exception, whose last line has not come."""
    opener_no: int = 0
    """Line of the newest line that a traceback may follow."""
    opener_fatal: bool = False
    opener_harmless: bool = False
    compiler_no: int = 0
    """First compiler error since something moved; 0 none."""
    compiler_line: str = ""
    stop_no: int = 0
    """Line at which a stop was asked for; 0 none."""
    http_bind_failed: bool = False
    logged: list[tuple[int, str]] = field(default_factory=list)
    """Complaints that the server outlived (line, text), for the warnings."""
    line_no: int = 0
    life_rank: str = ""
    life_served: bool = False
    life_moved: bool = False

    @property
    def hungry(self) -> bool:
        """Whether the following lines are wanted even without a literal: a traceback is open."""
        return bool(self.traces)

    def see(self, line: Line, events: Sequence[Event], where: Where) -> None:
        """Every line with events, or any line while hungry; `where` is the state before it."""
        self.line_no = line.no
        self.life_rank = line.rank or ""
        self.life_served = any(isinstance(event, _SERVED) for event in events)
        self.life_moved = any(not isinstance(event, Trouble | BarSeen) for event in events)
        if any(isinstance(event, StopAsked) for event in events) and not self.stop_no:
            self.stop_no = line.no
        if not self.traces and not any(isinstance(event, Trouble) for event in events):
            return
        self._remember_compiler(line)
        trace = self._trace_of(line)
        if trace is not None and self._go_on(trace, line, where):
            return
        self._opener(line)
        if OPENING in line.text:
            self._open(line)
        for event in events:
            if isinstance(event, Trouble):
                self._trouble(line, event, where)
        self._message(line, where)

    # ------------------------------------------------------------------ tracebacks

    def _trace_of(self, line: Line) -> Trace | None:
        stream = stream_of(line.form, line.rank, line.source)
        if stream is None:
            # A message of its own: what stood without a prefix before it has ended.
            self.traces = [t for t in self.traces if "|" in t.stream or t.state == "frames"]
            return None
        for trace in reversed(self.traces):
            if trace.stream == stream:
                return trace
        if not line.form:
            for trace in reversed(self.traces):
                if trace.stream == "?":
                    trace.stream = stream
                    return trace
                if "|" not in trace.stream and not line.rank:
                    return trace
        return None

    def _go_on(self, trace: Trace, line: Line, where: Where) -> bool:
        """Feeds an open traceback; False when the line is none of its."""
        before = trace.state
        step = trace.step(line.text)
        if step == "over":
            self.traces.remove(trace)
            return False
        if step == "other":
            return False
        if step == "exception":
            self._raised(trace, line, where)
        elif step == "more":
            self._more(trace, line, where)
            return before == "message" and not line.level
        return True

    def _opener(self, line: Line) -> None:
        harmless = any(pattern.search(line.text) for pattern in OPENERS_OF_HARMLESS)
        opens = any(p.opens and p.literal in line.text and p.pattern.search(line.text) for p in MESSENGERS)
        if harmless or opens:
            self.opener_no, self.opener_fatal, self.opener_harmless = line.no, opens and not harmless, harmless

    def _open(self, line: Line) -> None:
        stream = stream_of(line.form, line.rank, line.source)
        near = 0 <= line.no - self.opener_no <= 2 and self.opener_no > 0
        trace = Trace(
            stream="?" if stream is None else stream,
            line_no=line.no,
            rank=line.rank or "",
            fatal=near and self.opener_fatal,
            harmless=near and self.opener_harmless,
        )
        self.traces = [t for t in self.traces if t.stream != trace.stream][1 - MAX_TRACES :]
        self.traces.append(trace)

    def _raised(self, trace: Trace, line: Line, where: Where) -> None:
        if trace.harmless:
            return
        if line.text.startswith(("KeyboardInterrupt", "SystemExit: 0")):
            return  # asked for
        found = classify(line, where, trace)
        if not line.complete and (found is None or found.failure_class == "code-error"):
            return  # its end is not written yet
        passed_on = _passing(line.text, MESSENGERS)
        if passed_on is not None:
            self._messenger(line, where)
        if found is None:
            if passed_on is None and (trace.fatal or trace.ends_process):
                self._messenger(line, where)
            return
        found.fatal = trace.fatal or trace.ends_process
        if found.failure_class == "jit-build-failed":
            self._take_compiler(found)
        if self.stop_no and line.no > self.stop_no:
            return
        earlier = self._by_no(trace.cause_no)
        if earlier is not None and not cause_module.better(found, earlier):
            earlier.fatal = earlier.fatal or found.fatal
            return
        if earlier is not None:
            # One chain is one failure: the telling link speaks for it.
            self.candidates.remove(earlier)
        trace.cause_no = found.line_no
        self._add(found)

    def _more(self, trace: Trace, line: Line, where: Where) -> None:
        known = self._by_no(trace.cause_no)
        if known is None or self._after_stop(line):
            return
        if known.failure_class == "jit-build-failed":
            self._take_compiler(known)
            trace.cause_no = known.line_no
        elif refine(known, line, where, trace):
            trace.cause_no = known.line_no

    # ------------------------------------------------------------------ single lines

    def _trouble(self, line: Line, event: Trouble, where: Where) -> None:
        if event.http_bind and not where.was_ready:
            self.http_bind_failed = True
        if event.weight == "messenger":
            self._messenger(line, where)
        if event.weight == "messenger" or self._after_stop(line):
            return
        if event.failure_class is None:
            return
        found = candidate(line, event, where)
        if found is None:
            return
        if found.failure_class == "jit-build-failed":
            self._take_compiler(found)
        self._add(found)

    def _message(self, line: Line, where: Where) -> None:
        if self.messenger_no and not self._after_stop(line) and not self.traces and NAMED.match(line.text):
            # No traceback was printed: `EngineCore encountered a fatal error.` and then only the exception's line.
            found = classify(line, where, None)
            if found is not None:
                found.fatal = True
                self._add(found)

    def _messenger(self, line: Line, where: Where) -> None:
        if self._after_stop(line):
            # The server winds down after its own failure and says so at the end (llama.cpp).
            if any(known.fatal for known in self._active()):
                self.messenger = line.whole or line.text
            return
        if not self.messenger_no:
            self.messenger_no = line.no
            self.messenger_rank = line.rank or ""
            self.messenger_phase, self.messenger_part = where.phase, where.part
            self.messenger_raised = any(p.opens and p.pattern.search(line.text) for p in MESSENGERS)
            for known in self.candidates:
                if known.taken_back_no and line.no - known.line_no <= REVIVAL_LINES:
                    known.taken_back_no = 0
        elif OPENING in line.text:
            return  # it opens a traceback: a cause printed behind the messenger, not another messenger
        self.messenger = line.whole or line.text

    def _after_stop(self, line: Line) -> bool:
        return bool(self.stop_no) and line.no > self.stop_no

    def _remember_compiler(self, line: Line) -> None:
        if not self.compiler_no and cause_module.COMPILER.search(line.text):
            self.compiler_no, self.compiler_line = line.no, line.whole or line.text

    def _take_compiler(self, known: Candidate) -> None:
        if self.compiler_no and not known.from_compiler:
            known.line_no, known.line, known.from_compiler = self.compiler_no, self.compiler_line, True

    def _by_no(self, line_no: int) -> Candidate | None:
        return next((known for known in self.candidates if known.line_no == line_no), None) if line_no else None

    def _add(self, found: Candidate) -> None:
        twin = self._by_no(found.line_no)
        if twin is not None:
            twin.fatal = twin.fatal or found.fatal
        elif len(self.candidates) < MAX_CANDIDATES:
            self.candidates.append(found)

    # ------------------------------------------------------------------ life

    def life(self, line_no: int, phase: Phase) -> None:
        """After a line that shows progress, by now in `phase`: the server went on, unless it was another rank's."""
        if self.http_bind_failed:
            return
        kept: list[Candidate] = []
        for known in self.candidates:
            if known.line_no < line_no and not known.taken_back_no and self._outlived(known, phase):
                known.taken_back_no = line_no
                if len(self.logged) < MAX_CANDIDATES:
                    self.logged.append((known.line_no, known.line))
            if not known.taken_back_no or line_no - known.line_no <= REVIVAL_LINES:
                kept.append(known)
        self.candidates = kept
        if self.messenger_no and self.life_served and not self.traces:
            self.messenger_no, self.messenger = 0, ""
        if self.life_moved:
            self.compiler_no, self.compiler_line = 0, ""

    def _outlived(self, known: Candidate, phase: Phase) -> bool:
        if self.life_served:
            return not self.messenger_no
        if known.fatal and known.in_trace:
            return False
        if not known.fatal and known.in_phase == "starting" and phase not in ("starting", "distributed"):
            # What one process complained of before the weights kept no other from loading them.
            return self.life_moved and not self.messenger_no
        return self.life_moved and known.rank == self.life_rank and not self.messenger_no

    # ------------------------------------------------------------------ verdict

    def verdict(
        self,
        *,
        dead: bool,
        exit_code: int | None,
        stop_asked: bool,
        clean_stop: bool,
        phase: Phase,
        part: Part | None,
    ) -> tuple[Failure | None, Failure | None]:
        """(failure, suspect). The process being gone makes a suspect the cause, and no cause at all `killed`."""
        del exit_code  # says little (contract): a clean stop may be -9 and a crash 0
        best = self._best()
        stopped = bool(self.stop_no) or stop_asked or clean_stop
        failed = (
            self.messenger_no > 0 or (best is not None and best.fatal) or (dead and best is not None and not stopped)
        )
        if failed:
            if best is not None:
                return self._failure(best), None
            return self._unstated(), None
        if dead and not stopped:
            advice = cause_module.killed_advice()
            return Failure("killed", None, None, phase, part, None, None, advice), None
        return None, self._failure(best) if best is not None else None

    def _active(self) -> list[Candidate]:
        return [known for known in self.candidates if not known.taken_back_no]

    def _best(self) -> Candidate | None:
        active = self._active()
        if not active:
            return None
        ranked = sorted(active, key=lambda known: (-known.tier, not known.fatal and known.tier == CAUSE, known.line_no))
        if self.messenger_no:
            ranked = sorted(active, key=lambda known: (-known.tier, known.line_no))
        return ranked[0]

    def _failure(self, known: Candidate) -> Failure:
        advice = Advice(known.advice_text, known.advice_set) if known.advice_text else None
        messenger = self.messenger if self.messenger and self.messenger != known.line else None
        return Failure(
            known.failure_class,
            known.line_no,
            known.line,
            known.in_phase,
            known.in_part,
            known.rank or None,
            messenger,
            advice,
        )

    def _unstated(self) -> Failure:
        """Over, says a messenger, and no line says why (the log is cut, or the child was killed)."""
        return cause_module.unstated(
            self.messenger, self.messenger_rank, self.messenger_phase, self.messenger_part, raised=self.messenger_raised
        )

    def start_over(self) -> None:
        """A new start in the same file: no cause comes from an earlier one."""
        self.__init__()  # type: ignore[misc]  # a dataclass's own initial state


def _passing(text: str, table: tuple[Passing, ...]) -> Passing | None:
    return next((p for p in table if p.literal in text and p.pattern.search(text)), None)
