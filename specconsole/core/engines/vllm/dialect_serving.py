"""vLLM's lines while it serves: throughput, acceptance, requests, and what it says that it changed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specconsole.core.reading.events import Busy, Event, Warn, Window
from specconsole.core.reading.generic_table import Row, number, row
from specconsole.core.reading.model import WarningClass


def _stats(match: re.Match[str]) -> Sequence[Event]:
    text = match.string
    running = _count(r"Running: (\d{1,9}) reqs", text)
    queued = _count(r"(?:Waiting|Pending): (\d{1,9}) reqs", text)
    usage = re.search(r"KV cache usage: (\d{1,3}(?:\.\d{1,6})?)%", text)
    generation = number(match[2])
    engine = int(match[1]) if match[1] else None
    window = Window(
        gen_throughput_tok_s=generation,
        running=running,
        queued=queued,
        kv_usage=round(float(usage[1]) / 100, 5) if usage else None,
        group="" if engine is None else str(engine),
        spans_idle=False,
    )
    events: list[Event] = [window]
    preempted = re.search(r"Preemptions: (\d{1,12})", text)
    if preempted and int(preempted[1]) > 0:
        events.append(Warn("kv-full", text))
    return events


def _count(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None


def _warn(kind: WarningClass, literal: str, pattern: str) -> Row:
    return row(literal, pattern, make=lambda match: (Warn(kind, match.string.strip()),))


SERVING_ROWS: tuple[Row, ...] = (
    # `Engine 000: Avg prompt throughput: 2.8 tokens/s, Avg generation throughput: 124.6 tokens/s, Running: 1 reqs,
    # Waiting: 0 reqs, GPU KV cache usage: 3.1%, Prefix cache hit rate: 0.0%` (loggers.py:335, V1; `2 Engines
    # Aggregated:`)
    # V0: `Avg prompt throughput: 0.0 tokens/s, ... Running: 6 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache
    # usage: ...`
    row(
        "Avg generation throughput:",
        r"(?:Engine (\d{1,6}): )?Avg prompt throughput: [\d.]+ tokens/s, Avg generation throughput: ([\d.]+) tokens/s",
        make=_stats,
    ),
    # `SpecDecoding metrics: Mean acceptance length: 2.05, Accepted throughput: ...` (metrics.py:120, 0.10 to 0.33;
    # 1 + accepted / drafts)
    row(
        "Mean acceptance length:",
        r"SpecDecoding metrics:.*?Mean acceptance length: ([\d.]+)",
        make=lambda m: (Window(accept_length=number(m[1]), opens=False),),
    ),
    # `INFO:     127.0.0.1:46980 - "POST /v1/completions HTTP/1.1" 200 OK` (uvicorn; at the start of a stream)
    row('"POST /', r"\"POST /(?:v1/|generate|inference)\S* HTTP/[\d.]+\" 200", Busy()),
    # `Received request cmpl-...: prompt: ...` (--enable-log-requests; V0 by default) / `Added request cmpl-0.`
    row("request", r"^(?:Received|Added) request \S+", Busy()),
    # `Overriding draft model max model len from 4096 to 2048` (speculative.py:1669)
    _warn("setting-overridden", "Overriding ", r"^Overriding (?:draft model )?max[ _]model[ _]len from"),
    # `max_num_scheduled_tokens is set to 2048 based on the speculative decoding settings.` (vllm.py:2276)
    _warn("setting-overridden", "max_num_scheduled_tokens is set", r"max_num_scheduled_tokens is set to"),
    # `The draft model's max_model_len (4096) is smaller than the target model's (8192) ... reducing max_model_len
    # to 4096.`
    _warn("setting-overridden", "reducing max_model_len", r"reducing max_model_len to"),
    # `Async scheduling not supported with ngram-based speculative decoding and will be disabled.` (vllm.py:1605)
    _warn("setting-overridden", "will be disabled", r"^Async scheduling not supported with"),
    # `Model Runner V2 does not yet support ...; using the V1 model runner instead.` (vllm.py, 0.33)
    _warn("setting-overridden", "V1 model runner instead", r"^Model Runner V2 does not yet support"),
    # `CUDA graph is not supported for ..., fallback to the eager mode.` / `Cudagraph mode ... is not compatible ...
    # overriding`
    _warn("setting-overridden", "fallback to the eager mode", r"fallback to the eager mode"),
    # `Enabling num_speculative_tokens > 1 will run multiple times of forward on same MTP layer,which may result in
    # lower acceptance rate`
    _warn("setting-overridden", "num_speculative_tokens > 1", r"^Enabling num_speculative_tokens > 1"),
    # `Speculative decoding is not yet supported on vLLM V1.` / `... Disabling speculative decoding` (arg_utils.py,
    # gpu_model_runner.py)
    _warn(
        "speculation-off",
        "peculative decoding",
        r"(?:[Dd]isabl\w+ speculative decoding|[Ss]peculative decoding (?:is|will be) disabled)",
    ),
    # `Sequence group 12 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.`
    # (V0 scheduler.py)
    _warn("kv-full", "is preempted by", r"is preempted by PreemptionMode"),
    # `Argument '--disable-log-requests' is deprecated and replaced with '--enable-log-requests'. This will be
    # removed in v0.12.0.`
    _warn("deprecated-flag", "deprecated", r"(?:--[\w-]+|[Aa]rgument|[Ff]lag|VLLM_\w+).{0,80}deprecated"),
    # `Auto-prefetch is disabled because the filesystem (EXT4) is not a recognized network FS` is information, not a
    # warning.
)
