"""vLLM: settings around the speculative configuration."""

from __future__ import annotations

from specconsole.core.engines.vllm.config import config_fix, method, speculative_config
from specconsole.core.launching.rules import Asked, Check, Verdict

_ASYNC_METHODS = ("eagle", "eagle3", "mtp", "extract_hidden_states", "dflash", "dspark", "draft_model", "ngram_gpu")


def memory_share(asked: Asked) -> Verdict | None:
    share = asked.number("gpu_memory_utilization")
    if share is None or 0 < share <= 1:
        return None
    # 92 was meant as per cent.
    better = round(share / 100, 2) if 1 < share <= 100 else 0.9
    return Verdict("error", f"gpu_memory_utilization must lie between 0 and 1, not {share:g}",
                   ("gpu_memory_utilization",), fix={"gpu_memory_utilization": better})  # fmt: skip


def heads_divide(asked: Asked) -> Verdict | None:
    heads, size = asked.model_heads, int(asked.number("tensor_parallel_size") or 1)
    if not heads or size < 1 or heads % size == 0:
        return None
    fits = max(n for n in range(1, size + 1) if heads % n == 0)
    return Verdict("error", f"{heads} attention heads can't be divided by tensor parallel size {size}",
                   ("tensor_parallel_size",), fix={"tensor_parallel_size": fits})  # fmt: skip


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


def draft_shortens(*, server: bool) -> Check:
    """`server`: the server's own context is lowered as well; else the draft only works beyond what it knows."""

    def check(asked: Asked) -> Verdict | None:
        context, known = asked.number("max_model_len") or asked.model_positions, asked.draft_positions
        if speculative_config(asked) is None or known is None or context is None or context <= known:
            return None
        fix = {"max_model_len": known}
        if server:
            text = f"the draft knows {known} positions: its context and the V2 runner's are lowered to that"
            return Verdict("overridden", text, ("max_model_len",), becomes=fix, fix=fix)
        text = f"the draft knows {known} positions: beyond them it drafts without having learnt to"
        return Verdict("warning", f"{text}; the server's context stays {int(context)}", ("max_model_len",), fix=fix)

    return check


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


def asynchronous(asked: Asked) -> Verdict | None:
    """Asked for, it is refused with other methods; left open, it is switched off with them."""
    kind, value = method(asked), asked.args.get("async_scheduling")
    padded = (speculative_config(asked) or {}).get("disable_padded_drafter_batch")
    if kind is None or value is False or asked.get("no_async_scheduling"):
        return None
    if kind in _ASYNC_METHODS and not padded:
        return None
    why = "disable_padded_drafter_batch" if padded and kind in _ASYNC_METHODS else f"method {kind}"
    if value:
        return Verdict("error", f"async scheduling does not work with {why}", ("async_scheduling",),
                       fix={"async_scheduling": None, "no_async_scheduling": True})  # fmt: skip
    return Verdict("note", f"async scheduling is switched off with {why}: the baseline has it", ("async_scheduling",),
                   becomes={"async_scheduling": False}, fix={"no_async_scheduling": True})  # fmt: skip


def fast_prefill(asked: Asked) -> Verdict | None:
    if not asked.get("kv_sharing_fast_prefill") or method(asked) not in ("eagle", "eagle3", "mtp", "dflash"):
        return None
    return Verdict("error", "KV-sharing fast prefill does not work with EAGLE and its like",
                   ("kv_sharing_fast_prefill",), fix={"kv_sharing_fast_prefill": None})  # fmt: skip


def token_budget(asked: Asked) -> Verdict | None:
    """Each running request takes 1 + k tokens of a step."""
    budget, requests = asked.number("max_num_batched_tokens"), asked.number("max_num_seqs")
    tokens = (speculative_config(asked) or {}).get("num_speculative_tokens")
    if budget is None or requests is None or not isinstance(tokens, int):
        return None
    wanted = int(requests) * (1 + tokens)
    if wanted <= budget:
        return None
    text = f"{int(requests)} requests of 1 + {tokens} tokens a step need {wanted} batched tokens, not {int(budget)}"
    return Verdict("warning", text, ("max_num_batched_tokens", "max_num_seqs"), fix={"max_num_batched_tokens": wanted})


def log_stats(asked: Asked) -> Verdict | None:
    if not asked.get("disable_log_stats"):
        return None
    return Verdict("warning", "--disable-log-stats takes acceptance and throughput out of the log and of /metrics",
                   ("disable_log_stats",), fix={"disable_log_stats": None})  # fmt: skip


def log_form(asked: Asked) -> Verdict | None:
    keys = [name for name in ("VLLM_LOGGING_CONFIG_PATH", "VLLM_LOGGING_PREFIX") if asked.env.get(name)]
    if asked.env.get("VLLM_CONFIGURE_LOGGING") == "0":
        keys.append("VLLM_CONFIGURE_LOGGING")
    if not keys:
        return None
    fix = {f"env.{name}": None for name in keys}
    return Verdict("warning", f"{', '.join(keys)} changes the log's form: phases may not be read", tuple(fix), fix=fix)


def nodes(asked: Asked) -> Verdict | None:
    count, rank = asked.number("nnodes") or 1, asked.number("node_rank") or 0
    if count <= 1:
        return None
    if not asked.given("master_addr"):
        return Verdict("error", "several nodes need --master-addr, the first node's address", ("master_addr",))
    if rank >= count:
        return Verdict("error", f"node rank {int(rank)} of {int(count)} nodes: the first is 0", ("node_rank", "nnodes"),
                       fix={"node_rank": int(count) - 1})  # fmt: skip
    if rank > 0 and not asked.get("headless"):
        return Verdict("warning", "a node behind the first is started with --headless: it serves no requests",
                       ("headless",), fix={"headless": True})  # fmt: skip
    return None


def eager_draft(asked: Asked) -> Verdict | None:
    config = speculative_config(asked) or {}
    if not config.get("enforce_eager") or asked.get("enforce_eager"):
        return None
    return Verdict("note", "the draft runs without CUDA graphs: each of its steps costs more",
                   ("speculative_config",), fix=config_fix(asked, enforce_eager=None))  # fmt: skip
