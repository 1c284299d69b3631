"""vLLM's `--speculative-config`, however it is spelled: as JSON, as a table, as dotted keys, by the short-cuts.

Source: `vllm/config/speculative.py` of 0.10.2, 0.14.1, 0.20.2, 0.27.1, 0.32.0 (read whole) and 0.33.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from specconsole.core.launching.rules import Asked

SOURCE = "vllm/config/speculative.py"
SHORTS = (("spec_method", "method"), ("spec_model", "model"), ("spec_tokens", "num_speculative_tokens"))
BATCH_SIZES = "num_speculative_tokens_per_batch_size"

METHODS = (
    "ngram",
    "ngram_gpu",
    "draft_model",
    "suffix",
    "custom_class",
    "eagle",
    "eagle3",
    "mtp",
    "extract_hidden_states",
    "dflash",
    "dspark",
    "medusa",
    "mlp_speculator",
    "deepseek_mtp",
    "qwen3_next_mtp",
    "ernie_mtp",
    "mimo_mtp",
    "glm4_moe_mtp",
    "longcat_flash_mtp",
)
OLD_METHODS = ("medusa", "mlp_speculator")
KEYS = (
    "method",
    "model",
    "num_speculative_tokens",
    "draft_tensor_parallel_size",
    "quantization",
    "max_model_len",
    "revision",
    "code_revision",
    "moe_backend",
    "attention_backend",
    "kv_cache_dtype",
    "enforce_eager",
    "parallel_drafting",
    "disable_padded_drafter_batch",
    "disable_eagle_block_drop",
    "draft_load_config",
    "use_local_argmax_reduction",
    "use_heterogeneous_vocab",
    "prompt_lookup_min",
    "prompt_lookup_max",
    "num_speculative_tokens_per_batch_size",
    "suffix_decoding_max_tree_depth",
    "suffix_decoding_max_cached_requests",
    "suffix_decoding_max_spec_factor",
    "suffix_decoding_min_token_prob",
    "rejection_sample_method",
    "synthetic_acceptance_rates",
    "synthetic_acceptance_length",
    "draft_sample_method",
    "draft_lm_head_quantization",
    "index_share_for_mtp_iteration",
    "enable_adaptive_verification",
    "fly_window",
    "fly_threshold",
    "xpress_topc",
    "dspark_draft_topk",
)
OLD_KEYS = ("disable_by_batch_size", "speculative_token_tree", "disable_logprobs")
NEEDS_MODEL = ("draft_model", "eagle", "eagle3", "medusa", "mlp_speculator", "dflash")


def written_table(asked: Asked) -> dict[str, Any] | None:
    """The value of `--speculative-config` itself; None where there is none, or it can't be read."""
    value = asked.get("speculative_config")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return dict(value) if isinstance(value, Mapping) else None


def speculative_config(asked: Asked) -> dict[str, Any] | None:
    """The configuration as one table, from the JSON and the short-cuts; None without speculation or when unreadable."""
    value = asked.get("speculative_config")
    table = written_table(asked)
    if table is None and isinstance(value, str):
        return None
    table = table or {}
    for key, one in asked.args.items():
        if key.startswith("speculative_config."):
            table[key.partition(".")[2]] = one
    for short, key in SHORTS:
        if asked.given(short):
            table[key] = asked.get(short)
    return table or None


def method(asked: Asked) -> str | None:
    """How it drafts, any model's MTP heads as `mtp`; None without speculation or where it is guessed."""
    value = (speculative_config(asked) or {}).get("method")
    if not isinstance(value, str):
        return None
    return "mtp" if value.endswith("_mtp") else value.strip("[]")


def config_fix(asked: Asked, **changes: Any) -> dict[str, Any]:
    """Settings that change keys of the configuration, each where it is spelled now; None takes a key away."""
    shorts = {key: short for short, key in SHORTS}
    fix: dict[str, Any] = {}
    table = written_table(asked) or {}
    touched = False
    for key, value in changes.items():
        dotted = f"speculative_config.{key}"
        if dotted in asked.args:
            fix[dotted] = value
        elif key in shorts and asked.given(shorts[key]):
            fix[shorts[key]] = value
        elif value is None:
            touched = table.pop(key, None) is not None or touched
        else:
            table[key], touched = value, True
    if touched:
        fix["speculative_config"] = table or None
    return fix
