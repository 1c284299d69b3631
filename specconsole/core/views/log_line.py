"""What a log line says about itself at a glance: rank, level, time of day. Bytes in, no decoding.

This serves the log pane's filters over millions of lines; what a line *means* is the dialects' business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Level = Literal["debug", "poll", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "poll", "info", "warning", "error")

CONTROL_SEQUENCE = re.compile(
    rb"\x1b\[[0-9;?:<=>]*[ -/]*[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
)
"""Terminal sequences as servers colour with: SGR and other CSI, OSC with its end, two-byte escapes."""

HEADER = re.compile(
    # [2026-11-29 14:12:42 TP0] Load weight begin.                  SGLang 0.5.17, srt/utils/common.py
    # [2026-11-29 14:12:42 DP1 TP3 EP3] Load weight begin.
    rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]\n]{0,40}\]"
    # (EngineCore_DP0 pid=312) INFO 11-29 14:12:42 [core.py:93] ...  vLLM 0.11, logger.py + system_utils.py
    # INFO 11-29 14:12:42 [api_server.py:1839] ...
    rb"|(?:\([^)\n]{1,60}\) ?)?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[: ] *(?:\d\d-\d\d \d\d:\d\d:\d\d)?"
    # [rank3]:[E1129 14:12:42.123 ProcessGroupNCCL.cpp:632] ...      torch 2.9, c10d
    rb"|\[rank\d+\]:"
    # 0.00.123.456 I srv  load_model: ...                           llama.cpp b10434, common/log.cpp
    rb"|\d+\.\d\d\.\d\d\d\.\d\d\d [DIWE] "
    # 2026-11-29T14:12:42.123456Z  INFO text_generation_launcher: ... TGI 3, tracing
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
    # [11/29/2026-14:12:42] [TRT-LLM] [I] ...                       TensorRT-LLM 1.0, logger.py
    rb"|\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\]"
    # gpu-a:312:330 [0] NCCL INFO ...                               NCCL 2.27, debug.cc
    rb"|[\w.-]+:\d+:\d+ \[\d+\] NCCL "
)
"""How a record begins; a line that does not begin so continues the record above it."""

RANK = re.compile(
    rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ([A-Z]{2}\d+(?: [A-Z]{2}\d+)*)\]"  # [... DP1 TP3 EP3] (SGLang 0.5.17)
    rb"|\[(?:rank|default)(\d+)\]"  # [rank3]: Traceback (torch 2.9)
    rb"|\(\w*[Ww]orker\w* rank=(\d+) pid="  # (VllmWorker rank=0 pid=301) (vLLM 0.8)
    rb"|\((\w*(?:[Ww]orker|EngineCore)\w*) pid="  # (Worker_TP1 pid=402), (EngineCore_DP0 pid=312) (vLLM 0.11)
)
"""A rank as the reading names it: `DP1 TP3 EP3`, `rank 3`, `Worker_TP1`."""
_POLL = re.compile(
    rb'"GET /(?:health\w*|metrics|v1/models|v1/loads|get_load|model_info|server_info|get_\w+) HTTP/1\.\d" [25]\d\d'
)
_ERROR = re.compile(
    rb"\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|^[\w.]{0,80}(?:Error|Exception)\b: "
    rb"|\] \[E\]|:\[E\d{4} |\b(?:Scheduler|Engine) hit an exception|out of memory"
)
_WARNING = re.compile(rb"\bWARN(?:ING)?\b|Warning: |\] \[W\]|:\[W\d{4} |\bdeprecated\b")
_DEBUG = re.compile(rb"\b(?:DEBUG|TRACE)\b|\] \[[DTV]\]")
_LLAMACPP_LEVEL = re.compile(rb"\d+\.\d\d\.\d\d\d\.\d\d\d ([DIWE]) ")
_TIME_OF_DAY = re.compile(rb"\b([01]\d|2[0-3]):([0-5]\d):([0-5]\d)\b")
_STAMPS = re.compile(
    rb"^\[[^\]\n]{0,60}\] ?|^\([^)\n]{1,60}\) ?|\b\d\d-\d\d \d\d:\d\d:\d\d\b|\b\d{4}-\d\d-\d\dT[\d:.]+Z?"
    rb"|\bpid=\d+|\brank\d+\b|\b(?:TP|DP|PP|EP)\d+\b"
)
_HEAD_BYTES = 160


@dataclass(frozen=True, slots=True)
class LineMark:
    """What one line says about itself."""

    rank: str | None
    """`TP3`, `DP1 TP3 EP3`, `rank 3`, `Worker_TP1`; None when it names none."""
    level: Level
    begins: bool
    """False for a line that continues the record above it (tracebacks, tables)."""


def mark_line(line: bytes) -> LineMark:
    """The mark of one line without its line end; escapes must be gone already."""
    head = line[:_HEAD_BYTES]
    begins = HEADER.match(head) is not None
    found = RANK.search(head) if begins else None
    return LineMark(_rank_name(found), _level_of(head), begins)


def _rank_name(found: re.Match[bytes] | None) -> str | None:
    if found is None:
        return None
    number = found[2] or found[3]
    return f"rank {int(number)}" if number else (found[1] or found[4]).decode()


def _level_of(head: bytes) -> Level:
    letter = _LLAMACPP_LEVEL.match(head)
    if letter:
        return {b"D": "debug", b"I": "info", b"W": "warning", b"E": "error"}[letter[1]]  # type: ignore[return-value]  # closed map
    if _ERROR.search(head):
        return "error"
    if _WARNING.search(head):
        return "warning"
    if _POLL.search(head):
        return "poll"
    return "debug" if _DEBUG.search(head) else "info"


def fold_key(line: bytes) -> bytes:
    """The line without what differs from rank to rank (stamp, rank, pid); equal keys are one statement."""
    return _STAMPS.sub(b"", line[:400]).strip()


def time_of_day_s(line: bytes) -> int | None:
    """Seconds since midnight that the line's stamp says; None without a stamp in its head."""
    found = _TIME_OF_DAY.search(line[:80])
    return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3]) if found else None


def plain(block: bytes) -> bytes:
    """The block as a person would see it: no escapes, of a redrawn line its last state. Line count is kept."""
    if b"\x1b" in block:
        block = CONTROL_SEQUENCE.sub(b"", block)
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
        block = re.sub(rb"[^\n]*\r(?=[^\n])", b"", block)
    return block
