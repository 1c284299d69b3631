"""One candidate for the cause: how its line is classified, refined by what follows, and put beside others."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from specconsole.core.reading.events import Line, Trouble
from specconsole.core.reading.failures_advice import advise, held_by_others
from specconsole.core.reading.failures_messengers import MESSENGERS
from specconsole.core.reading.failures_rules import CAUSE, CONSEQUENCE, MAX_TEXT_CHARS, Rule, match_rule
from specconsole.core.reading.failures_rules_device import DEVICE_RULES
from specconsole.core.reading.failures_rules_files import FILE_RULES
from specconsole.core.reading.failures_rules_memory import KILLED_RULES, MEMORY_RULES
from specconsole.core.reading.failures_rules_startup import STARTUP_RULES
from specconsole.core.reading.failures_traceback import Trace
from specconsole.core.reading.model import Advice, Failure, FailureClass, Part, Phase
from specconsole.core.reading.where import Where

RULES: tuple[Rule, ...] = MEMORY_RULES + KILLED_RULES + FILE_RULES + DEVICE_RULES + STARTUP_RULES
MAX_LINE_CHARS = 2000

# `x.cu:12:10: fatal error: cuda_fp8.h: No such file or directory`, `a.h:13:17: error: 'size_t' has not been
# declared`,
# `k.cu(88): error: identifier "foo" is undefined`, `nvcc fatal   : Unsupported gpu architecture 'compute_120a'`
COMPILER = re.compile(
    r"\.(?:cu|cuh|cpp|cc|cxx|c|h|hpp|hip|inl)(?::\d+(?::\d+)?:|\(\d+\):) (?:fatal )?error\b|^(?:nvcc|ptxas) fatal\s+:"
    r"|^(?:/bin/)?sh: \d+: (?:nvcc|ninja|g\+\+|c\+\+): not found|^\S*(?:ld|collect2): (?:error: |cannot find )"
)
# What a checkpoint that does not fit looks like, whichever loader says so.
_MISFIT = re.compile(
    r"must match the size|shapes cannot be multiplied|size mismatch|is invalid for input of size|[Ss]hape mismatch"
    r"|no module or parameter named|[Mm]issing key|[Uu]nexpected key|not found in params_dict|^KeyError\b|^AssertionError\b"
    r"|vocab_size|hidden_size|\bd2t\b|\bt2d\b|^IndexError\b|[Tt]ensor size|expected .{0,40}\bsize|size of tensor"
    r"|incompatible (?:shape|dimension)|assert .*shape|copy_\(|narrow\(|Attempted to load weight"
)
_ARGUMENT_ERRORS = re.compile(
    r"^(?:\w+\.)*(?:ValueError|AssertionError|TypeError|ValidationError|NotImplementedError|KeyError|ArgumentError)\b"
)
# An echo: the other side of a socket, a pipe or a queue went away.
_ECHO = re.compile(
    r"^(?:[\w.]+\.)?(?:BrokenPipeError|ConnectionResetError|ConnectionRefusedError|ConnectionAbortedError|EOFError"
    r"|KeyboardInterrupt|SystemExit|CancelledError|GeneratorExit|RayActorError|ProcessExitedException)\b"
    r"|^RuntimeError: cancelled|Broken pipe$|^Exception: Invalid handshake"
)


@dataclass(slots=True)
class Candidate:
    """A line that may be the cause; plain data."""

    failure_class: FailureClass
    line_no: int
    line: str
    in_phase: Phase
    in_part: Part | None
    rank: str
    tier: int
    fatal: bool
    in_trace: bool
    general: bool = False
    """Classified for want of anything better (`code-error`, `validation error`): a further line may say more."""
    from_compiler: bool = False
    taken_back_no: int = 0
    """Line that showed that the server went on; 0 none."""
    advice_text: str = ""
    advice_set: dict[str, Any] | None = None


def candidate(line: Line, event: Trouble, where: Where) -> Candidate | None:
    """From a line that speaks for itself. None for words that count at start only, once the server serves."""
    text = (event.text or line.text)[:MAX_TEXT_CHARS]
    found = match_rule(RULES, text)
    if found is not None and found.start_only and where.was_ready:
        return None
    failure_class = event.failure_class or (found.failure_class if found else "code-error")
    made = _make(line, failure_class, found, where, None, text)
    made.fatal = event.weight == "fatal"
    return made


def classify(line: Line, where: Where, trace: Trace | None) -> Candidate | None:
    """From the last line of a traceback (or an exception's line without one). None for a pure messenger."""
    text = line.text[:MAX_TEXT_CHARS]
    if _ECHO.search(text):
        return None
    found = match_rule(RULES, text)
    if found is not None and found.start_only and where.was_ready:
        found = None
    # `Worker failed with error 'CUDA error: out of memory', ...` passes a cause on and names it.
    if found is None and any(p.literal in text and p.pattern.search(text) for p in MESSENGERS):
        return None
    failure_class: FailureClass = found.failure_class if found else "code-error"
    return _make(line, failure_class, found, where, trace, text)


def _make(
    line: Line, failure_class: FailureClass, found: Rule | None, where: Where, trace: Trace | None, text: str
) -> Candidate:
    phase, part = where.phase, where.part
    if trace is not None and phase == "starting" and trace.hint and not trace.ends_process and not where.facts.args:
        # A log cut at its left: a child's frames say what it was doing, where nothing else does.
        phase = trace.hint  # type: ignore[assignment]  # hints are ids of phases
    failure_class = _in_context(failure_class, text, where, trace)
    if failure_class == "gpu-oom" and held_by_others(text):
        failure_class = "gpu-busy"
    whole = line.whole if line.whole and line.text.startswith(text) and text else text
    made = Candidate(
        failure_class=failure_class,
        line_no=line.no,
        line=whole[:MAX_LINE_CHARS],
        in_phase=phase,
        in_part=part,
        rank=_rank(line, trace),
        tier=found.tier if found else CAUSE,
        fatal=False,
        in_trace=trace is not None,
        general=found is None or found.tier == CONSEQUENCE or ": " not in text,
    )
    _add_advice(made, text, where)
    return made


def _rank(line: Line, trace: Trace | None) -> str:
    """The server's own name of the rank, which only the line that opens a traceback has, before a job launcher's label
    (`srun -l`)."""
    opener = trace.rank if trace is not None else ""
    if line.rank and not (opener and line.rank.startswith("task ")):
        return line.rank
    return opener


def _in_context(failure_class: FailureClass, text: str, where: Where, trace: Trace | None) -> FailureClass:
    draft = (where.part == "draft" and where.phase == "weights") or (trace is not None and trace.draft)
    if failure_class == "code-error" and draft and _MISFIT.search(text):
        return "draft-mismatch"
    if failure_class == "code-error" and trace is not None and trace.arguments and _ARGUMENT_ERRORS.match(text):
        return "bad-argument"
    if failure_class == "code-error" and where.phase == "weights" and _MISFIT.search(text):
        return "checkpoint-corrupt" if "size mismatch" in text or "shape" in text.lower() else failure_class
    return failure_class


def _add_advice(made: Candidate, text: str, where: Where) -> None:
    advice = advise(made.failure_class, text, made.in_phase, where)
    if advice is not None:
        made.advice_text, made.advice_set = advice.text, advice.set


def refine(known: Candidate, line: Line, where: Where, trace: Trace) -> bool:
    """A further line of the exception's message; True when it says more than the first and took its place."""
    if not known.general:
        return False
    text = line.text.strip()[:MAX_TEXT_CHARS]
    found = match_rule(RULES, text)
    if found is None or found.tier < CAUSE:
        return False
    value = text.removeprefix("Value error, ")
    inner = match_rule(RULES, value) if value != text else None
    chosen = inner if inner is not None else found
    made = _make(replace(line, text=value), chosen.failure_class, chosen, where, trace, value)
    known.failure_class, known.line_no, known.tier = made.failure_class, made.line_no, made.tier
    known.line, known.general = (line.whole or text)[:MAX_LINE_CHARS], False
    known.advice_text, known.advice_set = made.advice_text, made.advice_set
    return True


def better(later: Candidate, earlier: Candidate) -> bool:
    """In one chain of exceptions: whether the later link says more than the earlier, its cause."""
    if later.general != earlier.general:
        return earlier.general
    return later.tier > earlier.tier


def unstated(messenger: str, rank: str, phase: Phase, part: Part | None, *, raised: bool) -> Failure:
    """A failure of which only the messenger is in the log; `raised`: it announced an exception."""
    failure_class: FailureClass = "code-error" if raised else "killed"
    return Failure(failure_class, None, None, phase, part, rank or None, messenger or None, killed_advice())


def killed_advice() -> Advice:
    """For an end without a cause."""
    return Advice("The log states no cause: look at dmesg, the journal, and the limits and probes of the job or pod.")
