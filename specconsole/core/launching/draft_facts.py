"""What a draft's check goes by, what it finds, and the two or three readings of a `config.json` that others use too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from specconsole.core.launching.rules import Level
from specconsole.core.launching.safetensors_header import Tensor


@dataclass(frozen=True, slots=True)
class DraftFinding:
    check: str
    """Id of the check, for tests and exit codes."""
    level: Level
    text: str
    fix: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class DraftFacts:
    """What was read of a draft and its target. None and empty: not read."""

    target_config: Mapping[str, Any]
    draft_config: Mapping[str, Any]
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    d2t: Sequence[int] | None = None
    t2d: Sequence[bool] | None = None
    common_tokens: Sequence[int] | None = None
    """Ids of the target tokenizer's common tokens."""
    engine: str = "sglang"
    algorithm: str = "EAGLE3"
    context: int | None = None
    """Context length planned; None: the target's own."""
    target_quantised: bool = False


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part of a configuration (multimodal ones nest it)."""
    for key in ("text_config", "language_config", "llm_config", "transformer_layer_config"):
        inner = config.get(key)
        if isinstance(inner, Mapping) and ("hidden_size" in inner or "num_hidden_layers" in inner):
            return inner
    return config


def longest_context(config: Mapping[str, Any]) -> int | None:
    """Positions times rope scaling, as the engines derive it; None when the configuration does not say."""
    inner = text_config(config)
    for key in ("max_position_embeddings", "max_sequence_length", "seq_length", "n_positions", "max_seq_len"):
        base = inner.get(key)
        if isinstance(base, int) and not isinstance(base, bool) and base > 0:
            scaling = inner.get("rope_scaling")
            if isinstance(scaling, Mapping) and "original_max_position_embeddings" not in scaling:
                kind = scaling.get("rope_type", scaling.get("type"))
                factor = scaling.get("factor")
                if kind not in ("su", "longrope", "llama3", "mrope") and _is_factor(factor):
                    return int(base * factor)
            return base
    return None


def _is_factor(value: object) -> TypeGuard[float]:
    # `NaN` and `Infinity` are JSON to Python's reader.
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def architecture_of(config: Mapping[str, Any]) -> str | None:
    """The first architecture that a configuration names; None where it names none."""
    names = config.get("architectures")
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None


def find_tensor(tensors: Mapping[str, Tensor], name: str) -> Tensor | None:
    """A tensor of that name, with or without `model.` before it."""
    return tensors.get(name) or tensors.get(f"model.{name}")
