"""What servers put in front of their own lines: time, level, rank, place in the code.

Each pattern names a real line, the server that prints it and where its format is set. They are tried by the
first character, so that a line costs one or two attempts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from specconsole.core.reading.stamps import Stamp, month_number, of_clock, of_date

_LEVELS = {
    "D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL", "C": "CRITICAL", "V": "DEBUG",
    "WARN": "WARNING", "ERR": "ERROR", "FATAL": "CRITICAL", "TRACE": "DEBUG",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prefix:
    """What was peeled, and the message that is left."""

    form: str
    text: str
    level: str = ""
    rank: str | None = None
    source: str = ""
    stamp: Stamp | None = None


# SGLang: `[2026-02-26 21:02:36 DP1 TP3] Load weight begin.`, `[2026-02-26 21:02:36.123] ...` (SGLANG_LOG_MS),
# `[21:14:02 TP1] ...` (2024). srt/utils/common.py: configure_logger, 0.3 to 0.5.23.
_SGLANG = re.compile(
    r"\[(?:(\d{4})-(\d\d)-(\d\d) )?(\d\d:\d\d:\d\d(?:([.,])\d{1,6})?)((?: [A-Z][A-Z_]*\d+)*)\] ?(.*)", re.DOTALL
)
# the same with the time cut off by whoever copied it: `[TP5 EP5] Scheduler hit an exception: Traceback (most ...`
_RANKS_ONLY = re.compile(r"\[((?:(?:TP|DP|PP|EP|CP|ATTN_TP|ATTN_DP|MOE_EP|MOE_TP)\d+ ?)+)\] (.*)", re.DOTALL)
# DeepSpeed and many others: `[2024-09-20 21:14:05,118] [INFO] [real_accelerator.py:203:get_accelerator] Setting ...`
_BRACKETS = re.compile(
    r"\[(DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\]\s*(?:\[([\w./]+:\d+)[^\]]*\])? ?(.*)", re.DOTALL
)
_PY_BRACKETED = re.compile(r"([\w.]+): \[(DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\] ?(.*)", re.DOTALL)
# vLLM: `INFO 02-06 03:10:12 [core.py:936] message`, V0 `INFO 02-06 03:10:12 llm_engine.py:706] message`.
# vllm/logging_utils/formatter.py, 0.4 to 0.33; forks (Ascend, ROCm) alike.
_VLLM = re.compile(
    r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:(\d{4})-)?(\d\d)-(\d\d) (\d\d:\d\d:\d\d(?:[.,]\d+)?) \[?([\w./\-<>]+:\d+)\] ?(.*)",
    re.DOTALL,
)
# uvicorn's own formatter: `INFO:     Application startup complete.`, `ERROR:    [Errno 98] error while ...`
_UVICORN = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL|TRACE):\s+(.*)", re.DOTALL)
# python's basicConfig: `WARNING:root:message`
_PY_COLONS = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL):([\w.]+):(.*)", re.DOTALL)
# llama.cpp b6500 on: `0.09.114.220 I slot print_timing: ...` (minutes.seconds.ms.us; common/log.cpp)
_LLAMACPP = re.compile(r"(\d+)\.(\d\d)\.(\d{3})\.(\d{3}) ([A-Z]) (.*)", re.DOTALL)
# `[TensorRT-LLM][INFO] MPI size: 4`; an inner logger repeats the tag. cpp/tensorrt_llm/common/logger.
_TRTLLM_CPP = re.compile(r"(?:\[TensorRT-LLM\]\[(\w+)\] ?)+(?:\[(?:RANK |rank)(\d+)\] )?(.*)", re.DOTALL)
# `[05/23/2025-10:11:12] [TRT-LLM] [RANK 0] [I] message`. tensorrt_llm/logger.py
_TRTLLM_PY = re.compile(
    r"\[(\d\d)/(\d\d)/(\d{4})-(\d\d:\d\d:\d\d)\] (?:\[TRT-LLM\] )?(?:\[RANK (\d+)\] )?\[([A-Z])\] ?(.*)", re.DOTALL
)
# glog: `I0224 10:20:14.110233 120 model_lifecycle.cc:472] "loading: ..."` (Triton), torch's
# `W1129 14:32:40.715000 16089 torch/utils/cpp_extension.py:140] No CUDA runtime`
_GLOG = re.compile(r"([IWEFV])(\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+)\s+(?:\d+ )?([\w./\-]+:\d+)\] ?(.*)", re.DOTALL)
# torch's C++ side: `[rank4]:[E1129 14:24:54.633380577 ProcessGroupNCCL.cpp:1575] ...`, 2.0 to 2.2
# `[E ProcessGroupNCCL.cpp:475] [Rank 4] Watchdog caught ...`. c10/util/Logging.cpp
_TORCH_CPP = re.compile(
    r"\[([IWEF])(?:(\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+))? ?([\w.]+:\d+)\] ?(?:\[Rank (\d+)\] )?(.*)", re.DOTALL
)
# NCCL: `host-b:241:241 [6] misc/socket.cc:533 NCCL WARN ...`, `node1:77:80 [0] NCCL INFO Connected all trees`,
# RCCL and HCCL alike; `[2025-01-01 10:00:00] host:..` since 2.24 with NCCL_DEBUG_TIMESTAMP_FORMAT. debug.cc
_NCCL = re.compile(r"(?:\[[\d\- :.]+\] )?[\w.\-]+:\d+:\d+ \[(\d+|-1)\] ((?:[\w./]+:\d+ )?[NRH]CCL .*)", re.DOTALL)
# Rust tracing (TGI, Dynamo): `2024-05-20T10:00:00.123456Z  INFO text_generation_launcher: message`
_RUST = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:?\d\d)\s+(TRACE|DEBUG|INFO|WARN|ERROR) ([\w:.]+)(?:\{[^}]*\})?: ?(.*)",
    re.DOTALL,
)
_RUST_RANK = re.compile(r"\s+rank=(\d+)$")
# Ollama (Go slog): `time=2025-01-01T00:00:00.000Z level=INFO source=server.go:123 msg="llama runner started"`
_SLOG = re.compile(
    r'time=(\d{4})-(\d\d)-(\d\d)T(\d\d:\d\d:\d\d(?:\.\d+)?)\S* level=(\w+)(?: source=(\S+))? msg=("(?:[^"\\]|\\.)*"|\S+) ?(.*)',
    re.DOTALL,
)
# python's logging with asctime: `2025-01-01 12:00:00,123 - name - INFO - message`, `... INFO worker.py:1723 -- m`,
# loguru `2025-01-01 12:00:00.123 | INFO     | mod:func:12 - message`, and with no level at all.
_ASCTIME = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[ T](\d\d:\d\d:\d\d(?:[.,]\d+)?)(?:Z|[+-]\d\d:?\d\d)?"
    r"(?:(?:\s+[-|]\s+|\s+\[|\s+)(?:([\w.]+) - )?(DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b\]?:?\s*)?(.*)",
    re.DOTALL,
)
_ASCTIME_PLACE = re.compile(r"(?:\[?([\w.\-/]+:(?:[\w<>]+:)?\d+)\]?|[\w.]+)?\s?(?:--?|\|)\s+(.*)", re.DOTALL)


def peel(text: str) -> Prefix | None:
    """What stands in front of a server's message; None where the line begins with the message itself."""
    if not text:
        return None
    first = text[0]
    if first == "[":
        return _peel_bracket(text)
    if first.isdigit():
        return _peel_digit(text)
    if first in "DIWECFVT":
        return _peel_level(text) or _peel_nccl(text)
    if text.startswith("time="):
        return _peel_slog(text)
    return _peel_nccl(text)


