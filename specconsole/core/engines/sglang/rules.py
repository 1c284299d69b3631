"""SGLang's cross-flag rules, 0.4.6 to 0.5.23.

Sources are files of the releases (`server_args.py` up to 0.5.19, `arg_groups/speculative_hook.py` in 0.5.23 unless
said), read in ten sampled versions. What is inferred from code and was not run says so.
"""

from __future__ import annotations

from typing import Any

from specconsole.core.launching.rules import Asked, Rule, Verdict
from specconsole.core.launching.versions import between, since, until

ALIASES = {
    "tp": "tp_size", "tensor_parallel_size": "tp_size", "dp": "dp_size", "data_parallel_size": "dp_size",
    "pp": "pp_size", "pipeline_parallel_size": "pp_size", "ep": "ep_size", "expert_parallel_size": "ep_size",
    "model": "model_path", "speculative_draft_model": "speculative_draft_model_path",
    "context_len": "context_length", "max_model_len": "context_length", "node": "nnodes",
}  # fmt: skip

HOOK = "0.5.23 arg_groups/speculative_hook.py; <=0.5.19 server_args.py"
EAGLE_LIKE = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
TRIPLE = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
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


def _eagle_like(asked: Asked) -> bool:
    return algorithm(asked) in EAGLE_LIKE


def chain_tokens(asked: Asked) -> Verdict | None:
    steps, topk, tokens = (asked.number(key) for key in TRIPLE)
    if not _eagle_like(asked) or topk != 1 or steps is None or tokens is None or tokens == steps + 1:
        return None
    becomes = {"speculative_num_draft_tokens": int(steps) + 1}
    return Verdict(
        "overridden",
        f"with topk 1 the server sets draft tokens to steps + 1 = {int(steps) + 1} (asked: {int(tokens)}); "
        "a sweep over draft tokens measures nothing",
        TRIPLE,
        becomes=becomes,
        fix=becomes,
    )


def all_three_or_none(asked: Asked) -> Verdict | None:
    given = asked.given(*TRIPLE)
    if not _eagle_like(asked) or len(given) in (0, 3):
        return None
    missing = tuple(key for key in TRIPLE if key not in given)
    dies = "AssertionError without a word" if "speculative_num_steps" in missing else "TypeError on None"
    steps = int(asked.number("speculative_num_steps") or 3)
    topk = int(asked.number("speculative_eagle_topk") or 1)
    tokens = int(asked.number("speculative_num_draft_tokens") or (steps + 1 if topk == 1 else 2 * steps * topk))
    return Verdict(
        "error",
        f"steps, topk and draft tokens go together: {', '.join(missing)} missing ({dies})",
        TRIPLE,
        fix=dict(zip(TRIPLE, (steps, topk, tokens), strict=True)),
    )


def automatic_triple(asked: Asked) -> Verdict | None:
    if not _eagle_like(asked) or asked.given(*TRIPLE) or asked.get("speculative_adaptive"):
        return None
    return Verdict(
        "note",
        "steps, topk and draft tokens are left to the server, which chooses by architecture and version "
        "(3/1/4, 5/4/8): set all three to compare runs",
        TRIPLE,
        fix={"speculative_num_steps": 3, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4},
    )


def tree_holds_tokens(asked: Asked) -> Verdict | None:
    steps, topk, tokens = (asked.number(key) for key in TRIPLE)
    if not _eagle_like(asked) or topk is None or topk <= 1 or steps is None or tokens is None:
        return None
    if tokens <= steps * topk + 1:
        return None
    return Verdict(
        "warning",
        f"{int(tokens)} draft tokens do not fit a tree of {int(steps)} steps with topk {int(topk)} "
        f"(at most {int(steps * topk + 1)} as SGLang's own sweep reckons); nothing checks it at start",
        TRIPLE,
        fix={"speculative_num_draft_tokens": int(steps * topk + 1)},
    )


def running_cap(asked: Asked) -> Verdict | None:
    if algorithm(asked) is None or asked.given("max_running_requests"):
        return None
    dp = int(asked.number("dp_size") or 1)
    split = asked.get("enable_dp_attention") or asked.given("attn_dp_size")
    each = DEFAULT_RUNNING_CAP // dp if split and dp > 1 else DEFAULT_RUNNING_CAP
    share = f", {each} a data-parallel rank" if each != DEFAULT_RUNNING_CAP else ""
    return Verdict(
        "overridden",
        f"under speculation at most {DEFAULT_RUNNING_CAP} requests run at once{share}; the baseline has no such cap: "
        "set it on both sides",
        ("max_running_requests",),
        becomes={"max_running_requests": DEFAULT_RUNNING_CAP},
        fix={"max_running_requests": DEFAULT_RUNNING_CAP},
    )


