"""vLLM on a host's CPUs: the memory that it takes at start, by its own reckoning (0.32 v1/worker/cpu_worker.py).

With VLLM_CPU_KVCACHE_SPACE (whole GiB) or `kv_cache_memory_bytes` the KV cache has that size; else it takes
`gpu_memory_utilization` (0.92 unless set) of *all* memory, however much of it others use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GIB = 1024**3
DEFAULT_SHARE = 0.92


def kv_room_bytes(settings: Mapping[str, Any], env: Mapping[str, str]) -> int | None:
    """The size of the KV cache where it is set; None where it follows from the share. `settings` by Python names."""
    asked = settings.get("kv_cache_memory_bytes")
    if isinstance(asked, int) and not isinstance(asked, bool) and asked > 0:
        return asked
    text = env.get("VLLM_CPU_KVCACHE_SPACE", "").strip()
    return int(text) * GIB if text.isdigit() and int(text) else None


def share_bytes(settings: Mapping[str, Any], total_bytes: int) -> int:
    """What it wants to be free at start when nothing sets the size of the KV cache."""
    share = settings.get("gpu_memory_utilization")
    known = isinstance(share, int | float) and not isinstance(share, bool)
    return int(total_bytes * (float(share) if known else DEFAULT_SHARE))  # type: ignore[arg-type]  # a number by then


def why_refused(
    settings: Mapping[str, Any],
    env: Mapping[str, str],
    *,
    total_bytes: int | None,
    available_bytes: int | None,
    kv_bytes: int | None,
) -> tuple[str, str]:
    """(why it will refuse to start, what to try); ("", "") when nothing that is known forbids it.

    `kv_bytes`: what one request of the longest context takes; None where that is unknown.
    """
    room = kv_room_bytes(settings, env)
    if room is None:
        wanted = share_bytes(settings, total_bytes) if total_bytes is not None else None
        if wanted is None or available_bytes is None or wanted <= available_bytes:
            return "", ""
        text = f"without VLLM_CPU_KVCACHE_SPACE vLLM takes a share of all memory: {wanted / GIB:.1f} GiB must be free"
        return f"{text}, and {available_bytes / GIB:.1f} are", "--set env.VLLM_CPU_KVCACHE_SPACE=2"
    if available_bytes is not None and room > available_bytes:
        text = f"the KV cache is set to {room / GIB:.1f} GiB, and {available_bytes / GIB:.1f} are free"
        return text, "a smaller VLLM_CPU_KVCACHE_SPACE"
    if kv_bytes is not None and kv_bytes > room:
        text = f"one request of the longest context needs {kv_bytes / GIB:.2f} GiB of KV cache"
        return f"{text}, and it is set to {room / GIB:.2f}", "a shorter max_model_len, or more VLLM_CPU_KVCACHE_SPACE"
    return "", ""
