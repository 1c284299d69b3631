"""SGLang: steps, topk and draft tokens, and what only a chain (topk 1) may do."""

from __future__ import annotations

from typing import Any

from specconsole.core.engines.sglang.asked import STEPS, TOKENS, TOPK, TRIPLE, algorithm, dp_attention_on, eagle_like
from specconsole.core.launching.rules import Asked, Verdict

_SHORT_CHAIN = (
    "DeepseekV2", "DeepseekV3", "DeepseekV32", "GptOss", "Glm4Moe", "GlmMoeDsa", "Bailing", "MistralLarge3", "Pixtral",
    "MiMoV2",
)  # fmt: skip
_ADAPTIVE_STEPS = {(0, 5, 17): (0, 1, 3, 7), (0, 5, 23): (0, 1, 3, 5, 7)}
"""Candidates of the default adaptive configuration, all batch sizes together, in the releases that were read."""


def chain_tokens(asked: Asked) -> Verdict | None:
    steps, topk, tokens = (asked.number(key) for key in TRIPLE)
    if not eagle_like(asked) or topk != 1 or steps is None or tokens is None or tokens == steps + 1:
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
    if not eagle_like(asked) or len(given) in (0, 3) or asked.get("speculative_adaptive"):
        return None
    missing = tuple(key for key in TRIPLE if key not in given)
    steps = int(asked.number(STEPS) or 3)
    topk = int(asked.number(TOPK) or 1)
    tokens = int(asked.number(TOKENS) or (steps + 1 if topk == 1 else 2 * steps * topk))
    whole = dict(zip(TRIPLE, (steps, topk, steps + 1 if topk == 1 else tokens), strict=True))
    if missing == (TOKENS,) and topk == 1:
        text = f"draft tokens are not set: with topk 1 the server sets them to steps + 1 = {steps + 1}"
        return Verdict("overridden", text, TRIPLE, becomes={TOKENS: steps + 1}, fix=whole)
    dies = "AssertionError without a word" if STEPS in missing else "TypeError on None"
    text = f"steps, topk and draft tokens go together: {', '.join(missing)} missing ({dies})"
    return Verdict("error", text, TRIPLE, fix=whole)


def automatic_choice(asked: Asked) -> tuple[int, int, int] | None:
    """What the server chooses where none of the three is set; None where version or architecture leave it open.

    0.4.6 one choice for all; 0.5.3 and 0.5.8 on by architecture (`_auto_choose_speculative_params`); the releases
    between the last two were not looked at.
    """
    version, architecture = asked.version, asked.model_architecture
    if version is None:
        return None
    if version < (0, 5):
        return (5, 4, 8)
    if algorithm(asked) == "STANDALONE":
        return (3, 1, 4)
    if architecture is None:
        return None
    if architecture.startswith(("LlamaFor", "Grok1")):
        return (5, 4, 8)
    if architecture.startswith(_SHORT_CHAIN) or version >= (0, 5, 8):
        return (3, 1, 4)
    return (5, 4, 8) if version < (0, 5, 4) else None


def automatic_triple(asked: Asked) -> Verdict | None:
    if not eagle_like(asked) or asked.given(*TRIPLE) or asked.get("speculative_adaptive"):
        return None
    choice = automatic_choice(asked)
    becomes = dict(zip(TRIPLE, choice, strict=True)) if choice else {}
    chosen = f"will be {'/'.join(map(str, choice))} here" if choice else "are 3/1/4 or 5/4/8"
    return Verdict(
        "note",
        "steps, topk and draft tokens are left to the server, which chooses by architecture and version: they "
        f"{chosen}; set all three to compare runs",
        TRIPLE,
        becomes=becomes,
        fix=becomes or dict(zip(TRIPLE, (3, 1, 4), strict=True)),
    )


def tree_holds_tokens(asked: Asked) -> Verdict | None:
    steps, topk, tokens = (asked.number(key) for key in TRIPLE)
    if not eagle_like(asked) or topk is None or topk <= 1 or steps is None or tokens is None:
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


def page_size_topk(allowed: tuple[str, ...], *, silently: bool = False) -> Any:
    def check(asked: Asked) -> Verdict | None:
        topk, page = asked.number("speculative_eagle_topk"), asked.number("page_size")
        if not eagle_like(asked) or topk is None or topk <= 1 or page is None or page <= 1:
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
    if not eagle_like(asked) or topk is None or topk <= 1 or "trtllm_mha" not in [asked.get(k) for k in keys]:
        return None
    return Verdict("error", "the trtllm_mha back end takes topk 1 only", ("speculative_eagle_topk", *keys),
                   fix={"speculative_eagle_topk": 1})  # fmt: skip