def _peel_bracket(text: str) -> Prefix | None:
    if m := _SGLANG.match(text):
        year, month, day, clock, fraction, ranks, rest = m.groups()
        stamp = of_date(int(year), int(month), int(day), of_clock(clock)) if year else Stamp("clock", of_clock(clock))
        if not ranks:
            if b := _BRACKETS.match(rest):
                level = _LEVELS.get(b[1], b[1])
                return Prefix("python", b[3], level, None, b[2] or "", stamp)
            if n := _NCCL.match(rest):
                return Prefix("nccl", n[2], "", f"GPU {n[1]}", "", stamp)
            if u := _UVICORN.match(rest):
                return Prefix("uvicorn", u[2], u[1], None, "", stamp)
            if fraction == ",":
                # `[2026-01-01 10:00:00,101] torch.distributed.run: [WARNING] ...`: python's logging, in brackets
                if p := _PY_BRACKETED.match(rest):
                    return Prefix("python", p[3], _LEVELS.get(p[2], p[2]), None, p[1], stamp)
                return Prefix("python", rest, "", None, "", stamp)
        return Prefix("sglang", rest, "", ranks[1:] or None, "", stamp)
    if m := _TRTLLM_CPP.match(text):
        rank = f"rank {m[2]}" if m[2] else None
        return Prefix("tensorrt-llm", m[3], _LEVELS.get(m[1], m[1]), rank)
    if m := _TRTLLM_PY.match(text):
        stamp = of_date(int(m[3]), int(m[1]), int(m[2]), of_clock(m[4]))
        return Prefix("tensorrt-llm", m[7], _LEVELS.get(m[6], ""), f"rank {m[5]}" if m[5] else None, "", stamp)
    if m := _TORCH_CPP.match(text):
        when = of_date(0, int(m[2]), int(m[3]), of_clock(m[4])) if m[2] else None
        return Prefix("torch", m[7], _LEVELS[m[1]], f"rank {m[6]}" if m[6] else None, m[5], when)
    if m := _BRACKETS.match(text):
        return Prefix("python", m[3], _LEVELS.get(m[1], m[1]), None, m[2] or "")
    if m := _RANKS_ONLY.match(text):
        return Prefix("sglang", m[2], "", m[1].rstrip())
    return _peel_nccl(text)


