"""Will it fit? GPU memory of a start, by its parts, before any weight loads.

Weights come from the checkpoints' own sizes, KV bytes a token from `config.json`. SGLang (0.4.6 to 0.5.17; 0.5.19 on
sizes the pool after capture) gives the KV pool what is left when a share of the free memory is kept back:

    pool = free after all weights - free before * (1 - mem_fraction_static)

(real starts on an H200: within 0.1 %). vLLM gives it `gpu_memory_utilization` of the whole card less weights,
activations and graphs. Graphs and activations are the one part without a formula: measured values of a like start
serve where there are some, else a range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from specconsole.core.launching.draft_facts import text_config

GIB = 1024**3

# Eleven captures of one SGLang 0.5.17 start each on an H200 took 0.04 to 1.6 GiB a graph set; a speculative server has
# five sets, a plain one two.
GRAPHS_PLAIN_BYTES = (int(0.1 * GIB), int(1.3 * GIB), int(4 * GIB))
GRAPHS_SPECULATIVE_BYTES = (int(0.3 * GIB), int(3.2 * GIB), int(8 * GIB))
CONTEXT_BYTES = int(0.6 * GIB)
"""CUDA context and libraries of one process, before the first allocation (0.5 to 0.7 GiB seen)."""

_DTYPE_BYTES = {
    "bfloat16": 2.0, "float16": 2.0, "half": 2.0, "float32": 4.0, "float": 4.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0,
    "fp8": 1.0, "fp8_e4m3fn": 1.0, "int8": 1.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KvShape:
    """What one token costs in the KV cache of one rank."""

    bytes_per_token: float
    layers: int
    note: str
    """How it was made: `16 layers x 8 KV heads x 128 x 2 (K and V) x 2 bytes`."""


def kv_shape(config: Mapping[str, Any], *, tp_size: int, kv_dtype: str | None = None) -> KvShape | None:
    """From a model's configuration; None where it lacks what is needed (hybrid and recurrent models among them).

    KV heads are divided over the ranks and repeated where there are fewer heads than ranks; MLA's compressed vector
    (`kv_lora_rank` + `qk_rope_head_dim`) is held whole by each rank.
    """
    inner = text_config(config)
    layers = inner.get("num_hidden_layers")
    width = _DTYPE_BYTES.get(str(kv_dtype or "auto"))
    if width is None:
        width = _DTYPE_BYTES.get(str(inner.get("torch_dtype") or inner.get("dtype") or "bfloat16"), 2.0)
    if not isinstance(layers, int) or any(key in inner for key in ("layer_types", "mamba_d_state", "ssm_cfg")):
        return None
    rank, rope = inner.get("kv_lora_rank"), inner.get("qk_rope_head_dim")
    if isinstance(rank, int) and isinstance(rope, int):
        each = (rank + rope) * width
        return KvShape(layers * each, layers, f"{layers} layers x ({rank} + {rope}) x {width:g} bytes (MLA)")
    heads = inner.get("num_attention_heads")
    groups = inner.get("num_key_value_heads", heads)
    size = inner.get("head_dim")
    if size is None and isinstance(heads, int) and isinstance(inner.get("hidden_size"), int):
        size = inner["hidden_size"] // heads
    if not isinstance(groups, int) or not isinstance(size, int):
        return None
    mine = max(1, groups // max(1, tp_size))
    text = f"{layers} layers x {mine} KV heads x {size} x 2 (K and V) x {width:g} bytes"
    return KvShape(layers * mine * size * 2 * width, layers, text)


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """What is known of a start. Bytes are for one rank's GPU unless said."""

    engine: Literal["sglang", "vllm", "llamacpp", "other"]
    weights_bytes: int
    """All shards of the target together."""
    tp_size: int
    kv: KvShape | None
    free_bytes: int
    """Free on the fullest GPU that it will use."""
    total_bytes: int
    draft_weights_bytes: int = 0
    draft_kv: KvShape | None = None
    speculative: bool = False
    fraction: float | None = None
    """`mem_fraction_static` or `gpu_memory_utilization`; None: the engine's default."""
    context: int | None = None
    requests: int | None = None
    graphs_bytes: int | None = None
    """Graphs and activations of a like start, measured; None: none is known."""
    other_processes_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    low_bytes: int
    mid_bytes: int
    high_bytes: int
    how: str


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """The parts, what they add up to, and what the KV pool will hold."""

    parts: tuple[Part, ...]
    kv_pool_tokens: int | None
    """Tokens that the pool will hold; None where KV bytes a token are unknown."""
    tokens_wanted: int | None
    """Context times requests; None where either is unknown."""
    fits: bool | None
    """False: weights or the smallest pool can't fit. None: it depends on graphs and activations."""
    text: str
    fix: Mapping[str, Any] | None = None

    @property
    def mid_bytes(self) -> int:
        return sum(part.mid_bytes for part in self.parts)

    @property
    def low_bytes(self) -> int:
        return sum(part.low_bytes for part in self.parts)


