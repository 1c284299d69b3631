"""vLLM's oddities in its life cycle, 0.10 to 0.33."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specconsole.core.launching.quirk import Quirk
from specconsole.core.launching.versions import since, until

QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        "refused-while-loading",
        "no HTTP until all is loaded: refused for the whole start, never 503",
        "entrypoints/launcher.py; seen: 0.32.0",
    ),
    Quirk(
        "health-of-a-frozen-engine",
        "/health is 200 in a millisecond while the engine process stands still: only a request shows it",
        "entrypoints/serve/instrumentator/health.py; seen: 0.32.0",
    ),
    Quirk(
        "no-warm-up-request",
        "it says `Application startup complete` without ever having generated: a draft that does not fit passes, and "
        "the first request kills the engine",
        "v1/spec_decode/eagle.py; seen: 0.32.0",
    ),
    Quirk(
        "term-while-starting",
        "TERM or INT while it starts is ignored (it goes on to serve) or leaves it hanging for good: only KILL of the "
        "whole group ends it",
        "v1/engine/utils.py; seen: 0.32.0",
    ),
    Quirk(
        "orphans-of-kill",
        "KILL or HUP of the API server leaves EngineCore and Worker running, GPU memory kept",
        "v1/executor/multiproc_executor.py; seen: 0.32.0",
    ),
    Quirk(
        "open-stream-holds-the-process",
        "after TERM the engine is gone at once, but the API server stays until every client has gone",
        "entrypoints/launcher.py; seen: 0.32.0",
    ),
    Quirk(
        "exit-0-after-a-crash",
        "when the engine dies the API server ends by itself with exit status 0",
        "entrypoints/launcher.py; seen: 0.32.0",
    ),
    Quirk(
        "words-of-a-clean-stop",
        "a clean stop may log `AsyncLLM output_handler failed` and `EngineDeadError`, `nanobind: leaked`, "
        "`leaked shared_memory objects`; a healthy start may log `OSError: [Errno 24]`",
        "v1/engine/async_llm.py; seen: 0.32.0",
    ),
    Quirk(
        "no-account-endpoint",
        "/server_info and /abort_requests exist only with VLLM_SERVER_DEV_MODE=1",
        "entrypoints/serve",
        since("0.10"),
    ),
    Quirk(
        "share-of-all-memory",
        "on CPUs `gpu_memory_utilization` is a share of all memory, used or not, unless VLLM_CPU_KVCACHE_SPACE or "
        "kv_cache_memory_bytes sets the size of the KV cache; then the share counts for nothing",
        "v1/worker/cpu_worker.py; seen: 0.32.0",
    ),
    Quirk(
        "server-keeps-its-context",
        "a draft that knows fewer positions than the server's context shortens only its own configuration: beyond them "
        "it drafts without having learnt to",
        "config/speculative.py; seen: 0.32.0",
        until("0.32"),
    ),
    Quirk(
        "keys-in-the-log",
        "`non-default args` held api_key in clear when it came as a flag (0.32.0 stars it), and ps does still; "
        "VLLM_API_KEY keeps it out of both",
        "entrypoints/utils.py: log_non_default_args",
    ),
)


TERM_TAKES_S = 15.0
"""A stop that works takes 0.4 to 6 s (seen: 0.32.0)."""


TERM_WHILE_LOADING_S = 5.0
"""While it loads TERM ends it within a second (its imports) or never does (seen: 0.32.0)."""


def grace_s(wanted_s: float, settings: Mapping[str, Any], *, loading: bool) -> float:
    """How long TERM may take. Unless it was told to drain (`--shutdown-timeout`), its engine and with it every request
    is gone at once; what remains waits for clients that get nothing any more. `loading`: it has not answered yet."""
    if loading:
        return min(wanted_s, TERM_WHILE_LOADING_S)
    drains = {name.lstrip("-").replace("-", "_"): value for name, value in settings.items()}.get("shutdown_timeout")
    return wanted_s if drains else min(wanted_s, TERM_TAKES_S)