def _peel_digit(text: str) -> Prefix | None:
    if m := _LLAMACPP.match(text):
        seconds = int(m[1]) * 60 + int(m[2]) + int(m[3]) / 1e3 + int(m[4]) / 1e6
        return Prefix("llamacpp", m[6], _LEVELS.get(m[5], ""), None, "", Stamp("run", seconds))
    if m := _RUST.match(text):
        stamp = of_date(int(m[1]), int(m[2]), int(m[3]), of_clock(m[4]))
        rest, rank = m[7], None
        if r := _RUST_RANK.search(rest):
            rest, rank = rest[: r.start()], f"rank {r[1]}"
        form = "tgi" if m[6].startswith("text_generation") else "rust"
        return Prefix(form, rest, _LEVELS.get(m[5], m[5]), rank, m[6], stamp)
    if m := _ASCTIME.match(text):
        stamp = of_date(int(m[1]), int(m[2]), int(m[3]), of_clock(m[4]))
        level = _LEVELS.get(m[6] or "", m[6] or "")
        rest, source = m[7].lstrip(" ") if level else m[7][1:] if m[7][:1] == " " else m[7], m[5] or ""
        rest = rest.removeprefix("|").lstrip() if level else rest
        if level and (p := _ASCTIME_PLACE.match(rest)):
            rest, source = p[2], p[1] or source
        return Prefix("python", rest, level, None, source, stamp)
    return _peel_nccl(text)


def _peel_level(text: str) -> Prefix | None:
    if m := _VLLM.match(text):
        stamp = of_date(int(m[2] or 0), int(m[3]), int(m[4]), of_clock(m[5]))
        return Prefix("vllm", m[7], m[1], None, m[6], stamp)
    if m := _UVICORN.match(text):
        return Prefix("uvicorn", m[2], m[1])
    if m := _PY_COLONS.match(text):
        return Prefix("python", m[3], m[1], None, m[2])
    if m := _GLOG.match(text):
        stamp = of_date(0, int(m[2]), int(m[3]), of_clock(m[4]))
        return Prefix("glog", m[6], _LEVELS[m[1]], None, m[5], stamp)
    return None


def _peel_nccl(text: str) -> Prefix | None:
    if "CCL " in text and (m := _NCCL.match(text)):
        return Prefix("nccl", m[2], "", f"GPU {m[1]}")
    return None


def _peel_slog(text: str) -> Prefix | None:
    m = _SLOG.match(text)
    if m is None:
        return None
    stamp = of_date(int(m[1]), int(m[2]), int(m[3]), of_clock(m[4]))
    message = m[7][1:-1].replace('\\"', '"').replace("\\n", " ") if m[7].startswith('"') else m[7]
    rest = f"{message} {m[8]}" if m[8] else message
    return Prefix("ollama", rest, _LEVELS.get(m[5], m[5]), None, m[6] or "", stamp)


def syslog_stamp(month: str, day: str, clock: str) -> Stamp | None:
    """`Nov 29 14:05:01.123` as journald and syslog print it; None when the month is no month."""
    number = month_number(month)
    return of_date(0, number, int(day), of_clock(clock)) if number else None
