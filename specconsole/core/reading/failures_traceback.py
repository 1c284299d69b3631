"""Python tracebacks in a log, line by line: frames, the exception, its further lines, and what it was caused by.

Several may be open at once, one a process: their lines are told apart by the prefix that each of them carries
(vLLM) or by standing without one right behind the line that opened them (SGLang, plain Python).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Step = Literal["frame", "exception", "chain", "more", "other", "over"]

OPENING = "Traceback (most recent call last)"
MAX_FRAME_LINES = 400
MAX_MESSAGE_LINES = 120
MAX_STRAY_LINES = 40
MAX_BLANK_LINES = 3
# `torch.OutOfMemoryError: CUDA out of memory.`, `AssertionError`, `vllm.v1.engine.exceptions.EngineDeadError: ...`
EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*_?[A-Z]\w*(?::(?: |$)|$)")
# The same where no traceback is open: the name must say that it is one.
NAMED = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*_?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Timeout|Expired|NotFound|Died\w*)(?:: |:?$)"
)
_CHAIN = re.compile(r"^(?:The above exception was the direct cause of|During handling of the above exception, another)")
_FRAME = re.compile(r'^\s+File "([^"]+)", line \d+(?:, in (.+))?$')
_GROUP = re.compile(r"^\s*[|+](?:-\+)?[-+| ]*")
# Frames that say what the process was doing when the log does not.
_DRAFT = re.compile(r"draft|eagle|speculat|spec_decode|_mtp|mtp_|nextn|medusa|dflash|dspark|proposer", re.IGNORECASE)
_ARGUMENTS = re.compile(
    r"server_args\.py|arg_utils\.py|arg_groups|argparse|/config/\w+\.py|speculative_hook|cli_args\.py|validate_\w*args\b"
)
_HINTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"capture|cuda_graph|cudagraph|graph_runner", re.IGNORECASE), "graph-capture"),
    (re.compile(r"kv_cache|memory_pool|init_pools|profile_run|determine_available|kv_pool", re.IGNORECASE), "kv-cache"),
    (re.compile(r"load_model|load_weights|weight_utils|model_loader|initialize_model", re.IGNORECASE), "weights"),
    (
        re.compile(
            r"init_process_group|init_torch_distributed|distributed_init|parallel_state|rendezvous", re.IGNORECASE
        ),
        "distributed",
    ),
)


@dataclass(slots=True)
class Trace:
    """One open traceback; plain data."""

    stream: str
    """Which lines belong to it: the rank and place of their prefix, "" for lines without one, "?" not known yet."""
    line_no: int
    rank: str
    """Of the line that opened it: the lines behind it carry none."""
    fatal: bool
    """The line that opened it says that a process ends here."""
    harmless: bool = False
    """It was opened by words that are no end of anything (`Exception ignored in`)."""
    state: str = "frames"
    lines: int = 0
    strays: int = 0
    blanks: int = 0
    draft: bool = False
    arguments: bool = False
    hint: str = ""
    outermost: str = ""
    """The function of the first frame of the newest link: `<module>` for an exception that ends the process."""
    cause_no: int = 0
    """Line of the cause that this chain gave; 0 none yet."""

    @property
    def ends_process(self) -> bool:
        """Whether the interpreter itself printed it on its way out."""
        return self.outermost in ("<module>", "_bootstrap", "_run_module_as_main", "_main")

    def step(self, text: str) -> Step:
        """Takes one line that belongs here."""
        self.lines += 1
        if text[:4].strip().startswith(("|", "+")):
            text = _GROUP.sub("", text)
        if OPENING in text:
            self.state, self.outermost, self.lines = "frames", "", 0
            return "chain"
        if _CHAIN.match(text):
            self.state = "frames"
            return "chain"
        if self.state == "frames":
            return self._in_frames(text)
        return self._in_message(text)

    def _in_frames(self, text: str) -> Step:
        if self.lines > MAX_FRAME_LINES or self.strays > MAX_STRAY_LINES:
            return "over"
        if not text or text[0] in " \t":
            self._frame(text)
            return "frame"
        if EXCEPTION.match(text):
            self.state, self.lines, self.blanks = "message", 0, 0
            return "exception"
        self.strays += 1
        return "other"

    def _frame(self, text: str) -> None:
        match = _FRAME.match(text)
        if match is None:
            return
        path, function = match[1], match[2] or ""
        if not self.outermost:
            self.outermost = function or "?"
            if path.endswith(("/runpy.py", "<frozen runpy>")):
                self.outermost = "<module>"
            elif path.endswith("/__init__.py"):
                self.outermost = "?"  # a package is never the program: something caught and printed it
        place = f"{path.rsplit('site-packages/', 1)[-1]} {function}"
        self.draft = self.draft or bool(_DRAFT.search(place))
        self.arguments = self.arguments or bool(_ARGUMENTS.search(place))
        for pattern, phase in _HINTS:
            if pattern.search(place):
                self.hint = phase
                break

    def _in_message(self, text: str) -> Step:
        self.blanks = self.blanks + 1 if not text.strip() else 0
        if self.lines > MAX_MESSAGE_LINES or self.blanks > MAX_BLANK_LINES:
            return "over"
        return "more"


def stream_of(form: str, rank: str | None, source: str) -> str | None:
    """Which traceback a line can go on with: None for a line whose prefix says that it is a message of its own."""
    if source:
        return f"{rank or ''}|{source}"
    if form:
        return None
    return rank or ""
