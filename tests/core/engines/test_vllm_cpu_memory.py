"""vLLM's reckoning of memory on CPUs, with the numbers that real starts of 0.32 named when they refused."""

from __future__ import annotations

import pytest

from specconsole.core.engines.vllm.cpu_memory import GIB, why_refused

ONE_GIB = {"VLLM_CPU_KVCACHE_SPACE": "1"}


@pytest.mark.parametrize(
    ("settings", "env", "available_gib", "kv_gib", "words"),
    [
        # Available memory on node 0 (21.41/23.54 GiB) ... less than desired CPU memory utilization (0.92, 21.66 GiB)
        ({}, {}, 21.41, None, "21.7 GiB must be free, and 21.4 are"),
        ({"gpu_memory_utilization": 0.2}, {}, 21.41, None, ""),
        # To serve at least one request with the model's max seq len (400000), (3.05 GiB KV cache is needed, ...
        ({}, ONE_GIB, 21.41, 3.05, "needs 3.05 GiB of KV cache, and it is set to 1.00"),
        ({"kv_cache_memory_bytes": 4 * GIB}, {}, 21.41, 3.05, ""),
        ({"gpu_memory_utilization": 0.99}, ONE_GIB, 21.41, 0.5, ""),  # the share does not count then
        ({}, {"VLLM_CPU_KVCACHE_SPACE": "40"}, 21.41, None, "set to 40.0 GiB, and 21.4 are free"),
        ({}, {"VLLM_CPU_KVCACHE_SPACE": "much"}, None, None, ""),
    ],
)
def test_what_it_refuses(
    settings: dict[str, object], env: dict[str, str], available_gib: float | None, kv_gib: float | None, words: str
) -> None:
    why, try_ = why_refused(
        settings,
        env,
        total_bytes=int(23.54 * GIB),
        available_bytes=None if available_gib is None else int(available_gib * GIB),
        kv_bytes=None if kv_gib is None else int(kv_gib * GIB),
    )
    assert words in why
    assert bool(why) == bool(words) == bool(try_)
