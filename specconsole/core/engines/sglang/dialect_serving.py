"""SGLang's steady lines: decode and prefill batches, of every version.

Numbers are taken by their key, never by position: versions moved, renamed and added fields.
"""

from __future__ import annotations

import re

from specconsole.core.reading.events import Event, Line, Prefill, Window

# 0.4.6:  Decode batch. #running-req: 1, #token: 123, token usage: 0.00, accept len: 3.10, cuda graph: True, gen throughput (token/s): 123.45, #queue-req: 0
# 0.5.3:  Decode batch. #running-req: 1, #token: 121, token usage: 0.00, accept len: 2.15, accept rate: 0.54, cuda graph: True, gen throughput (token/s): 0.41, #queue-req: 0,
# 0.5.17: Decode batch, #running-req: 8, #token: 620, token usage: 0.00, accept len: 3.92, accept rate: 0.97, cuda graph: True, gen throughput (token/s): 62.92, #queue-req: 0
# with SGLANG_LOG_FORWARD_ITERS: Decode batch [1234], #running-req: ...
# srt/managers/scheduler.py, scheduler_metrics_mixin.py, scheduler_components/metrics_reporter.py (0.5.23)
_BATCH = re.compile(r"^(Decode|Prefill) batch(?: \[\d+\])?[.,] (.*)$")
_FIELD = re.compile(r"([#a-zA-Z][^:,]*?): ([^,]*)(,|$)")
_GROUP = re.compile(r"(?:^| )DP(\d+)")
_STAGE = re.compile(r"(?:^| )PP([1-9]\d*)")

# What a decode line says of the KV cache: plain, with sliding windows (SWA), hybrid with state-space layers.
_KV_KEYS = ("token usage", "full token usage")


def parse_batch(line: Line) -> tuple[Event, ...]:
    """The window of a decode line or the prompt of a prefill line; () for anything else."""
    match = _BATCH.match(line.text)
    if match is None:
        return ()
    kind, rest = match.groups()
    fields: dict[str, float] = {}
    for found in _FIELD.finditer(rest):
        key, value, stop = found.groups()
        if not stop and not line.complete:
            continue  # the file may go on inside this number
        try:
            fields[key.strip()] = min(float(value), 1e15)
        except ValueError:
            continue
    if line.rank is not None and _STAGE.search(line.rank):
        return ()  # later pipeline stages repeat what the first one said
    dp = _GROUP.search(line.rank) if line.rank is not None else None
    group = f"DP{dp[1]}" if dp else ""
    kv_usage = next((fields[key] for key in _KV_KEYS if key in fields), None)
    if kind == "Decode":
        return _decode(fields, kv_usage, group)
    return _prefill(fields, kv_usage, group)


def _decode(fields: dict[str, float], kv_usage: float | None, group: str) -> tuple[Event, ...]:
    running = fields.get("#running-req")
    if running is None:
        return ()
    return (
        Window(
            accept_length=fields.get("accept len"),
            gen_throughput_tok_s=fields.get("gen throughput (token/s)"),
            running=int(running),
            queued=_int(fields.get("#queue-req")),
            kv_usage=kv_usage,
            group=group,
            empty=fields.get("#token", fields.get("#full token", 1.0)) == 0,
        ),
    )


def _prefill(fields: dict[str, float], kv_usage: float | None, group: str) -> tuple[Event, ...]:
    new_tokens, running = fields.get("#new-token"), fields.get("#running-req")
    if new_tokens is None or running is None:
        return ()
    # A health probe is one new token, nothing cached; several may come at once. A prompt that is cached but for its
    # last token is traffic.
    probe = running == 0 and new_tokens <= fields.get("#new-seq", 1.0) and not fields.get("#cached-token", 0.0)
    tokens = 0 if probe else max(2, int(new_tokens))
    return (Prefill(tokens, int(running), _int(fields.get("#queue-req")), kv_usage, group),)


def _int(value: float | None) -> int | None:
    return None if value is None else int(value)
