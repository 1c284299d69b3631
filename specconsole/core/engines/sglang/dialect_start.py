"""SGLang's start-up, stop and failure lines, 0.4.6 to 0.5.23, on CUDA, ROCm, NPU, XPU and CPU.

One table: a word that stands in the message, a pattern, what it means. The words are the prefilter's literals.
Sources are named by file of the `sglang` package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from specconsole.core.reading.events import (
    Enter,
    Event,
    Facts,
    HttpUp,
    Idle,
    Leave,
    Line,
    Ready,
    Started,
    StopAsked,
    Stopped,
    Trouble,
    Warn,
)
from specconsole.core.reading.model import Part

_SECONDS = re.compile(r"(?:elapsed=|Time elapsed: )(\d+(?:\.\d+)?) ?s")


def _seconds(text: str) -> float | None:
    """Taken by key: `elapsed=1.23 s` (0.5.10 on), `Time elapsed: 21.43 s.` (to 0.5.12)."""
    found = _SECONDS.search(text)
    return float(found[1]) if found else None


# `Capture cuda graph begin. This can take up to several minutes. avail mem=11.86 GB`               0.4.6 to 0.5.12
# `Capture draft extend cuda graph end. Time elapsed: 7.65 s. mem usage=0.12 GB. avail mem=7.88 GB.`
# `Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, avail mem=11.72 GB`  0.5.15 on
# `Capture piecewise CUDA graph begin. avail mem=...`, `Capture UNO tree draft CUDA graph begin.`
# model_executor/model_runner.py, model_runner_components/cuda_graph_setup.py, speculative/eagle_worker*.py
_CAPTURE = re.compile(
    r"^Capture (?P<what>.*?) ?(?:cuda|CUDA|CPU|NPU|XPU|HPU|MUSA|cpu|npu|xpu) graph(?:s)? (?P<edge>begin|end)\b"
)


def _capture(line: Line) -> tuple[Event, ...]:
    found = _CAPTURE.match(line.text)
    if found is None:
        return ()
    what = found["what"].lower()
    part: Part | None = None
    if "draft extend" in what or "draft-extend" in what:
        part = "draft-extend"
    elif "draft" in what or "mtp" in what:
        part = "draft"
    elif "target" in what:
        part = "target"
    # Without a word (to 0.5.12) it is the model that was loaded last: the reducer knows which.
    if found["edge"] == "begin":
        return (Enter("graph-capture", part),)
    return (Leave("graph-capture", part, _seconds(line.text)),)


# `Load weight begin. avail mem=78.58 GB`; with its end on every TP rank, once for the target, once for the draft.
# `Load weight end. elapsed=1.23 s, type=LlamaForCausalLM, avail mem=133.30 GB, mem usage=5.79 GB.`  0.5.10 on
# `Load weight end. Committed real weights after CUDA graph capture in 2.10 s (...)`                 0.5.19 on
_LOADED_TYPE = re.compile(r"type=(\w+)")


def _load_end(line: Line) -> tuple[Event, ...]:
    return (Leave("weights", None, _seconds(line.text)),)


# `Engine startup timings (s): load_weight=1.33, kv_cache_allocation=0.45, scheduler_e2e=19.20, ...`  0.5.17
# `Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)`: the port is open, the warm-up still to come.
_UVICORN = re.compile(r"^Uvicorn running on https?://\S+:(\d{1,5})\b")


def _uvicorn(line: Line) -> tuple[Event, ...]:
    found = _UVICORN.match(line.text)
    return (HttpUp(int(found[1])),) if found else (HttpUp(),)


# `KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 1048, #new_token_ratio: ...`
def _kv_full(line: Line) -> tuple[Event, ...]:
    return (Warn("kv-full", line.text),)


def _overridden(line: Line) -> tuple[Event, ...]:
    return (Warn("setting-overridden", line.text),)


def _deprecated(line: Line) -> tuple[Event, ...]:
    return (Warn("deprecated-flag", line.text),)


_STOP = (StopAsked(),)
# Order matters: the first entry whose word is in the message and whose pattern fits is taken.
Meaning = Callable[[Line], tuple[Event, ...]] | tuple[Event, ...]
TABLE: tuple[tuple[str, str, Meaning], ...] = (
    ("Load weight begin", r"^Load weight begin", (Enter("weights", ordinal=True),)),
    ("Load weight end", r"^Load weight end", _load_end),
    # `Init torch distributed begin.` to 0.5.19, `Init parallel begin.` 0.5.23; `... ends. elapsed=0.02 s, ...`
    ("distributed begin", r"^Init torch distributed begin", (Enter("distributed"),)),
    ("parallel begin", r"^Init parallel begin", (Enter("distributed"),)),
    ("distributed ends", r"^Init torch distributed ends", lambda line: (Leave("distributed", None, _seconds(line.text)),)),
    ("parallel ends", r"^Init parallel ends", lambda line: (Leave("distributed", None, _seconds(line.text)),)),
    ("sglang is using nccl", r"^sglang is using nccl", (Enter("distributed"),)),
    # `KV Cache is allocated. #tokens: 412345, K size: 12.59 GB, V size: 12.59 GB`, `Full KV Cache VA upper bound. ...`,
    # `Mamba Cache is allocated. ...`, `SWAKVPool mem usage: ...`, `Post-capture KV sizing: ...` (0.5.19 on)
    ("KV Cache ", r"KV Cache (?:is allocated|VA upper bound)", (Enter("kv-cache"),)),
    ("Mamba Cache is", r"^Mamba Cache is allocated", (Enter("kv-cache"),)),
    ("SWAKVPool", r"^SWAKVPool mem usage", (Enter("kv-cache"),)),
    ("Post-capture KV", r"^Post-capture KV sizing", (Enter("kv-cache"),)),
    ("Memory pool end", r"^Memory pool end", lambda line: (Enter("kv-cache"), Leave("kv-cache"))),
    ("graph", r"^Capture .*graph", _capture),
    # Compile and autotune: long and mostly silent.
    ("DeepGEMM", r"(?:Entering|Try) DeepGEMM JIT|DeepGEMM JIT Compiling|DeepGEMM warmup", (Enter("compile", stay=True),)),
    ("FlashInfer autotune", r"Running FlashInfer autotune", (Enter("compile", stay=True),)),
    ("FlashInfer autotune", r"FlashInfer autotune completed", (Leave("compile"),)),
    ("FlashInfer autotune", r"FlashInfer autotune", (Enter("compile", stay=True),)),
    ("[aiter]", r"^\[aiter\] (?:start build|build)", (Enter("compile", stay=True),)),
    ("[aiter]", r"^\[aiter\] finish build", (Leave("compile"),)),
    # `max_total_num_tokens=412345, chunked_prefill_size=8192, ...`: the scheduler stands. TP rank 0 only.
    ("max_total_num_tokens=", r"^max_total_num_tokens=", (Enter("warm-up"),)),
    ("Started server process", r"^Started server process", (Enter("warm-up"),)),
    ("application startup", r"^Waiting for application startup", (Enter("warm-up"),)),
    ("Application startup complete", r"^Application startup complete", (Enter("warm-up"),)),
    ("Uvicorn running on", r"^Uvicorn running on", _uvicorn),
    ("Running warmup", r"^Running warmup", (Enter("warm-up"),)),
    ("disaggregation warmup", r"^Start of .*disaggregation warmup", (Enter("warm-up"),)),
    ("fired up and ready", r"The server is fired up and ready to roll", (Ready(),)),
    # A worker node of a multi-node start answers a constant 200 and has no ready line of its own.
    ("Dummy health check", r"^Dummy health check server started", lambda line: (Ready(),)),
    # `Cache flushed successfully!` (scheduler.py; refused while a request runs or waits)
    ("Cache flushed", r"^Cache flushed successfully", (Idle(),)),
    # Stop. `SIGTERM received. signum=15 frame=.... Draining requests and shutting down...`
    ("SIGTERM received", r"^SIGTERM received", _STOP),
    ("Gracefully exiting", r"^Gracefully exiting\.\.\. Remaining number of requests", _STOP),
    ("Shutting down", r"^Shutting down$", _STOP),
    # After a failed bind uvicorn also waits for its shutdown: only what is printed on request counts. The last
    # words are `Finished server process [6436]` and `kill_process_tree called: ...` (0.5.15 on; failures end so too).
    ("Finished server process", r"^Finished server process", (Stopped(),)),
    ("kill_process_tree called", r"^kill_process_tree called", (Stopped(),)),
    # Warnings.
    ("KV cache pool is full", r"^KV cache pool is full\. Retract", _kv_full),
    ("Retract requests", r"Retract requests", _kv_full),
    ("Health check failed", r"^Health check failed", lambda line: (Warn("health-failing", line.text),)),
    ("state was deleted", r"state was deleted in (?:the )?TokenizerManager", lambda line: (Warn("zombie-requests", line.text),)),
    # `'--cuda-graph-max-bs' is deprecated and will be removed in a future release. Use '--cuda-graph-max-bs-decode' ...`
    # (an endpoint's text says "a future version": that is a client's affair)
    ("removed in a future release", r"--[\w-]+.*\bdeprecated\b", _deprecated),
    ("The argument --", r"\bdeprecated\b", _deprecated),
    ("The flag --", r"\bdeprecated\b", _deprecated),
    ("DEPRECATED", r"--[\w-]+", _deprecated),
    ("has been removed", r"^SGLANG_\w+ has been removed", _deprecated),
    # arg_groups/speculative_hook.py and server_args.py: what was asked for is changed before the args line.
    ("adjusted to", r"^(?:speculative_\w+|chunked_prefill_size|page_size|max_\w+|mem_fraction_static|attention_backend|\w+) (?:is|was|has been) adjusted to", _overridden),
    ("reset to 48", r"^Max running requests is reset to 48", _overridden),
    ("Overlap sched", r"^Overlap schedul(?:e|er) is (?:disabled|not implemented|turned off)", _overridden),
    ("is disabled", r"^(?:[Mm]ixed.?chunk|Overlap|The (?:mixed chunked|overlap)|[Pp]refix caching|Radix cache|CUDA graph|Cuda graph)\b.*\bdisabled\b", _overridden),
    ("Falling back to", r"^speculative_adaptive disabled", _overridden),
    ("is set to", r"^(?:Setting|\w+ (?:is|was) (?:automatically )?set to \S+ (?:because|since|for|due))", _overridden),
    # `Disabling auto-selected prefill CUDA graph: only 0.40 GiB is free ...`; `Disable prefill CUDA graph because ...`
    # is informational, most of all where it names the setting itself.
    ("Disabling auto-selected", r"^Disabling auto-selected", _overridden),
    # `max_total_tokens=8192 is larger than the profiled value 2641. Use the profiled value instead.`
    ("larger than the profiled", r"is larger than the profiled value", _overridden),
    ("Spec v1 is used", r"^Spec v1 is used", _overridden),
    ("Overriding", r"^Overriding (?:the )?draft", _overridden),
    ("max_running_requests", r"max_running_requests \d+ -> \d+", _overridden),
)  # fmt: skip

# Failure lines that only SGLang prints; what any Python server may print is told by the generic rules.
FAILURES: tuple[tuple[str, str, tuple[Event, ...]], ...] = (
    # `Not enough memory. Please try to increase --mem-fraction-static.` (0.5.23 adds numbers)
    ("Not enough memory", r"Not enough memory\. Please try to increase --mem-fraction-static", (Trouble("fatal", "kv-cache-too-small"),)),
    # Token pool, not torch: `Prefill out of memory. Try to lower your batch size.`
    ("out of memory. Try to lower", r"^(?:Prefill|Decode) out of memory\. Try to lower your batch size", (Trouble("fatal", "kv-cache-too-small"),)),
    # `[Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use`
    ("error while attempting to bind", r"^\[Errno \d+\] error while attempting to bind on address", (Trouble("fatal", "port-in-use", http_bind=True),)),
    # `Port is already in use. dist_init_port=...`, `... is not available in 30 seconds`: the DP-attention port set
    ("Port is already in use", r"[Pp]ort is already in use", (Trouble("fatal", "port-in-use"),)),
    ("is not available in", r"[Pp]ort \d+ is not available in \d+ seconds", (Trouble("fatal", "port-in-use"),)),
    # `Watchdog timeout (self.watchdog_timeout=300)` to 0.5.3, `Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)`
    ("atchdog timeout (self", r"[Ww]atchdog timeout \(self\.watchdog_timeout=[\d.]+(?:, self\.soft=False)?\)", (Trouble("fatal", "hang"),)),
    ("atchdog timeout (self", r"[Ww]atchdog timeout \(.*self\.soft=True\)", (Trouble("suspect", "hang"),)),
    # Messengers.
    ("sigquit from a child", r"Received sigquit from a child process", (Trouble("messenger"),)),
    ("SIGQUIT received", r"^SIGQUIT received", (Trouble("messenger"),)),
    ("scheduler is dead", r"^Rank \d+ scheduler is dead", (Trouble("messenger"),)),
    ("Initialization failed", r"^Initialization failed\. (?:Please see|warmup error)", (Trouble("messenger"),)),
    # `Subprocess scheduler_0 (pid=4811) crashed with exit code -9. Triggering SIGQUIT for cleanup...`; -15 is a stop.
    ("crashed with exit code", r"^Subprocess .* crashed with exit code -9\b", (Trouble("fatal", "killed"),)),
    # `RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), ...`
    ("died during initialization", r"Rank \d+ scheduler died during initialization \(exit code: -9\)", (Trouble("fatal", "killed"),)),
    ("died during initialization", r"Rank \d+ scheduler died during initialization", (Trouble("messenger"),)),
    ("crashed with exit code", r"^Subprocess .* crashed with exit code", (Trouble("messenger"),)),
    ("hit an exception", r"^(?:Scheduler|TokenizerManager|DetokenizerManager|DataParallelController|\w+) hit an exception: ", (Trouble("messenger"),)),
)  # fmt: skip

_COMPILED: tuple[tuple[str, re.Pattern[str], Meaning], ...] = tuple(
    (word, re.compile(pattern), meaning) for word, pattern, meaning in (*FAILURES, *TABLE)
)
WORDS: tuple[str, ...] = tuple(dict.fromkeys(word for word, _, _ in _COMPILED))


def parse_start(line: Line) -> Sequence[Event]:
    """What one start-up, stop or failure line means; () for nothing."""
    text = line.text
    for word, pattern, meaning in _COMPILED:
        if word in text and pattern.search(text):
            return meaning(line) if callable(meaning) else meaning
    return ()


__all__ = ["FAILURES", "TABLE", "WORDS", "Facts", "Started", "Stopped", "parse_start"]
