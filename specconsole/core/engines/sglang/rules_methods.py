"""SGLang: what single speculative algorithms want, and the drafts that they take."""

from __future__ import annotations

from specconsole.core.engines.sglang.asked import MTP_ARCHITECTURES, STEPS, TOKENS, TOPK, algorithm, dp_attention_on
from specconsole.core.launching.rules import Asked, Check, Verdict


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
    if algorithm(asked) not in ("EAGLE3", "STANDALONE", "EAGLE", "DFLASH") or asked.given(
        "speculative_draft_model_path"
    ):
        return None
    if architecture is None and algorithm(asked) == "EAGLE":
        return None
    if architecture is not None and architecture.startswith(MTP_ARCHITECTURES):
        return None
    return Verdict("error", f"{algorithm(asked)} needs a draft: --speculative-draft-model-path is missing",
                   ("speculative_draft_model_path",))  # fmt: skip


def token_map_eagle3(asked: Asked) -> Verdict | None:
    if algorithm(asked) != "EAGLE3" or not asked.given("speculative_token_map"):
        return None
    return Verdict("overridden", "the token map is ignored with EAGLE3: the draft's own d2t is used",
                   ("speculative_token_map",), becomes={"speculative_token_map": None},
                   fix={"speculative_token_map": None})  # fmt: skip


def ngram_width(asked: Asked) -> Verdict | None:
    if algorithm(asked) != "NGRAM":
        return None
    width = _breadth(asked)
    if asked.number(TOPK) in (None, width):
        return None
    return Verdict("overridden", f"NGRAM sets topk to its breadth, {width}", (TOPK,),
                   becomes={TOPK: width}, fix={TOPK: None})  # fmt: skip


def ngram_tokens(asked: Asked) -> Verdict | None:
    if algorithm(asked) != "NGRAM" or asked.given(TOKENS):
        return None
    return Verdict("note", "NGRAM drafts 12 tokens a step where --speculative-num-draft-tokens is not set", (TOKENS,),
                   becomes={TOKENS: 12}, fix={TOKENS: 12})  # fmt: skip


def ngram_pages(asked: Asked) -> Verdict | None:
    page = asked.number("page_size")
    if algorithm(asked) != "NGRAM" or page is None or page <= 1 or _breadth(asked) <= 1:
        return None
    if asked.get("attention_backend") == "flashinfer":
        return None
    return Verdict("error", "NGRAM with a page size over 1 needs --attention-backend flashinfer",
                   ("page_size", "attention_backend"), fix={"page_size": 1})  # fmt: skip


