"""What any server's log may say, whatever the engine: causes, tracebacks, ports, and what supervisors print."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specconsole.core.reading.events import Event, Facts, HttpUp, Line, StopAsked, Stopped, Trouble
from specconsole.core.reading.failures_cause import COMPILER, RULES
from specconsole.core.reading.failures_messengers import MESSENGERS, OPENERS_OF_HARMLESS
from specconsole.core.reading.failures_rules import MAX_TEXT_CHARS, Rule
from specconsole.core.reading.failures_traceback import NAMED, OPENING

# Words that open or continue a complaint; every rule's own literal is added below. Chosen so that no line of steady
# serving holds one.
_BROAD = ("Error", "error:", "Exception", "Traceback", "exception", "fatal", "FAILED")
# `Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)`, `* Running on http://127.0.0.1:5000` (flask,
# gradio)
_RUNNING = re.compile(r"(?:Uvicorn running on|Running on(?: local URL:)?|Serving on) +https?://\S*?:(\d{1,5})\b")


def _literals() -> tuple[bytes, ...]:
    words = list(_BROAD) + [r.literal for r in RULES]
    words += [p.literal for p in MESSENGERS] + [
        "Running on",
        "unning on http",
        "Logging error",
        "Shutting down",
        "KeyboardInterrupt",
    ]
    words += ["Application shutdown complete", "Finished server process"]
    # A word that holds another of the list is covered by it.
    kept = [w for w in dict.fromkeys(words) if not any(o != w and o in w for o in words)]
    return tuple(word.encode() for word in kept)


LITERALS: tuple[bytes, ...] = _literals()

# `INFO:     Shutting down`, `INFO:     Application shutdown complete.`, `INFO:     Finished server process [9]`
# (uvicorn,
# under any server); `KeyboardInterrupt` closes the traceback of a process that somebody interrupted.
_ENDS: tuple[tuple[re.Pattern[str], Event], ...] = (
    (re.compile(r"^(?:INFO: +)?Shutting down$|^KeyboardInterrupt(?:: |$)"), StopAsked()),
    (re.compile(r"^(?:INFO: +)?(?:Application shutdown complete\.|Finished server process \[)"), Stopped()),
)
_MILD = ("DEBUG", "INFO", "WARNING")
_HARMLESS = re.compile(
    # A client's words: `Received request cmpl-1: prompt: '...'` (vLLM), `Receive: obj=GenerateReqInput(...)`,
    # `Finish: obj=`
    # (SGLang --log-requests). `Port 5555 is already in use, trying port 5556` (vLLM, Ray, gradio).
    r"^(?:Received request|Request \S+ details|Generated response|Receive:|Finish:|Added request)|in use, (?:trying|using)|"
    # Words of an end in lines that every healthy start or clean stop prints.
    r"Ignore import error|^Found ulimit of|failed to automatically increase|[Cc]ustom allreduce is disabled"
    r"|destroy_process_group\(\) was not called|^Failed to import from vllm|nanobind: leaked|resource_tracker"
    r"|FutureWarning|DeprecationWarning|UserWarning|likely to affect performance or even cause errors"
    r"|HTTP/[\d.]+\" \d{3}|^common_fit_params:|SymmMemCommunicator:|^Waiting for|send_error: task id"
    r"|possible solutions|Possible solutions|GPU P2P capability|^Error in sys\.excepthook"
)


def parse(line: Line) -> Sequence[Event]:
    """Events of one line, after the dialect's own. Never raises."""
    text = line.text[:MAX_TEXT_CHARS]
    if "unning on" in text or "erving on" in text:
        match = _RUNNING.search(text)
        if match and 0 < int(match[1]) < 65536:
            port = int(match[1])
            return (HttpUp(port), Facts(port=port))
    if "hut" in text or "KeyboardInterrupt" in text or "Finished server" in text:
        for pattern, event in _ENDS:
            if pattern.search(text):
                return (event,)
    if _HARMLESS.search(text):
        return ()
    if OPENING in text or any(pattern.search(text) for pattern in OPENERS_OF_HARMLESS):
        return (Trouble("suspect"),)
    if any(p.literal in text and p.pattern.search(text) for p in MESSENGERS):
        # Some messengers state a cause as well: `crashed with exit code -9`.
        stated = _stated(text)
        if stated is not None and stated.alone == "fatal":
            return (Trouble("fatal", stated.failure_class),)
        return (Trouble("messenger"),)
    stated = _stated(text)
    if stated is not None and stated.alone:
        # A line that calls itself information or a warning states no end.
        mild = line.level in _MILD and stated.failure_class != "gpu-hardware"
        return (Trouble("suspect" if mild else stated.alone, stated.failure_class, http_bind=stated.http_bind),)
    if COMPILER.search(text):
        return (Trouble("suspect", "jit-build-failed"),)
    if NAMED.match(text) and line.level not in _MILD:
        return (Trouble("suspect", stated.failure_class if stated else "code-error"),)
    return ()


def _stated(text: str) -> Rule | None:
    for rule in RULES:
        if rule.literal in text and rule.pattern.search(text):
            return rule
    return None
