"""Does this draft fit this target? From two `config.json` and the draft's safetensors heads, before any weight loads.

Facts: SGLang 0.5.17 and 0.5.23 `models/llama_eagle3.py` (always takes the target's embedding), vLLM 0.33
`model_executor/models/llama_eagle3.py` and `transformers_utils/configs/eagle.py`, SpecForge a6b6b02.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from specconsole.core.launching.draft_facts import (
    DraftFacts,
    DraftFinding,
    architecture_of,
    find_tensor,
    longest_context,
    text_config,
)
from specconsole.core.launching.draft_maps import check_maps
from specconsole.core.launching.draft_names import LAYER_PREFIXES, check_names
from specconsole.core.launching.rules import Level


def check_draft(facts: DraftFacts) -> tuple[DraftFinding, ...]:
    """All findings, gravest first; empty means that nothing was found, not that nothing can be wrong."""
    found = [*_architecture(facts), *_positions(facts)]
    if facts.algorithm == "EAGLE3":
        found += [*_shapes(facts), *check_names(facts), *_layers(facts), *check_maps(facts)]
    elif facts.algorithm == "EAGLE":
        found += check_names(facts)
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


def _architecture(facts: DraftFacts) -> Iterable[DraftFinding]:
    name = architecture_of(facts.draft_config)
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
    fc = find_tensor(facts.tensors, "fc.weight")
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
    head = find_tensor(facts.tensors, "lm_head.weight")
    if head is not None and isinstance(small, int) and head.shape and head.shape[0] != small:
        yield DraftFinding("head-shape", "error", f"lm_head has {head.shape[0]} rows, draft_vocab_size says {small}")
    a, b = target.get("vocab_size"), draft.get("vocab_size")
    if isinstance(a, int) and isinstance(b, int) and a != b:
        yield DraftFinding("vocabulary", "error", f"the draft was made for {b} tokens, the target has {a}")


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
