"""llama.cpp's `llama-server`, b3000 (2024) to b11549, ik_llama.cpp and xllamacpp: stamped, unstamped and JSON lines.

The HTTP port opens before the model loads (503 until then), so an open port says nothing here. At the default
verbosity nothing is printed while tensors are read, except the old build's row of dots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from specconsole.core.reading.events import (
    Busy,
    Count,
    Enter,
    Event,
    Facts,
    Idle,
    Leave,
    Ready,
    Started,
    StopAsked,
    Warn,
    Window,
)
from specconsole.core.reading.generic_table import Row, TableDialect, number, row
from specconsole.core.reading.model import WarningClass


def _port(match: re.Match[str]) -> Sequence[Event]:
    return (Ready(), Facts(port=int(match[1])))


def _warn(kind: WarningClass, literal: str, pattern: str) -> Row:
    return row(literal, pattern, make=lambda match: (Warn(kind, match.string.strip()),))


def _dots(match: re.Match[str]) -> Sequence[Event]:
    return (Count(done=len(match[0]), total=100, unit="percent", phase="weights"),)


_ROWS: tuple[Row, ...] = (
    # `slot print_timing: id  0 | task 0 |        eval time =    4105.50 ms /   400 tokens (   10.26 ms per token,
    # 97.43 tokens per second)`
    # old: `slot print_timing: id  0 | task 0 | \n       eval time = ...`, `print_timings:        eval time = ...`
    # in builds of 2024
    row(
        " eval time =",
        r"(?<!prompt) eval time = +[\d.]+ ms / +\d+ (?:tokens|runs) +\( *[\d.]+ ms per token, +([\d.]+) tok",
        make=lambda m: (Window(gen_throughput_tok_s=number(m[1]), spans_idle=False), Busy()),
    ),
    # `draft acceptance = 0.52632 (   40 accepted /    76 generated), mean len =  3.11` (b10434)
    # `draft acceptance = 0.54386 (  248 accepted /   456 generated), mean acceptance length =  2.63, ...` (2026-05)
    row(
        "draft acceptance",
        r"draft acceptance(?: rate)? = .*?mean (?:acceptance )?len(?:gth)? = +([\d.]+)",
        make=lambda m: (Window(accept_length=number(m[1]), opens=False),),
    ),
    # `slot launch_slot_: id  1 | task 2 | processing task, is_child = 0` (old: `slot launch_slot_: id 0 | task 0 |
    # processing task`)
    row("processing task", r"launch_slot_.*processing task", Busy()),
    # `n_gen =    162, tg =  53.26 t/s, tg_3s =  53.58 t/s` (every 3 s of a long request)
    row("tg_", r"n_gen = +\d+, tg = +([\d.]+) t/s", Busy()),
    # `slot      release: id  1 | task 2 | stop processing: n_tokens = 32, truncated = 0`
    row("stop processing", r"release: id +\d+ .*stop processing", Idle()),
    # `srv  update_slots: all slots are idle` (main.cpp of 2024 to 2026-05)
    row("all slots are idle", r"all slots are idle", Idle()),
    # `srv  llama_server: initializing ...` (b11434) / `srv          init: initializing ...` (xllamacpp)
    row("initializing ...", r"^srv +(?:llama_server|init): initializing \.\.\.", Started(), Enter("starting")),
    # `build: 4567 (a1b2c3d4) with gcc-11 (...) for x86_64-linux-gnu` (2024-10 on) / `build: 0 (unknown) with ...`
    row(
        "build",
        r"\bbuild:? (\d+) \(\w+\) with ",
        make=lambda m: (Started(), Facts(version=f"b{m[1]}")) if m[1] != "0" else (Started(),),
    ),
    # `srv    load_model: loading model 'models/tiny.gguf'` (old: `srv  load_model: loading model '...'`, `main:
    # loading model`)
    row(
        "loading model",
        r"^(?:srv +load_model|main): loading model(?: '(.*)')?$",
        make=lambda m: (Enter("weights", "target"), Facts(model=m[1])),
    ),
    # `common_speculative_init_result: loading draft model 'models/tiny-draft.gguf'` (old: `srv  load_model: loading
    # draft model '...'`)
    row(
        "loading draft model",
        r"loading draft model '(.*)'",
        make=lambda m: (Enter("weights", "draft"), Facts(draft_model=m[1])),
    ),
    # `llama_model_loader: loaded meta data with 23 key-value pairs and 75 tensors from models/tiny.gguf (version
    # GGUF V3 (latest))`
    row("loaded meta data with", r"^llama_model_loader: loaded meta data", Enter("weights", stay=True)),
    # `load_tensors: loading model tensors, this can take a while... (mmap = true)` (2024: `llm_load_tensors:`)
    row("load_tensors:", r"load_tensors: loading model tensors", Enter("weights", stay=True)),
    # `....................................................................................` one dot a percent
    # (unstamped builds)
    row("....", r"^\.{4,100}$", make=_dots),
    # `llama_kv_cache:        CPU KV buffer size =     0.00 MiB` (2024: `llama_kv_cache_init:`, 2025:
    # `llama_kv_cache_unified:`)
    row("KV buffer size", r"KV buffer size = ", Enter("kv-cache", stay=True)),
    # `common_init_from_params: warming up the model with an empty run - please wait ... (--no-warmup to disable)`
    row("warming up the model", r"warming up the model", Enter("warm-up", stay=True)),
    # `srv    load_model: initializing, n_slots = 2, n_ctx_slot = 2048, kv_unified = 'false'` (old: `init:
    # initializing slots, n_slots = 1`)
    row("initializing", r"(?:load_model|init): initializing(?: slots)?, n_slots = \d+", Enter("warm-up")),
    # `srv  llama_server: model loaded` / `main: model loaded`
    row("model loaded", r"(?:llama_server|main|init): model loaded", Leave("weights"), Enter("warm-up")),
    # `srv  llama_server: listening on http://127.0.0.1:18100` / `main: server is listening on http://127.0.0.1:8080
    # - starting the main loop`
    row("listening on http", r"listening on https?://.*?:(\d{1,5})(?: |$)", make=_port),
    # `main: HTTP server is listening, hostname: 127.0.0.1, port: 8080, http threads: 15` (2024: before the model
    # loads)
    row(
        "server is listening",
        r"HTTP server is listening, hostname: .*port: (\d{1,5})\b",
        make=lambda m: (Facts(port=int(m[1])),),
    ),
    # `srv    operator(): operator(): cleaning up before exit...`
    row("cleaning up before exit", r"cleaning up before exit", StopAsked()),
    # `srv    load_model: failed to initialize speculative decoding context: draft model vocab type must match
    # target model ...`
    _warn("speculation-off", "speculative decoding", r"failed to initialize speculative decoding context"),
    # `srv    load_model: speculative decoding is not supported with multimodal, it will be disabled` / `... not
    # supported by this context`
    _warn("speculation-off", "speculative decoding", r"speculative decoding (?:is )?not supported"),
    # `spec common_specu: the target and draft vocabs are not compatible` (b10434, followed by the line above)
    _warn("speculation-off", "vocabs are not compatible", r"target and draft vocabs are not compatible"),
    # `srv    load_model: the slot context (32768) exceeds the training context of the model (4096) - capping`
    _warn("setting-overridden", "capping", r"exceeds the training context of the model .* - capping"),
    # `n_batch ... is set to ...`: `srv load_model: cache_reuse is not supported by this context, it will be disabled`
    _warn("setting-overridden", "it will be disabled", r"^srv .*it will be disabled"),
    # `DEPRECATED: argument '--draft-max' specified ... use '--spec-draft-n-max' instead` (common/arg.cpp)
    _warn("deprecated-flag", "DEPRECATED", r"^(?:warn: )?DEPRECATED"),
    # `slot update_slots: id  0 | task 0 | failed to find free space in the KV cache, retrying with smaller batch
    # size`
    _warn("kv-full", "KV cache, retrying", r"failed to find (?:free space|a memory slot).*retrying"),
)

DIALECT = TableDialect(
    engine="llamacpp",
    rows=_ROWS,
    sure=(
        "llama_server:",
        "llama-server",
        "llama_model_loader",
        "llama_model_load",
        "llama_context:",
        "llama_init_from_model",
        "common_init_",
        "common_speculative",
        "print_timing",
        "launch_slot_",
        "update_slots:",
        "gguf_init_from",
        "ggml_backend",
        "cmn  common_param",
        "main: server is listening",
        "main: HTTP server is listening",
        "system_info: n_threads",
        "LLAMA_ARG_",
        "load_model: loading model",
    ),
    shapes=(r"build: \d+ \(\w+\) with ",),
    hints=("ggml_", "gguf", "GGUF", "while handling argument"),
)