def ngram_corpus(asked: Asked) -> Verdict | None:
    if algorithm(asked) != "NGRAM" or not asked.given("speculative_ngram_external_corpus_path"):
        return None
    budget, most = asked.number("speculative_ngram_external_sam_budget"), int(asked.number(TOKENS) or 12) - 1
    if budget is not None and 0 < budget <= most:
        return None
    return Verdict("error", f"an external corpus needs a budget of 1 to {most} draft tokens (draft tokens - 1)",
                   ("speculative_ngram_external_sam_budget", TOKENS),
                   fix={"speculative_ngram_external_sam_budget": max(1, most // 2)})  # fmt: skip


def _breadth(asked: Asked) -> int:
    return int(asked.number("speculative_ngram_max_bfs_breadth") or 10)


def block_drafts(asked: Asked) -> Verdict | None:
    if algorithm(asked) not in ("DFLASH", "DSPARK"):
        return None
    wrong = {key: 1 for key in (STEPS, TOPK) if asked.number(key) not in (None, 1.0)}
    if not wrong:
        return None
    return Verdict("overridden", f"{algorithm(asked)} sets steps and topk to 1", tuple(wrong), becomes=wrong, fix=wrong)


def block_size(asked: Asked) -> Verdict | None:
    """DFLASH: draft tokens = block; DSPARK: draft tokens = block + 1."""
    kind, tokens = algorithm(asked), asked.number(TOKENS)
    if kind not in ("DFLASH", "DSPARK"):
        return None
    key = f"speculative_{kind.lower()}_block_size"
    block, more = asked.number(key), 1 if kind == "DSPARK" else 0
    if block is not None and block <= 0:
        return Verdict("error", f"--{key.replace('_', '-')} must be over 0", (key,), fix={key: None})
    if block is None or tokens is None or tokens == block + more:
        return None
    plus = " + 1" if more else ""
    return Verdict("error", f"{kind}: draft tokens must be the block size{plus}, {int(block) + more}, not "
                   f"{int(tokens)}", (TOKENS, key), fix={TOKENS: int(block) + more})  # fmt: skip


def block_parallel(asked: Asked) -> Verdict | None:
    kind = algorithm(asked)
    if kind not in ("DFLASH", "DSPARK", "UNO"):
        return None
    wrong: dict[str, object] = {"pp_size": None} if (asked.number("pp_size") or 1) > 1 else {}
    if kind == "UNO" and (asked.number("tp_size") or 1) > 1:
        wrong["tp_size"] = 1
    if not wrong:
        return None
    return Verdict("error", f"{kind} works on one {'GPU' if kind == 'UNO' else 'pipeline stage'} only", tuple(wrong),
                   fix=wrong)  # fmt: skip


def dflash_dp_attention(*, with_head: bool) -> Check:
    """`with_head`: it works where each replica has a part of the output matrix."""

    def check(asked: Asked) -> Verdict | None:
        if algorithm(asked) != "DFLASH" or not dp_attention_on(asked):
            return None
        if not with_head:
            return Verdict("error", "DFLASH does not work with data-parallel attention",
                           ("speculative_algorithm", "enable_dp_attention"),
                           fix=dict.fromkeys(asked.given("enable_dp_attention", "attn_dp_size")))  # fmt: skip
        return _head_missing(asked)

    return check


def dspark_dp_attention(asked: Asked) -> Verdict | None:
    return _head_missing(asked) if algorithm(asked) == "DSPARK" and dp_attention_on(asked) else None


def _head_missing(asked: Asked) -> Verdict | None:
    if asked.get("enable_dp_lm_head"):
        return None
    return Verdict("error", f"{algorithm(asked)} with data-parallel attention needs --enable-dp-lm-head",
                   ("enable_dp_lm_head",), fix={"enable_dp_lm_head": True})  # fmt: skip


def uno(asked: Asked) -> Verdict | None:
    if algorithm(asked) != "UNO":
        return None
    if not asked.given("uno_lora_path"):
        return Verdict("error", "UNO needs --uno-lora-path", ("uno_lora_path",))
    wrong: dict[str, object] = {}
    keys = ("speculative_draft_model_path", "enable_lora", "lora_paths", "enable_deterministic_inference")
    wrong.update(dict.fromkeys(asked.given(*keys)))
    for key in ("attention_backend", "speculative_draft_attention_backend"):
        if asked.get(key, "fa3") != "fa3":
            wrong[key] = "fa3"
    if not wrong:
        return None
    return Verdict("error", f"UNO runs with fa3, without a draft, LoRA or deterministic mode: {', '.join(wrong)}",
                   tuple(wrong), fix=wrong)  # fmt: skip


def windows(asked: Asked) -> Verdict | None:
    window, sink = asked.number("speculative_draft_window_size"), asked.given("speculative_draft_sink_size")
    key = "speculative_draft_window_size"
    if sink and window is None:
        return Verdict("error", "a draft sink needs a draft window", ("speculative_draft_sink_size",),
                       fix={"speculative_draft_sink_size": None})  # fmt: skip
    if window is None:
        return None
    if window <= 0:
        return Verdict("error", "a draft window must be over 0", (key,), fix={key: None})
    if algorithm(asked) not in ("EAGLE3", "DFLASH"):
        return Verdict("warning", "a draft window has no effect: EAGLE3 and DFLASH only", (key,), fix={key: None})
    block = asked.number("speculative_dflash_block_size") or asked.number(TOKENS)
    if algorithm(asked) == "DFLASH" and block is not None and window < block:
        return Verdict("error", f"the draft window must hold a block of {int(block)} tokens", (key, TOKENS),
                       fix={key: int(block)})  # fmt: skip
    return None


def gemma_assistant(asked: Asked) -> Verdict | None:
    if algorithm(asked) != "EAGLE3" or not _gemma(asked):
        return None
    return Verdict("error", "a Gemma 4 assistant draft needs NEXTN or EAGLE, not EAGLE3", ("speculative_algorithm",),
                   fix={"speculative_algorithm": "NEXTN"})  # fmt: skip


def gemma_promoted(asked: Asked) -> Verdict | None:
    if algorithm(asked) not in ("EAGLE", "NEXTN") or not _gemma(asked):
        return None
    return Verdict("note", "with this draft the server runs FROZEN_KV_MTP, not EAGLE", ("speculative_algorithm",),
                   becomes={"speculative_algorithm": "FROZEN_KV_MTP"})  # fmt: skip


def _gemma(asked: Asked) -> bool:
    return (asked.draft_architecture or "").startswith(("Gemma4Assistant", "Gemma4UnifiedAssistant"))


def iquest(asked: Asked) -> Verdict | None:
    if not (asked.draft_architecture or asked.model_architecture or "").startswith("IQuest"):
        return None
    steps, topk, tokens = asked.number(STEPS), asked.number(TOPK), asked.number(TOKENS)
    if algorithm(asked) is None or (topk in (None, 1) and (steps is None or tokens in (None, steps + 1))):
        return None
    fix = {TOPK: 1} | ({TOKENS: int(steps) + 1} if steps is not None else {})
    return Verdict("error", "IQuest's draft takes topk 1 and draft tokens = steps + 1", (TOPK, TOKENS), fix=fix)


def decode_radix_cache(*, also: tuple[str, ...]) -> Check:
    """`also`: the algorithms that take a radix cache on a decode server."""

    def check(asked: Asked) -> Verdict | None:
        key = "disaggregation_decode_enable_radix_cache"
        if algorithm(asked) in (None, *also) or asked.get("disaggregation_mode") != "decode" or not asked.get(key):
            return None
        who = f"{', '.join(also)} only" if also else "no speculation"
        return Verdict("error", f"a decode server's radix cache works with {who}", (key, "speculative_algorithm"),
                       fix={key: None})  # fmt: skip

    return check
