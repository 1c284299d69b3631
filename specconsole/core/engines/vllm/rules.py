"""vLLM's rules around `--speculative-config`, 0.10 to 0.33.

Source: `vllm/config/speculative.py` of 0.10.2, 0.14.1, 0.20.2, 0.27.1 and 0.33.0 unless said. vLLM drafts chains
only: SGLang's (steps k, topk 1, draft tokens k + 1) is `num_speculative_tokens` k here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from specconsole.core.launching.rules import Asked, Rule, Verdict
from specconsole.core.launching.versions import Version, parse_version, since

ALIASES = {
    "tp": "tensor_parallel_size", "dp": "data_parallel_size", "pp": "pipeline_parallel_size",
    "sc": "speculative_config", "spec_method": "spec_method", "q": "quantization",
}  # fmt: skip

SOURCE = "vllm/config/speculative.py"

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


def speculative_config(asked: Asked) -> dict[str, Any] | None:
    """The configuration as one table, from the JSON and the short-cuts; None without speculation or when unreadable."""
    value = asked.get("speculative_config")
    table: dict[str, Any] = {}
    if isinstance(value, Mapping):
        table = dict(value)
    elif isinstance(value, str):
        try:
            parsed = json.loads(value)
        except ValueError:
            return None
        table = dict(parsed) if isinstance(parsed, dict) else {}
    for key, value in asked.args.items():
        if key.startswith("speculative_config."):
            table[key.partition(".")[2]] = value
    for short, key in (("spec_method", "method"), ("spec_model", "model"), ("spec_tokens", "num_speculative_tokens")):
        if asked.given(short):
            table[key] = asked.get(short)
    return table or None


def unreadable(asked: Asked) -> Verdict | None:
    value = asked.get("speculative_config")
    if not isinstance(value, str):
        return None
    try:
        if isinstance(json.loads(value), dict):
            return None
        why = "it is no object"
    except ValueError as error:
        why = str(error)
    return Verdict("error", f"--speculative-config can't be read as JSON: {why}", ("speculative_config",))


def unknown_keys(asked: Asked) -> Verdict | None:
    unknown = [k for k in speculative_config(asked) or {} if k not in (*KEYS, *OLD_KEYS) and not k.startswith("fly_")]
    if not unknown:
        return None
    if "tensor_parallel_size" in unknown:
        text = "`tensor_parallel_size` is refused here: the draft's is `draft_tensor_parallel_size`"
    else:
        text = f"unknown keys are refused: {', '.join(unknown)}"
    return Verdict("error", text, ("speculative_config",))


def old_keys(asked: Asked) -> Verdict | None:
    old = [k for k in speculative_config(asked) or {} if k in OLD_KEYS]
    if not old:
        return None
    return Verdict("error", f"{', '.join(old)}: gone after 0.20", ("speculative_config",))


def unknown_method(asked: Asked) -> Verdict | None:
    method = (speculative_config(asked) or {}).get("method")
    if method is None or method in METHODS or str(method).endswith("_mtp"):
        return None
    return Verdict("error", f"method {method!r} is unknown; known: {', '.join(METHODS[:11])}", ("speculative_config",))


def old_methods(asked: Asked) -> Verdict | None:
    method = (speculative_config(asked) or {}).get("method")
    if method not in OLD_METHODS:
        return None
    return Verdict("error", f"method {method} is gone after 0.20", ("speculative_config",))


def model_missing(asked: Asked) -> Verdict | None:
    config = speculative_config(asked)
    if config is None or config.get("model") or config.get("method") not in NEEDS_MODEL:
        return None
    return Verdict("error", f"method {config['method']} needs `model`, the draft's path", ("speculative_config",))


def tokens_missing(asked: Asked) -> Verdict | None:
    config = speculative_config(asked)
    if config is None:
        return None
    tokens = config.get("num_speculative_tokens")
    method = str(config.get("method") or "")
    if isinstance(tokens, int) and tokens > 0:
        return None
    if tokens is None and ("mtp" in method or config.get("num_speculative_tokens_per_batch_size")):
        return None
    if tokens is None and not method:
        return None  # a speculators checkpoint may say it
    return Verdict(
        "error", f"num_speculative_tokens must be a whole number over 0, not {tokens!r}", ("speculative_config",)
    )


def twice(asked: Asked) -> Verdict | None:
    value = asked.get("speculative_config")
    table = value if isinstance(value, Mapping) else {}
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
            table = parsed if isinstance(parsed, dict) else {}
        except ValueError:
            return None
    shorts = (("spec_method", "method"), ("spec_model", "model"), ("spec_tokens", "num_speculative_tokens"))
    both = [short for short, key in shorts if asked.given(short) and key in table]
    if not both:
        return None
    return Verdict(
        "error",
        f"{', '.join('--' + s.replace('_', '-') for s in both)} and the same key in the JSON",
        ("speculative_config", *both),
        fix=dict.fromkeys(both),
    )


def draft_parallel(asked: Asked) -> Verdict | None:
    config = speculative_config(asked)
    size = (config or {}).get("draft_tensor_parallel_size")
    target = int(asked.number("tensor_parallel_size") or 1)
    if size is None or size in (1, target):
        return None
    return Verdict(
        "error",
        f"draft_tensor_parallel_size must be 1 or the target's {target}, not {size}",
        ("speculative_config", "tensor_parallel_size"),
    )


def per_batch_with_dp(asked: Asked) -> Verdict | None:
    config = speculative_config(asked)
    if not (config or {}).get("num_speculative_tokens_per_batch_size"):
        return None
    if (asked.number("data_parallel_size") or 1) <= 1:
        return None
    return Verdict(
        "overridden",
        "numbers of tokens per batch size are switched off with data parallelism",
        ("speculative_config", "data_parallel_size"),
    )


def synthetic(asked: Asked) -> Verdict | None:
    config = speculative_config(asked) or {}
    if config.get("rejection_sample_method") != "synthetic":
        return None
    return Verdict("warning", "SIMULATED: acceptance is synthetic; no result of it is real", ("speculative_config",))


def lookup_range(asked: Asked) -> Verdict | None:
    config = speculative_config(asked) or {}
    least, most = config.get("prompt_lookup_min"), config.get("prompt_lookup_max")
    if not isinstance(least, int) or not isinstance(most, int) or least <= most:
        return None
    return Verdict("error", f"prompt_lookup_min {least} is over prompt_lookup_max {most}", ("speculative_config",))


def memory_share(asked: Asked) -> Verdict | None:
    share = asked.number("gpu_memory_utilization")
    if share is None or 0 < share <= 1:
        return None
    return Verdict(
        "error", f"gpu_memory_utilization must lie between 0 and 1, not {share:g}", ("gpu_memory_utilization",)
    )


def heads_divide(asked: Asked) -> Verdict | None:
    heads, size = asked.number("num_attention_heads"), asked.number("tensor_parallel_size")
    if not heads or not size or heads % size == 0:
        return None
    return Verdict(
        "error",
        f"{int(heads)} attention heads can't be divided by tensor parallel size {int(size)}",
        ("tensor_parallel_size",),
    )


def context_beyond_model(asked: Asked) -> Verdict | None:
    context = asked.number("max_model_len")
    if context is None or asked.model_positions is None or context <= asked.model_positions:
        return None
    if asked.env_true("VLLM_ALLOW_LONG_MAX_MODEL_LEN"):
        return None
    return Verdict(
        "error",
        f"max_model_len {int(context)} is beyond the model's {asked.model_positions} positions",
        ("max_model_len",),
        fix={"max_model_len": asked.model_positions},
    )


def draft_shortens(asked: Asked) -> Verdict | None:
    context = asked.number("max_model_len") or asked.model_positions
    if speculative_config(asked) is None or asked.draft_positions is None or context is None:
        return None
    if context <= asked.draft_positions:
        return None
    return Verdict(
        "overridden",
        f"the draft knows {asked.draft_positions} positions: its context (and with the V2 "
        "runner the server's) is lowered to that",
        ("max_model_len",),
        becomes={"max_model_len": asked.draft_positions},
    )


def old_draft_flag(asked: Asked) -> Verdict | None:
    given = asked.given("speculative_model", "num_speculative_tokens")
    if not given:
        return None
    table = {"model": asked.get("speculative_model"), "num_speculative_tokens": asked.get("num_speculative_tokens")}
    config = {key: value for key, value in table.items() if value is not None}
    return Verdict(
        "error",
        "the old draft flags are gone: everything stands in --speculative-config",
        given,
        fix={**dict.fromkeys(given), "speculative_config": config},
    )


def api_key_argument(asked: Asked) -> Verdict | None:
    if not asked.given("api_key"):
        return None
    return Verdict(
        "error",
        "the key would show in `ps`: give VLLM_API_KEY under [secrets] instead",
        ("api_key",),
        fix={"api_key": None},
    )


RULES: tuple[Rule, ...] = (
    Rule("unreadable-json", unreadable, "vllm/engine/arg_utils.py"),
    Rule("unknown-keys", unknown_keys, SOURCE),
    Rule("old-keys", old_keys, SOURCE, since("0.21")),
    Rule("unknown-method", unknown_method, SOURCE),
    Rule("old-methods", old_methods, SOURCE, since("0.21")),
    Rule("draft-path-missing", model_missing, SOURCE),
    Rule("tokens-missing", tokens_missing, SOURCE),
    Rule("given-twice", twice, "vllm/engine/arg_utils.py", since("0.27")),
    Rule("draft-parallel", draft_parallel, SOURCE),
    Rule("per-batch-with-dp", per_batch_with_dp, SOURCE, since("0.27")),
    Rule("simulated", synthetic, SOURCE),
    Rule("lookup-range", lookup_range, SOURCE),
    Rule("memory-share", memory_share, "vllm/config/cache.py"),
    Rule("heads-divide", heads_divide, "vllm/config/model.py"),
    Rule("context-beyond-model", context_beyond_model, "vllm/config/model.py"),
    Rule("draft-shortens-context", draft_shortens, SOURCE),
    Rule("old-draft-flags", old_draft_flag, "gone before 0.10"),
    Rule("api-key-argument", api_key_argument, "command lines are public on a host"),
)


def runner_of(version: Version | None) -> str | None:
    """`V2` where it is the default (0.33 on), `V1` before; None without a version."""
    if version is None:
        return None
    newest = parse_version("0.33")
    return "V2" if newest is not None and version >= newest else "V1"