def overlap_forced_off(asked: Asked) -> Verdict | None:
    if not _eagle_like(asked) or asked.get("disable_overlap_schedule") or asked.get("enable_beta_spec"):
        return None
    if asked.env_true("SGLANG_ENABLE_SPEC_V2"):
        return None
    return Verdict(
        "overridden",
        "the overlap scheduler is turned off under speculation (spec v1)",
        ("disable_overlap_schedule",),
        becomes={"disable_overlap_schedule": True},
        fix={"env.SGLANG_ENABLE_SPEC_V2": "1"} if asked.number("speculative_eagle_topk") in (None, 1) else None,
    )


def spec_v2_topk(asked: Asked) -> Verdict | None:
    topk = asked.number("speculative_eagle_topk")
    if not _eagle_like(asked) or not asked.env_true("SGLANG_ENABLE_SPEC_V2") or topk is None or topk <= 1:
        return None
    return Verdict(
        "error",
        "spec v2 takes topk 1 only in these versions",
        ("speculative_eagle_topk", "env.SGLANG_ENABLE_SPEC_V2"),
        fix={"env.SGLANG_ENABLE_SPEC_V2": None},
    )


def spec_v2_falls_back(asked: Asked) -> Verdict | None:
    topk = asked.number("speculative_eagle_topk")
    if not _eagle_like(asked) or topk is None or topk <= 1:
        return None
    return Verdict(
        "overridden",
        "topk over 1 falls back to spec v1 and turns the overlap scheduler off",
        ("speculative_eagle_topk", "disable_overlap_schedule"),
        becomes={"disable_overlap_schedule": True},
    )


def spec_v2_variable_gone(asked: Asked) -> Verdict | None:
    if "SGLANG_ENABLE_SPEC_V2" not in asked.env:
        return None
    return Verdict(
        "warning",
        "SGLANG_ENABLE_SPEC_V2 has no effect any more: spec v2 is the only one; --disable-overlap-schedule "
        "makes it synchronous",
        ("env.SGLANG_ENABLE_SPEC_V2",),
        fix={"env.SGLANG_ENABLE_SPEC_V2": None},
    )


def page_size_topk(allowed: tuple[str, ...], *, silently: bool = False) -> Any:
    def check(asked: Asked) -> Verdict | None:
        topk, page = asked.number("speculative_eagle_topk"), asked.number("page_size")
        if not _eagle_like(asked) or topk is None or topk <= 1 or page is None or page <= 1:
            return None
        if silently:
            return Verdict(
                "overridden",
                "with a page size over 1 the server sets topk to 1",
                ("speculative_eagle_topk", "page_size"),
                becomes={"speculative_eagle_topk": 1},
                fix={"page_size": 1},
            )
        backend = asked.get("attention_backend")
        if backend in allowed:
            return None
        return Verdict(
            "error",
            f"topk over 1 with a page size over 1 needs --attention-backend {' or '.join(allowed)}",
            ("speculative_eagle_topk", "page_size", "attention_backend"),
            fix={"page_size": 1},
        )

    return check


def trtllm_mha_topk(asked: Asked) -> Verdict | None:
    topk = asked.number("speculative_eagle_topk")
    keys = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
    if not _eagle_like(asked) or topk is None or topk <= 1 or "trtllm_mha" not in [asked.get(k) for k in keys]:
        return None
    return Verdict("error", "the trtllm_mha back end takes topk 1 only", ("speculative_eagle_topk", *keys),
                   fix={"speculative_eagle_topk": 1})  # fmt: skip


def mixed_chunk(asked: Asked) -> Verdict | None:
    if algorithm(asked) is None or not asked.get("enable_mixed_chunk"):
        return None
    return Verdict("overridden", "mixed chunked prefill is turned off under speculation", ("enable_mixed_chunk",),
                   becomes={"enable_mixed_chunk": False}, fix={"enable_mixed_chunk": None})  # fmt: skip


def dp_attention(asked: Asked) -> Verdict | None:
    if algorithm(asked) not in ("STANDALONE", "NGRAM"):
        return None
    if not asked.get("enable_dp_attention") and not asked.given("attn_dp_size"):
        return None
    return Verdict("error", f"{algorithm(asked)} does not work with data-parallel attention",
                   ("speculative_algorithm", "enable_dp_attention"), fix={"enable_dp_attention": None})  # fmt: skip


def mtp_needs_no_draft(asked: Asked) -> Verdict | None:
    architecture = asked.model_architecture or ""
    if algorithm(asked) not in ("EAGLE", "NEXTN") or not architecture.startswith(MTP_ARCHITECTURES):
        return None
    if not asked.given("speculative_draft_model_path"):
        return None
    return Verdict("note", "this model carries its own draft; the draft path defaults to the model's",
                   ("speculative_draft_model_path",), fix={"speculative_draft_model_path": None})  # fmt: skip