# SGLang picks its default from the card and the graphs: 0.903 to 0.91 on an H200 in eight real starts. vLLM: 0.92 from
# 0.32 on, 0.9 before.
DEFAULT_FRACTION = {"sglang": 0.90, "vllm": 0.9}


def estimate_memory(question: MemoryQuestion) -> MemoryEstimate:
    """The estimate for one rank. Never raises for odd numbers: a start that can't fit is a finding."""
    q = question
    weights = q.weights_bytes // max(1, q.tp_size)
    low, mid, high = GRAPHS_SPECULATIVE_BYTES if q.speculative else GRAPHS_PLAIN_BYTES
    if q.graphs_bytes is not None:
        low = mid = high = q.graphs_bytes
    parts = [Part("weights", weights, weights, weights, f"{q.weights_bytes / GIB:.2f} GiB / tp {q.tp_size}")]
    if q.draft_weights_bytes:
        size = q.draft_weights_bytes
        parts.append(Part("draft weights", size, size, size, "the draft's files"))
    parts.append(Part("graphs and activations", low, mid, high, "measured" if q.graphs_bytes is not None else "range"))
    per_token = q.kv.bytes_per_token + (q.draft_kv.bytes_per_token if q.draft_kv else 0.0) if q.kv else None
    wanted = q.context * q.requests if q.context and q.requests else None
    fraction = q.fraction if q.fraction is not None else DEFAULT_FRACTION.get(q.engine, 0.9)
    after_weights = q.free_bytes - weights - q.draft_weights_bytes
    if q.engine == "vllm":
        # The share is of the whole card; what others hold counts against it too.
        pool = fraction * q.total_bytes - (q.total_bytes - q.free_bytes) - weights - q.draft_weights_bytes - mid
    elif q.engine == "sglang":
        pool = after_weights - q.free_bytes * (1.0 - fraction)
    else:
        pool = (wanted or 0) * (per_token or 0.0)
    tokens = int(pool / per_token) if per_token and pool > 0 else (0 if per_token else None)
    pool_bytes = max(0, int(pool))
    parts.append(Part("KV pool", 0, pool_bytes, pool_bytes, q.kv.note if q.kv else "bytes a token are not known"))
    return _judge(q, tuple(parts), tokens, wanted, after_weights, low, per_token, fraction)


def _judge(
    q: MemoryQuestion,
    parts: tuple[Part, ...],
    tokens: int | None,
    wanted: int | None,
    after_weights: int,
    least_graphs: int,
    per_token: float | None,
    fraction: float,
) -> MemoryEstimate:
    key = "mem_fraction_static" if q.engine == "sglang" else "gpu_memory_utilization"
    if after_weights <= 0:
        missing = -after_weights / GIB
        text = f"the weights do not fit: {missing:.1f} GiB missing on one GPU"
        return MemoryEstimate(parts, tokens, wanted, False, text, {"tp_size": q.tp_size * 2})
    if tokens == 0:
        need = 1.0 - (after_weights - least_graphs) / max(1, q.free_bytes)
        text = f"no room is left for the KV pool at {key} {fraction:g}"
        better = round(min(0.97, max(fraction, 1.0 - max(0.03, need * 0.5)) + 0.02), 2)
        return MemoryEstimate(parts, tokens, wanted, False, text, {key: better} if better > fraction else None)
    if tokens is not None and q.context is not None and tokens < q.context:
        text = f"the KV pool will hold {tokens:,} tokens, fewer than one request's {q.context:,}"
        word = "context_length" if q.engine == "sglang" else "max_model_len"
        return MemoryEstimate(parts, tokens, wanted, False, text, {word: tokens})
    kept_back = q.free_bytes * (1.0 - fraction) if q.engine == "sglang" else None
    if kept_back is not None and kept_back < least_graphs:
        text = f"{key} {fraction:g} keeps {kept_back / GIB:.1f} GiB for graphs and activations: capture may run out"
        return MemoryEstimate(parts, tokens, wanted, None, text, {key: round(1.0 - least_graphs * 2 / q.free_bytes, 3)})
    if tokens is not None and wanted is not None and tokens < wanted:
        text = f"the KV pool will hold {tokens:,} tokens: {tokens // (q.context or 1)} whole requests, not {q.requests}"
        return MemoryEstimate(parts, tokens, wanted, True, text)
    room = f"about {tokens:,} tokens of KV" if tokens is not None else "KV pool unknown"
    return MemoryEstimate(parts, tokens, wanted, True if per_token else None, room)
