"""What SGLang's rules share: how the settings name a speculative start, and where the facts come from."""

from __future__ import annotations

from specconsole.core.launching.rules import Asked

HOOK = "0.5.23 arg_groups/speculative_hook.py; <=0.5.19 server_args.py"
HOOK_RUN = "0.5.17 arg_groups/speculative_hook.py, read whole"
EAGLE_LIKE = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
STEPS, TOPK, TOKENS = "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"
TRIPLE = (STEPS, TOPK, TOKENS)
# Architectures whose own checkpoint carries the draft (multi-token prediction heads).
MTP_ARCHITECTURES = (
    "DeepseekV3", "DeepseekV32", "DeepseekV4", "Glm4Moe", "Glm4MoeLite", "GlmMoeDsa", "Bailing", "MistralLarge3",
    "Pixtral", "HYV3", "HYV4", "Qwen4Exp",
)  # fmt: skip
DEFAULT_RUNNING_CAP = 48


def algorithm(asked: Asked) -> str | None:
    """The speculative algorithm in capitals; None without speculation."""
    value = asked.get("speculative_algorithm")
    return str(value).upper() if value else None


def eagle_like(asked: Asked) -> bool:
    """One of those that share steps, topk and draft tokens."""
    return algorithm(asked) in EAGLE_LIKE


def dp_attention_on(asked: Asked) -> bool:
    """Data-parallel attention, by the old switch or by the new size (`--attn-dp-size`, 0.5.23)."""
    return bool(asked.get("enable_dp_attention")) or (asked.number("attn_dp_size") or 1) > 1