def draft_path_missing(asked: Asked) -> Verdict | None:
    architecture = asked.model_architecture
    if algorithm(asked) not in ("EAGLE3", "STANDALONE", "EAGLE") or asked.given("speculative_draft_model_path"):
        return None
    if architecture is None and algorithm(asked) == "EAGLE":
        return None
    if architecture is not None and architecture.startswith(MTP_ARCHITECTURES):
        return None
    return Verdict("error", f"{algorithm(asked)} needs a draft: --speculative-draft-model-path is missing",
                   ("speculative_draft_model_path",))  # fmt: skip


def rejection_sampling(asked: Asked) -> Verdict | None:
    if not asked.get("speculative_use_rejection_sampling"):
        return None
    topk = asked.number("speculative_eagle_topk")
    thresholds = [asked.number(f"speculative_accept_threshold_{n}") for n in ("single", "acc")]
    if algorithm(asked) in ("EAGLE", "EAGLE3") and topk in (None, 1) and set(thresholds) <= {None, 1.0}:
        return None
    return Verdict("error", "rejection sampling needs EAGLE or EAGLE3, topk 1 and accept thresholds of 1",
                   ("speculative_use_rejection_sampling", "speculative_eagle_topk"),
                   fix={"speculative_use_rejection_sampling": None})  # fmt: skip


def adaptive(asked: Asked) -> Verdict | None:
    if not asked.get("speculative_adaptive"):
        return None
    reasons = []
    if algorithm(asked) not in ("EAGLE", "EAGLE3"):
        reasons.append("it needs EAGLE or EAGLE3")
    if asked.number("speculative_eagle_topk") not in (None, 1):
        reasons.append("it needs topk 1")
    for key, name in (
        ("enable_dp_attention", "data-parallel attention"),
        ("enable_multi_layer_eagle", "multi-layer EAGLE"),
        ("enable_two_batch_overlap", "two-batch overlap"),
        ("enable_pdmux", "PD multiplexing"),
    ):
        if asked.get(key):
            reasons.append(f"not with {name}")
    if not reasons:
        return None
    return Verdict("overridden", f"adaptive speculation is switched off: {'; '.join(reasons)}",
                   ("speculative_adaptive",), becomes={"speculative_adaptive": False},
                   fix={"speculative_adaptive": None})  # fmt: skip


def lossy_thresholds(asked: Asked) -> Verdict | None:
    keys = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")
    low = [key for key in keys if (value := asked.number(key)) is not None and value < 1.0]
    if not low:
        return None
    return Verdict("warning", "an accept threshold under 1 changes the text: speculation is no longer lossless",
                   tuple(low), fix=dict.fromkeys(low, 1.0))  # fmt: skip


def simulated(asked: Asked) -> Verdict | None:
    value = asked.env.get("SGLANG_SIMULATE_ACC_LEN", "")
    try:
        on = float(value) > 0
    except ValueError:
        on = False
    if not on:
        return None
    return Verdict("warning", f"SIMULATED: acceptance is set to {value} by hand; no result of it is real",
                   ("env.SGLANG_SIMULATE_ACC_LEN",), fix={"env.SGLANG_SIMULATE_ACC_LEN": None})  # fmt: skip


def context_beyond_draft(asked: Asked) -> Verdict | None:
    if algorithm(asked) not in ("EAGLE", "EAGLE3", "STANDALONE") or asked.draft_positions is None:
        return None
    context = asked.number("context_length") or asked.model_positions
    if context is None or context <= asked.draft_positions:
        return None
    if asked.env_true("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"):
        return None
    return Verdict(
        "error",
        f"context {int(context)} is beyond the draft's {asked.draft_positions} positions: refused after the target's "
        "weights are loaded",
        ("context_length", "speculative_draft_model_path"),
        fix={"env.SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"},
    )


def token_map_eagle3(asked: Asked) -> Verdict | None:
    if algorithm(asked) != "EAGLE3" or not asked.given("speculative_token_map"):
        return None
    return Verdict("overridden", "the token map is ignored with EAGLE3: the draft's own d2t is used",
                   ("speculative_token_map",), becomes={"speculative_token_map": None},
                   fix={"speculative_token_map": None})  # fmt: skip


def pipeline_parallel(asked: Asked) -> Verdict | None:
    size = asked.number("pp_size")
    if algorithm(asked) is None or size is None or size <= 1 or asked.env_true("SGLANG_ENABLE_PP_SPEC"):
        return None
    if asked.get("disaggregation_mode") == "prefill" and algorithm(asked) == "EAGLE":
        return None
    return Verdict("error", "speculation with pipeline parallelism works only for EAGLE on a prefill server",
                   ("pp_size", "speculative_algorithm"), fix={"pp_size": None})  # fmt: skip