def rejection_sampling(asked: Asked) -> Verdict | None:
    if not asked.get("speculative_use_rejection_sampling"):
        return None
    choice = automatic_choice(asked)
    topk = asked.number(TOPK) or (choice[1] if choice and not asked.given(*TRIPLE) else None)
    thresholds = [asked.number(f"speculative_accept_threshold_{n}") for n in ("single", "acc")]
    wrong = []
    if algorithm(asked) not in ("EAGLE", "EAGLE3", "NEXTN"):
        wrong.append("EAGLE, EAGLE3 or NEXTN")
    if topk not in (None, 1):
        wrong.append("topk 1" if asked.given(TOPK) else f"topk 1 (the server would choose {topk})")
    if not set(thresholds) <= {None, 1.0}:
        wrong.append("accept thresholds of 1")
    if asked.get("enable_deterministic_inference"):
        wrong.append("no --enable-deterministic-inference")
    if not wrong:
        return None
    return Verdict("error", f"rejection sampling needs {', '.join(wrong)}",
                   ("speculative_use_rejection_sampling", TOPK),
                   fix={"speculative_use_rejection_sampling": None})  # fmt: skip


def block_verification(asked: Asked) -> Verdict | None:
    if not asked.get("speculative_use_block_verification"):
        return None
    key = "speculative_use_block_verification"
    if algorithm(asked) not in ("EAGLE", "EAGLE3", "NEXTN", "DFLASH", "DSPARK"):
        return Verdict("error", "block verification needs EAGLE, EAGLE3, DFLASH or DSPARK", (key,), fix={key: None})
    if asked.get("device", "cuda") not in ("cuda", "hip", "rocm"):
        return Verdict("error", "block verification needs CUDA or ROCm", (key, "device"), fix={key: None})
    if not eagle_like(asked) or asked.get("speculative_use_rejection_sampling"):
        return None
    becomes = {"speculative_use_rejection_sampling": True}
    return Verdict("overridden", "block verification turns rejection sampling on", (key,), becomes=becomes, fix=becomes)


def adaptive(asked: Asked) -> Verdict | None:
    if not asked.get("speculative_adaptive"):
        return None
    reasons = []
    # NEXTN has become EAGLE by then.
    if algorithm(asked) not in ("EAGLE", "EAGLE3", "NEXTN"):
        reasons.append("it needs EAGLE or EAGLE3")
    if asked.number(TOPK) not in (None, 1):
        reasons.append("it needs topk 1")
    if dp_attention_on(asked):
        reasons.append("not with data-parallel attention")
    for key, name in (
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
                   fix={"speculative_adaptive": None, "speculative_adaptive_config": None})  # fmt: skip


def adaptive_steps(asked: Asked) -> Verdict | None:
    """Only of the default candidates: a configuration file is not read here."""
    steps = asked.number(STEPS)
    if not asked.get("speculative_adaptive") or asked.given("speculative_adaptive_config") or steps is None:
        return None
    known = [set(_ADAPTIVE_STEPS[v]) for v in _ADAPTIVE_STEPS if asked.version is None or _near(asked.version, v)]
    # Between two releases that differ, what either would take is let pass.
    candidates = sorted(set().union(*known))
    if not candidates or steps in candidates:
        return None
    nearest = min((c for c in candidates if c > 0), key=lambda c: (abs(c - steps), c))
    return Verdict("error", f"{int(steps)} steps are none of the adaptive candidates {candidates}", (STEPS,),
                   fix={STEPS: nearest, TOPK: 1, TOKENS: nearest + 1})  # fmt: skip


def _near(version: tuple[int, ...], read: tuple[int, ...]) -> bool:
    """The release that was read and what lies towards the other one."""
    first, last = sorted(_ADAPTIVE_STEPS)
    return version < last if read == first else version > first


def adaptive_config_alone(asked: Asked) -> Verdict | None:
    if not asked.given("speculative_adaptive_config") or asked.get("speculative_adaptive"):
        return None
    return Verdict("warning", "an adaptive configuration without --speculative-adaptive is not read",
                   ("speculative_adaptive_config",), fix={"speculative_adaptive": True})  # fmt: skip
