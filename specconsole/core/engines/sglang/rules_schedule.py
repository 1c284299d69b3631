"""SGLang: the scheduler, parallelism and limits under speculation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specconsole.core.engines.sglang.asked import DEFAULT_RUNNING_CAP, TOPK, algorithm, dp_attention_on, eagle_like
from specconsole.core.launching.rules import Asked, Check, Verdict


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


def overlap_forced_off(remedy: Mapping[str, Any] | None = None) -> Check:
    """`remedy`: what turns the newer worker on in these versions; it takes topk 1 only."""

    def check(asked: Asked) -> Verdict | None:
        if not eagle_like(asked) or asked.get("disable_overlap_schedule") or asked.get("enable_beta_spec"):
            return None
        if asked.env_true("SGLANG_ENABLE_SPEC_V2"):
            return None
        chain = asked.number(TOPK) in (None, 1)
        return Verdict(
            "overridden",
            "the overlap scheduler is turned off under speculation (spec v1)",
            ("disable_overlap_schedule",),
            becomes={"disable_overlap_schedule": True},
            fix=dict(remedy) if remedy and chain else {"disable_overlap_schedule": True},
        )

    return check


def spec_v2_switched_off(asked: Asked) -> Verdict | None:
    value = asked.env.get("SGLANG_ENABLE_SPEC_V2", "").strip().lower()
    if not eagle_like(asked) or value not in ("0", "false", "no", "off"):
        return None
    return Verdict("overridden", "without spec v2 the overlap scheduler is turned off",
                   ("env.SGLANG_ENABLE_SPEC_V2", "disable_overlap_schedule"),
                   becomes={"disable_overlap_schedule": True}, fix={"env.SGLANG_ENABLE_SPEC_V2": None})  # fmt: skip


def synchronous(asked: Asked) -> Verdict | None:
    if not eagle_like(asked) or not asked.get("disable_overlap_schedule"):
        return None
    return Verdict("note", "--disable-overlap-schedule makes speculation synchronous: a cost of its own in each step",
                   ("disable_overlap_schedule",), fix={"disable_overlap_schedule": None})  # fmt: skip


def overlap_on_cpu(asked: Asked) -> Verdict | None:
    speculates = eagle_like(asked) or algorithm(asked) == "NGRAM"
    if not speculates or asked.get("device") != "cpu" or asked.get("disable_overlap_schedule"):
        return None
    becomes = {"disable_overlap_schedule": True}
    return Verdict("overridden", "on a CPU the overlap scheduler is turned off under speculation",
                   ("device", "disable_overlap_schedule"), becomes=becomes, fix=becomes)  # fmt: skip


def ngram_overlap(asked: Asked) -> Verdict | None:
    if algorithm(asked) != "NGRAM" or asked.get("disable_overlap_schedule"):
        return None
    becomes = {"disable_overlap_schedule": True}
    return Verdict("overridden", "NGRAM turns the overlap scheduler off in these versions",
                   ("disable_overlap_schedule",), becomes=becomes, fix=becomes)  # fmt: skip


def spec_v2_topk(asked: Asked) -> Verdict | None:
    topk = asked.number("speculative_eagle_topk")
    if not eagle_like(asked) or not asked.env_true("SGLANG_ENABLE_SPEC_V2") or topk is None or topk <= 1:
        return None
    return Verdict(
        "error",
        "spec v2 takes topk 1 only in these versions",
        ("speculative_eagle_topk", "env.SGLANG_ENABLE_SPEC_V2"),
        fix={"env.SGLANG_ENABLE_SPEC_V2": None},
    )


def spec_v2_falls_back(asked: Asked) -> Verdict | None:
    topk = asked.number("speculative_eagle_topk")
    if not eagle_like(asked) or topk is None or topk <= 1 or asked.get("disable_overlap_schedule"):
        return None
    return Verdict(
        "overridden",
        "topk over 1 falls back to spec v1 and turns the overlap scheduler off",
        ("speculative_eagle_topk", "disable_overlap_schedule"),
        becomes={"disable_overlap_schedule": True},
        fix={"disable_overlap_schedule": True},
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


def mixed_chunk(asked: Asked) -> Verdict | None:
    if algorithm(asked) is None or not asked.get("enable_mixed_chunk"):
        return None
    return Verdict("overridden", "mixed chunked prefill is turned off under speculation", ("enable_mixed_chunk",),
                   becomes={"enable_mixed_chunk": False}, fix={"enable_mixed_chunk": None})  # fmt: skip


def mixed_chunk_by_algorithm(asked: Asked) -> Verdict | None:
    if algorithm(asked) is None or not asked.get("enable_mixed_chunk"):
        return None
    return Verdict("note", "mixed chunked prefill is turned off where the speculative algorithm does not take it: look "
                   "at the effective settings", ("enable_mixed_chunk",), fix={"enable_mixed_chunk": None})  # fmt: skip


def dp_attention(asked: Asked) -> Verdict | None:
    if algorithm(asked) not in ("STANDALONE", "NGRAM") or not dp_attention_on(asked):
        return None
    return Verdict("error", f"{algorithm(asked)} does not work with data-parallel attention",
                   ("speculative_algorithm", "enable_dp_attention"),
                   fix=dict.fromkeys(asked.given("enable_dp_attention", "attn_dp_size")))  # fmt: skip


def pipeline_parallel(*, exceptions: bool) -> Check:
    """`exceptions`: the newest release lets EAGLE run on a prefill server, and all where a variable says so."""

    def check(asked: Asked) -> Verdict | None:
        size = asked.number("pp_size")
        if algorithm(asked) is None or size is None or size <= 1:
            return None
        prefill = asked.get("disaggregation_mode") == "prefill" and algorithm(asked) == "EAGLE"
        if exceptions and (prefill or asked.env_true("SGLANG_ENABLE_PP_SPEC")):
            return None
        text = "speculation does not work with pipeline parallelism"
        if exceptions:
            text += ", save EAGLE on a prefill server or with SGLANG_ENABLE_PP_SPEC=1"
        return Verdict("error", text, ("pp_size", "speculative_algorithm"), fix={"pp_size": None})

    return check


def nodes(asked: Asked) -> Verdict | None:
    count, rank = asked.number("nnodes"), asked.number("node_rank") or 0
    if count is None or count <= 1:
        return None
    tp, pp = int(asked.number("tp_size") or 1), int(asked.number("pp_size") or 1)
    if tp * pp % count:
        fits = next(size for size in range(tp, tp + int(count) + 1) if size * pp % count == 0)
        return Verdict("error", f"{tp * pp} ranks (tp x pp) can't be divided among {int(count)} nodes",
                       ("nnodes", "tp_size", "pp_size"), fix={"tp_size": fits})  # fmt: skip
    if rank >= count:
        return Verdict("error", f"node rank {int(rank)} of {int(count)} nodes: the first is 0", ("node_rank", "nnodes"),
                       fix={"node_rank": int(count) - 1})  # fmt: skip
    if not asked.given("dist_init_addr", "nccl_init_addr"):
        return Verdict("error", "several nodes need --dist-init-addr, the first node's address and a port",
                       ("dist_init_addr",))  # fmt: skip
    if (asked.number("dp_size") or 1) > 1 and not dp_attention_on(asked):
        return Verdict("error", "data-parallel replicas can't lie on several nodes, save with data-parallel attention",
                       ("dp_size", "nnodes"), fix={"enable_dp_attention": True})  # fmt: skip
    return None


def dp_divides(asked: Asked) -> Verdict | None:
    dp, tp = asked.number("attn_dp_size") or asked.number("dp_size") or 1, asked.number("tp_size") or 1
    if not dp_attention_on(asked) or dp <= 1 or tp % dp == 0:
        return None
    fits = max(n for n in range(1, int(tp) + 1) if tp % n == 0 and n <= dp)
    return Verdict("error", f"with data-parallel attention {int(dp)} replicas must divide the {int(tp)} ranks",
                   ("dp_size", "tp_size"),
                   fix={"attn_dp_size" if asked.given("attn_dp_size") else "dp_size": fits})  # fmt: skip


def dp_attention_alone(asked: Asked) -> Verdict | None:
    if not asked.get("enable_dp_attention") or (asked.number("dp_size") or 1) > 1 or asked.given("attn_dp_size"):
        return None
    return Verdict("overridden", "data-parallel attention with one replica is switched off",
                   ("enable_dp_attention", "dp_size"), becomes={"enable_dp_attention": False},
                   fix={"enable_dp_attention": None})  # fmt: skip


def dp_attention_chunk(asked: Asked) -> Verdict | None:
    size, dp = asked.number("chunked_prefill_size"), asked.number("attn_dp_size") or asked.number("dp_size") or 1
    if not dp_attention_on(asked) or dp <= 1 or size is None or size <= 0:
        return None
    each = int(size // dp)
    return Verdict("overridden", f"data-parallel attention divides the chunked prefill size by its {int(dp)} replicas: "
                   f"{each}", ("chunked_prefill_size", "dp_size"), becomes={"chunked_prefill_size": each})  # fmt: skip
