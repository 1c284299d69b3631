"""Do a draft's tensors have the names that its loader looks for?

SGLang 0.5.17 `models/llama_eagle3.py`, `llama_eagle.py`, `deepseek_common/deepseek_weight_loader.py`: what is missing
stays uninitialised and what is unknown is left out, both without a word. vLLM 0.32 refuses what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from specconsole.core.launching.draft_facts import DraftFacts, DraftFinding, architecture_of, find_tensor, text_config
from specconsole.core.launching.safetensors_header import Tensor

LAYER_PREFIXES = ("midlayer.", "layers.0.", "model.midlayer.", "model.layers.0.")
_LAYER = (
    "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
    "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight", "post_attention_layernorm.weight",
)  # fmt: skip
_EAGLE3_LAYER = (*_LAYER, "hidden_norm.weight", "input_layernorm.weight")
_EAGLE3_KNOWN = re.compile(
    r"(?:model\.)?(?:d2t|t2d|fc\.(?:weight|bias)|norm\.weight|lm_head\.weight|embed_tokens\.weight|input_norm\.weight"
    r"|fc_norm\.\d+\.weight|aux_norm_(?:low|mid|high)\.weight|(?:midlayer|layers\.\d+)\..+)"
)
_EAGLE_KNOWN = re.compile(r"(?:model\.)?(?:fc\.(?:weight|bias)|embed_tokens\.weight|lm_head\.weight|layers\.\d+\..+)")
_MTP_NAMES = ("enorm", "hnorm", "eh_proj", "shared_head.norm")
_NAMED = 6


def check_names(facts: DraftFacts) -> Iterable[DraftFinding]:
    """Missing names are an error, unknown ones a note; nothing where the tensors were not read."""
    if not facts.tensors:
        return
    name = architecture_of(facts.draft_config)
    if facts.algorithm == "EAGLE3":
        yield from _missing(facts, _eagle3_missing(facts))
        # Kimi's, Mistral's and other heads have names of their own.
        if name == "LlamaForCausalLMEagle3":
            yield from _unknown(facts, _EAGLE3_KNOWN)
    elif facts.algorithm == "EAGLE" and name == "LlamaForCausalLMEagle":
        wanted = ["fc.weight", *(f"layers.0.{one}" for one in _LAYER)]
        yield from _missing(facts, [one for one in wanted if find_tensor(facts.tensors, one) is None])
        yield from _unknown(facts, _EAGLE_KNOWN)


def check_own_heads(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Iterable[DraftFinding]:
    """A target that is to draft by itself (NEXTN, MTP): whether its checkpoint holds the layers for that.

    Copies that were quantised or converted often have lost them.
    """
    inner = text_config(config)
    layers, extra = inner.get("num_hidden_layers"), inner.get("num_nextn_predict_layers")
    if not tensors or not isinstance(layers, int):
        return
    if any(name.startswith(("mtp.", "model.mtp")) or ".mtp_layers." in name for name in tensors):
        return
    if not isinstance(extra, int) or extra < 1:
        yield DraftFinding("mtp", "note", "config.json speaks of no MTP layers (num_nextn_predict_layers)")
        return
    lacking = [
        f"model.layers.{layers}.{one}"
        for one in _MTP_NAMES
        if not any(name.startswith(f"model.layers.{layers}.{one}") for name in tensors)
    ]
    if lacking:
        text = f"the checkpoint lacks its MTP layer: {', '.join(lacking)} missing (converted copies often lose it)"
        yield DraftFinding("mtp", "error", text)


def _eagle3_missing(facts: DraftFacts) -> list[str]:
    wanted = ["fc.weight", "norm.weight"]
    # Tied, or of the target's vocabulary: then SGLang takes the target's own matrix (load_lm_head_from_target).
    small = facts.draft_config.get("draft_vocab_size")
    if not facts.draft_config.get("tie_word_embeddings") and (small is not None or facts.engine != "sglang"):
        wanted.append("lm_head.weight")
    missing = [name for name in wanted if find_tensor(facts.tensors, name) is None]
    prefix = next((p for p in LAYER_PREFIXES if f"{p}self_attn.q_proj.weight" in facts.tensors), None)
    if prefix is not None:
        return missing + [f"{prefix}{name}" for name in _EAGLE3_LAYER if f"{prefix}{name}" not in facts.tensors]
    if not any("qkv_proj" in name or "q_a_proj" in name or "kv_a_proj" in name for name in facts.tensors):
        missing.append("midlayer.self_attn.q_proj.weight")
    return missing


def _missing(facts: DraftFacts, names: list[str]) -> Iterable[DraftFinding]:
    if names:
        silent = "; SGLang says nothing and leaves them uninitialised" if facts.engine == "sglang" else ""
        yield DraftFinding("tensors-missing", "error", f"tensors missing: {_listed(names)}{silent}")


def _unknown(facts: DraftFacts, known: re.Pattern[str]) -> Iterable[DraftFinding]:
    names = sorted(name for name in facts.tensors if not known.fullmatch(name))
    if names:
        text = f"{len(names)} tensors that the loader has no place for, left out without a word: {_listed(names)}"
        yield DraftFinding("tensors-unknown", "note", text)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
