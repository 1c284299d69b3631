"""The estimate against eight recorded starts of SGLang 0.5.17 on one H200: what the server's own lines said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specconsole.core.launching.memory import GIB, KvShape, MemoryQuestion, estimate_memory, kv_shape

TARGET = {
    "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
    "hidden_size": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip
DRAFT = {**TARGET, "num_hidden_layers": 1}

# (mem_fraction_static, draft?, graphs: sum of `mem usage` of the capture lines, #tokens, available_gpu_mem at the end)
# from `KV Cache is allocated`, `Capture ... end` and `max_total_num_tokens` lines; 5.79 and 1.17 GB of weights.
STARTS = [
    (0.6, False, 1.10 + 0.04, 1271849, 54.26),
    (0.903, False, 1.11 + 0.16, 1963367, 11.94),
    (0.907, True, 1.53 + 0.09 + 1.40 + 0.06 + 0.08, 1837968, 10.09),
    (0.907, True, 1.54 + 0.15 + 1.40 + 0.10 + 0.14, 1837968, 9.90),
    (0.903, True, 1.56 + 0.21 + 1.46 + 0.25 + 0.20, 1829383, 10.10),
]


def question(fraction: float, draft: bool, graphs_gib: float | None) -> MemoryQuestion:
    return MemoryQuestion(
        engine="sglang",
        weights_bytes=int(5.79 * GIB),
        tp_size=1,
        kv=kv_shape(TARGET, tp_size=1),
        free_bytes=int(139.09 * GIB),
        total_bytes=int(139.8 * GIB),
        draft_weights_bytes=int(1.17 * GIB) if draft else 0,
        draft_kv=kv_shape(DRAFT, tp_size=1) if draft else None,
        speculative=draft,
        fraction=fraction,
        graphs_bytes=None if graphs_gib is None else int(graphs_gib * GIB),
    )


@pytest.mark.parametrize(("fraction", "draft", "graphs", "tokens", "left"), STARTS)
def test_pool_and_total_of_recorded_starts(
    fraction: float, draft: bool, graphs: float, tokens: int, left: float
) -> None:
    found = estimate_memory(question(fraction, draft, graphs))
    assert found.kv_pool_tokens == pytest.approx(tokens, rel=0.005)
    assert found.mid_bytes / GIB == pytest.approx(139.09 - left, rel=0.01)
    assert found.fits is True
    unmeasured = estimate_memory(question(fraction, draft, None))
    assert unmeasured.mid_bytes / GIB == pytest.approx(139.09 - left, rel=0.10)


def test_kv_bytes_of_a_token() -> None:
    shape = kv_shape(TARGET, tp_size=1)
    assert shape is not None
    assert shape.bytes_per_token == 65536, "56.09 GiB of K for 1,837,968 tokens is 32,768 bytes, and V as much"
    split = kv_shape(TARGET, tp_size=16)
    assert split is not None
    assert split.bytes_per_token == 65536 / 8, "fewer heads than ranks: each rank holds one"
    mla = kv_shape({"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}, tp_size=8)
    assert mla is not None
    assert mla.bytes_per_token == 61 * 576 * 2
    assert kv_shape({"num_hidden_layers": 4, "layer_types": ["mamba"]}, tp_size=1) is None
    assert kv_shape({}, tp_size=1) is None


@pytest.mark.parametrize(
    ("change", "fits", "says", "fix"),
    [
        ({"weights_bytes": 300 * GIB}, False, "weights do not fit", {"tp_size": 2}),
        ({"fraction": 0.04}, False, "no room is left for the KV pool", {}),
        ({"fraction": 0.999}, None, "capture may run out", {}),
        ({"context": 4096, "requests": 4000}, True, "whole requests, not 4000", None),
        ({"kv": KvShape(1e9, 16, "x"), "draft_kv": None, "context": 131072}, False, "fewer than one request", {}),
        ({"kv": None}, None, "unknown", None),
    ],
)
def test_what_will_not_fit_is_said_with_a_value(change: dict[str, Any], fits: Any, says: str, fix: Any) -> None:
    found = estimate_memory(replace(question(0.907, True, None), **change))
    assert found.fits is fits
    assert says in found.text
    if fix is None:
        assert found.fix is None
    else:
        assert found.fix
        for key, value in fix.items():
            assert found.fix[key] == value
