"""Does this draft fit this target? From two `config.json` and the draft's safetensors heads, before any weight loads.

Facts: SGLang 0.5.23 `models/llama_eagle3.py` (ignores unknown and missing tensor names silently, always takes the
target's embedding), vLLM 0.33 `model_executor/models/llama_eagle3.py` and `transformers_utils/configs/eagle.py`,
SpecForge a6b6b02. `d2t` holds *offsets*: target id = draft id + d2t[draft id]. A file with absolute ids loads without
a word and accepts nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from specconsole.core.launching.rules import Level
from specconsole.core.launching.safetensors_header import Tensor

EAGLE3_REQUIRED = (
    "fc.weight",
    "norm.weight",
    "lm_head.weight",
)
LAYER_REQUIRED = (
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
    "hidden_norm.weight",
    "input_layernorm.weight",
    "post_attention_layernorm.weight",
)
LAYER_PREFIXES = ("midlayer.", "layers.0.", "model.midlayer.", "model.layers.0.")


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


def check_draft(facts: DraftFacts) -> tuple[DraftFinding, ...]:
    """All findings, gravest first; empty means that nothing was found, not that nothing can be wrong."""
    found = [*_architecture(facts), *_positions(facts)]
    if facts.algorithm == "EAGLE3":
        found += [*_shapes(facts), *_names(facts), *_layers(facts), *_maps(facts)]
    elif facts.algorithm in ("STANDALONE", "DRAFT_MODEL"):
        found += _same_vocabulary(facts)
    if facts.target_quantised and facts.engine == "sglang" and "quantization_config" not in facts.draft_config:
        found.append(
            DraftFinding(
                "quantisation",
                "warning",
                "the target is quantised and the draft is not: SGLang would read the draft with the target's method",
                {"speculative_draft_model_quantization": "unquant"},
            )
        )
    order: tuple[Level, ...] = ("error", "overridden", "warning", "note")
    return tuple(sorted(found, key=lambda f: order.index(f.level)))


def decode_int64(data: bytes) -> tuple[int, ...]:
    """The bytes of an I64 tensor. Raises ValueError when they are no whole number of values."""
    if len(data) % 8:
        raise ValueError("not a whole number of 64-bit values")
    return struct.unpack(f"<{len(data) // 8}q", data)


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
                if kind not in ("su", "longrope", "llama3", "mrope") and isinstance(factor, int | float):
                    return int(base * factor)
            return base
    return None


def _architecture(facts: DraftFacts) -> Iterable[DraftFinding]:
    names = facts.draft_config.get("architectures")
    name = str(names[0]) if isinstance(names, list) and names else None
    if name is None:
        yield DraftFinding("architecture", "warning", "the draft's config.json names no architecture")
        return
    is_eagle3 = "eagle3" in name.lower() or str(facts.draft_config.get("speculators_model_type", "")) == "eagle3"
    if facts.algorithm == "EAGLE3" and not is_eagle3:
        yield DraftFinding("architecture", "error", f"EAGLE3 was asked for, the draft is a {name}")
    elif facts.algorithm in ("STANDALONE", "DRAFT_MODEL") and "eagle" in name.lower():
        yield DraftFinding("architecture", "error", f"a whole draft model was asked for, the draft is a {name}")
    elif facts.algorithm == "EAGLE" and is_eagle3:
        fix = {"speculative_algorithm": "EAGLE3"}
        yield DraftFinding("architecture", "error", f"EAGLE was asked for, the draft is a {name}", fix)


def _positions(facts: DraftFacts) -> Iterable[DraftFinding]:
    draft, target = longest_context(facts.draft_config), longest_context(facts.target_config)
    context = facts.context or target
    if target is not None and facts.context is not None and facts.context > target:
        yield DraftFinding(
            "context", "error", f"context {facts.context} is beyond the model's {target} positions",
            {"context_length" if facts.engine == "sglang" else "max_model_len": target},
        )  # fmt: skip
    if draft is None or context is None or context <= draft:
        return
    if facts.engine == "sglang":
        yield DraftFinding(
            "draft-context",
            "error",
            f"context {context} is beyond the draft's {draft} positions: SGLang refuses it after the target has loaded",
            {"env.SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"},
        )
    else:
        text = f"the draft knows {draft} positions: its context (with vLLM's V2 runner the server's) is lowered to that"
        yield DraftFinding("draft-context", "overridden", text, {"max_model_len": draft})


def _same_vocabulary(facts: DraftFacts) -> Iterable[DraftFinding]:
    target, draft = (text_config(c).get("vocab_size") for c in (facts.target_config, facts.draft_config))
    if isinstance(target, int) and isinstance(draft, int) and target != draft:
        yield DraftFinding("vocabulary", "error", f"the draft's vocabulary has {draft} tokens, the target's {target}")


def _shapes(facts: DraftFacts) -> Iterable[DraftFinding]:
    target, draft = text_config(facts.target_config), text_config(facts.draft_config)
    width, own = target.get("hidden_size"), draft.get("hidden_size")
    told = facts.draft_config.get("target_hidden_size")
    if isinstance(width, int) and isinstance(own, int) and width != own and facts.engine == "sglang":
        yield DraftFinding(
            "hidden-size", "error", f"the draft's hidden size is {own}, the target's {width} (SGLang shares embeddings)"
        )
    elif isinstance(width, int) and isinstance(told, int) and told != width:
        yield DraftFinding("hidden-size", "error", f"the draft was made for hidden size {told}, the target has {width}")
    fc = _find(facts.tensors, "fc.weight")
    if fc is not None and len(fc.shape) == 2 and isinstance(width, int):
        taps = _tap_count(facts)
        wanted = width * taps
        if fc.shape[1] != wanted:
            yield DraftFinding(
                "fc-shape", "error",
                f"fc takes {fc.shape[1]} inputs; {taps} tapped layers of the target's {width} give {wanted}",
            )  # fmt: skip
    q = next((t for p in LAYER_PREFIXES if (t := facts.tensors.get(f"{p}self_attn.q_proj.weight"))), None)
    if q is not None and len(q.shape) == 2 and isinstance(own, int) and q.shape[1] != 2 * own:
        yield DraftFinding("q-shape", "error", f"q_proj takes {q.shape[1]} inputs, an EAGLE-3 layer takes {2 * own}")
    small = facts.draft_config.get("draft_vocab_size") or draft.get("vocab_size")
    head = _find(facts.tensors, "lm_head.weight")
    if head is not None and isinstance(small, int) and head.shape and head.shape[0] != small:
        yield DraftFinding("head-shape", "error", f"lm_head has {head.shape[0]} rows, draft_vocab_size says {small}")
    a, b = target.get("vocab_size"), draft.get("vocab_size")
    if isinstance(a, int) and isinstance(b, int) and a != b:
        yield DraftFinding("vocabulary", "error", f"the draft was made for {b} tokens, the target has {a}")


def _names(facts: DraftFacts) -> Iterable[DraftFinding]:
    if not facts.tensors:
        return
    missing = [name for name in EAGLE3_REQUIRED if _find(facts.tensors, name) is None]
    prefix = next((p for p in LAYER_PREFIXES if f"{p}self_attn.q_proj.weight" in facts.tensors), None)
    if prefix is None:
        fused = any("qkv_proj" in name or "q_a_proj" in name or "kv_a_proj" in name for name in facts.tensors)
        if not fused:
            missing.append("midlayer.self_attn.q_proj.weight")
    else:
        missing += [f"{prefix}{name}" for name in LAYER_REQUIRED if f"{prefix}{name}" not in facts.tensors]
    if missing:
        silent = "; SGLang says nothing and leaves them uninitialised" if facts.engine == "sglang" else ""
        yield DraftFinding("tensors-missing", "error", f"tensors missing: {', '.join(missing[:6])}{silent}")


def _tap_count(facts: DraftFacts) -> int:
    number = facts.draft_config.get("num_aux_hidden_states")
    ids = _tapped(facts)
    return number if isinstance(number, int) and number > 0 else len(ids) if ids else 3


def _tapped(facts: DraftFacts) -> list[int] | None:
    eagle = facts.draft_config.get("eagle_config")
    ids = facts.draft_config.get("eagle_aux_hidden_state_layer_ids")
    if ids is None and isinstance(eagle, Mapping):
        ids = eagle.get("eagle_aux_hidden_state_layer_ids", eagle.get("layer_ids"))
    return [i for i in ids if isinstance(i, int)] if isinstance(ids, list) else None


def _layers(facts: DraftFacts) -> Iterable[DraftFinding]:
    ids, layers = _tapped(facts), text_config(facts.target_config).get("num_hidden_layers")
    if not isinstance(layers, int):
        return
    if ids and max(ids) >= layers:
        yield DraftFinding("tapped-layers", "error", f"the draft taps layer {max(ids)}, the target has {layers}")
    default = [2, layers // 2, layers - 3]
    if ids is None and (min(default) < 0 or len(set(default)) < 3):
        text = f"the default tapped layers {default} of {layers} coincide: vLLM dies on the first request"
        yield DraftFinding("tapped-layers", "error", text)
    if ids and facts.engine == "vllm" and ids != [1, layers // 2 - 1, layers - 4]:
        text = "explicit tapped layers mean another layer in vLLM than in SGLang: check `Using Eagle3 auxiliary layers`"
        yield DraftFinding("tapped-layers", "warning", text)


def _maps(facts: DraftFacts) -> Iterable[DraftFinding]:
    config = text_config(facts.draft_config)
    vocabulary, small = config.get("vocab_size"), facts.draft_config.get("draft_vocab_size")
    reduced = isinstance(small, int) and isinstance(vocabulary, int) and small < vocabulary
    present = _find(facts.tensors, "d2t")
    if facts.tensors and reduced and present is None:
        yield DraftFinding(
            "d2t-missing", "error", "a reduced vocabulary without d2t: every draft token means another one"
        )
    if present is not None and isinstance(small, int) and present.shape[:1] != (small,):
        yield DraftFinding("d2t-size", "error", f"d2t has {present.shape[0]} entries, draft_vocab_size says {small}")
    mask = _find(facts.tensors, "t2d")
    if mask is not None and isinstance(vocabulary, int) and mask.shape[:1] != (vocabulary,):
        yield DraftFinding("t2d-size", "error", f"t2d has {mask.shape[0]} entries, the vocabulary {vocabulary}")
    if facts.d2t:
        yield from _offsets(facts, facts.d2t, vocabulary if isinstance(vocabulary, int) else None)


def _offsets(facts: DraftFacts, d2t: Sequence[int], vocabulary: int | None) -> Iterable[DraftFinding]:
    if len(d2t) > 1 and not any(d2t):
        if vocabulary is not None and len(d2t) < vocabulary:
            text = "d2t is all zeros: draft ids are taken for the first ids of the vocabulary"
            yield DraftFinding("d2t-zeros", "error", text)
        return
    steps = [b - a for a, b in pairwise(d2t)]
    ids = [index + offset for index, offset in enumerate(d2t)]
    runs_out = vocabulary is not None and (max(ids) >= vocabulary or min(ids) < 0)
    if steps and all(step >= 1 for step in steps):
        # Offsets stay equal wherever neighbouring ids are both kept; ids always rise.
        yield DraftFinding("d2t-absolute", "error", "d2t holds absolute ids; the loaders add it to the draft's ids")
        return
    if runs_out:
        yield DraftFinding("d2t-range", "error", f"d2t leads to id {max(ids)}, the vocabulary ends at {vocabulary}")
        return
    if any(b <= a for a, b in pairwise(ids)):
        yield DraftFinding(
            "d2t-order", "warning", "d2t does not lead to rising ids: two draft tokens may mean one token"
        )
    if facts.t2d is not None:
        kept = {index for index, flag in enumerate(facts.t2d) if flag}
        wrong = kept ^ set(ids)
        if wrong:
            yield DraftFinding("maps-disagree", "error", f"d2t and t2d disagree on {len(wrong)} tokens")
    if facts.common_tokens:
        covered = len(set(facts.common_tokens) & set(ids)) / len(set(facts.common_tokens))
        if covered < 0.9:
            text = f"only {covered:.0%} of the tokenizer's common tokens can be drafted at all"
            yield DraftFinding("coverage", "warning", text)


def _find(tensors: Mapping[str, Tensor], name: str) -> Tensor | None:
    return tensors.get(name) or tensors.get(f"model.{name}")