def ngram_width(asked: Asked) -> Verdict | None:
    if algorithm(asked) != "NGRAM":
        return None
    width = int(asked.number("speculative_ngram_max_bfs_breadth") or 10)
    if asked.number("speculative_eagle_topk") in (None, width):
        return None
    return Verdict("overridden", f"NGRAM sets topk to its breadth, {width}", ("speculative_eagle_topk",),
                   becomes={"speculative_eagle_topk": width}, fix={"speculative_eagle_topk": None})  # fmt: skip


def block_drafts(asked: Asked) -> Verdict | None:
    if algorithm(asked) not in ("DFLASH", "DSPARK"):
        return None
    wrong = {key: 1 for key in TRIPLE[:2] if asked.number(key) not in (None, 1.0)}
    if not wrong:
        return None
    return Verdict("overridden", f"{algorithm(asked)} sets steps and topk to 1", tuple(wrong), becomes=wrong, fix=wrong)


def windows(asked: Asked) -> Verdict | None:
    if asked.given("speculative_draft_sink_size") and not asked.given("speculative_draft_window_size"):
        return Verdict("error", "a draft sink needs a draft window", ("speculative_draft_sink_size",),
                       fix={"speculative_draft_sink_size": None})  # fmt: skip
    return None


def api_key_argument(asked: Asked) -> Verdict | None:
    given = asked.given("api_key", "admin_api_key")
    if not given:
        return None
    return Verdict("error", "the key would show in `ps` and in the server's own log line of its arguments", given,
                   fix=dict.fromkeys(given))  # fmt: skip


RULES: tuple[Rule, ...] = (
    Rule("chain-tokens", chain_tokens, HOOK),
    Rule("all-three-or-none", all_three_or_none, HOOK + " (missing topk: read in code, not run)"),
    Rule("automatic-triple", automatic_triple, HOOK),
    Rule("tree-holds-tokens", tree_holds_tokens, "scripts/playground/bench_speculative.py"),
    Rule("running-cap", running_cap, HOOK),
    Rule("overlap-off", overlap_forced_off, "0.4.6-0.5.10 server_args.py", until("0.5.10")),
    Rule("spec-v2-topk", spec_v2_topk, "0.5.6-0.5.10 server_args.py", between("0.5.6", "0.5.10")),
    Rule("spec-v2-falls-back", spec_v2_falls_back, "0.5.12 server_args.py", between("0.5.12", "0.5.14")),
    Rule("spec-v2-variable-gone", spec_v2_variable_gone, "0.5.15 environ.py", since("0.5.15")),
    Rule("page-size-topk", page_size_topk((), silently=True), "0.4.6 server_args.py", until("0.5.2")),
    Rule("page-size-topk", page_size_topk(("flashinfer",)), "0.5.3 server_args.py", between("0.5.3", "0.5.7")),
    Rule("page-size-topk", page_size_topk(("flashinfer", "fa3")), "0.5.8-0.5.12", between("0.5.8", "0.5.14")),
    Rule("page-size-topk", page_size_topk(("flashinfer", "fa3", "triton")), HOOK, since("0.5.15")),
    Rule("trtllm-mha-topk", trtllm_mha_topk, HOOK),
    Rule("mixed-chunk", mixed_chunk, "<=0.5.12 server_args.py", until("0.5.14")),
    Rule("dp-attention", dp_attention, HOOK),
    Rule("mtp-needs-no-draft", mtp_needs_no_draft, HOOK),
    Rule("draft-path-missing", draft_path_missing, HOOK),
    Rule("rejection-sampling", rejection_sampling, "0.5.15 server_args.py", since("0.5.15")),
    Rule("adaptive", adaptive, "0.5.12 server_args.py", since("0.5.12")),
    Rule("lossy-thresholds", lossy_thresholds, "all: server_args.py"),
    Rule("simulated", simulated, "environ.py"),
    Rule("context-beyond-draft", context_beyond_draft, "0.5.23 configs/model_config.py:1299", since("0.5.3")),
    Rule("token-map-eagle3", token_map_eagle3, "all: server_args.py"),
    Rule("pipeline-parallel", pipeline_parallel, HOOK, since("0.5.15")),
    Rule("ngram-width", ngram_width, HOOK, since("0.5.3")),
    Rule("block-drafts", block_drafts, HOOK, since("0.5.12")),
    Rule("windows", windows, HOOK, since("0.5.12")),
    Rule("api-key-argument", api_key_argument, "server_args is printed whole at start"),
)
