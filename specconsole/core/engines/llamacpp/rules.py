"""llama.cpp's server: rules of b10434 to b11549 (tools/server/README.md, common/arg.cpp)."""

from __future__ import annotations

import difflib

from specconsole.core.launching.rules import Asked, Rule, Verdict

ALIASES = {
    "m": "model", "md": "spec_draft_model", "model_draft": "spec_draft_model", "c": "ctx_size", "np": "parallel",
    "t": "threads", "ngl": "n_gpu_layers", "gpu_layers": "n_gpu_layers", "b": "batch_size", "ub": "ubatch_size",
}  # fmt: skip

SOURCE = "common/arg.cpp, b11434"
TYPES = (
    "none", "draft-simple", "draft-eagle3", "draft-mtp", "draft-dflash", "draft-dspark", "ngram-simple", "ngram-map-k",
    "ngram-map-k4v", "ngram-mod", "ngram-cache",
)  # fmt: skip
REMOVED = {
    "draft": "spec_draft_n_max",
    "draft_max": "spec_draft_n_max",
    "draft_min": "spec_draft_n_min",
    "draft_p_min": "spec_draft_p_min",
}


def unknown_type(asked: Asked) -> Verdict | None:
    value = asked.get("spec_type")
    if value is None or value in TYPES:
        return None
    close = difflib.get_close_matches(str(value), TYPES, n=1, cutoff=0.6)
    meant = f"draft-{value}" if f"draft-{value}" in TYPES else close[0] if close else None
    fix = {"spec_type": meant} if meant else None
    return Verdict("error", f"--spec-type {value} is unknown; known: {', '.join(TYPES)}", ("spec_type",), fix=fix)


def draft_without_type(asked: Asked) -> Verdict | None:
    if not asked.given("spec_draft_model") or asked.given("spec_type"):
        return None
    return Verdict("note", "a draft without --spec-type: the type is left to the server", ("spec_type",),
                   fix={"spec_type": "draft-simple"})  # fmt: skip


def type_without_draft(asked: Asked) -> Verdict | None:
    kind = str(asked.get("spec_type") or "")
    if kind not in ("draft-simple", "draft-eagle3", "draft-dflash") or asked.given("spec_draft_model"):
        return None
    return Verdict("error", f"--spec-type {kind} needs a draft: --spec-draft-model is missing", ("spec_draft_model",))


def removed(asked: Asked) -> Verdict | None:
    old = asked.given(*REMOVED)
    if not old:
        return None
    fix: dict[str, object] = dict.fromkeys(old)
    fix.update({REMOVED[key]: asked.get(key) for key in old})
    return Verdict("error", f"{', '.join('--' + k.replace('_', '-') for k in old)}: removed", old, fix=fix)


def simulated(asked: Asked) -> Verdict | None:
    given = asked.given("spec_synth_len", "spec_synth_rates")
    if not given:
        return None
    return Verdict("warning", "SIMULATED: drafts are accepted by a dial; no result of it is real", given,
                   fix=dict.fromkeys(given))  # fmt: skip


def draft_range(asked: Asked) -> Verdict | None:
    least, most = asked.number("spec_draft_n_min"), asked.number("spec_draft_n_max")
    if least is None or least <= (3 if most is None else most):
        return None
    return Verdict("error", f"at least {int(least)} drafts, but at most {int(3 if most is None else most)}",
                   ("spec_draft_n_min", "spec_draft_n_max"),
                   fix={"spec_draft_n_max": int(least)})  # fmt: skip


def context_split(asked: Asked) -> Verdict | None:
    context, slots = asked.number("ctx_size"), asked.number("parallel")
    if not context or not slots or slots <= 1 or asked.get("kv_unified"):
        return None
    return Verdict("note", f"{int(context)} tokens of context are divided: {int(context // slots)} for each of "
                   f"{int(slots)} slots", ("ctx_size", "parallel"),
                   fix={"kv_unified": True})  # fmt: skip


def context_over_training(asked: Asked) -> Verdict | None:
    """Each slot's share counts; one that is left to the server is taken for one slot."""
    context, positions = asked.number("ctx_size"), asked.model_positions
    slots = 1 if asked.get("kv_unified") else max(1, int(asked.number("parallel") or 1))
    if context is None or positions is None or context <= positions * slots:
        return None
    fits = {"ctx_size": positions * slots}
    share = f"{int(context)} tokens of context" if slots == 1 else f"{int(context // slots)} tokens for each slot"
    text = f"{share}, capped at the {positions} positions of the model's training; memory is taken for all of them"
    return Verdict("overridden", text, ("ctx_size",), becomes=fits, fix=fits)


def metrics_off(asked: Asked) -> Verdict | None:
    if asked.get("metrics"):
        return None
    return Verdict("note", "without --metrics acceptance is read from each answer only, not from counters",
                   ("metrics",), fix={"metrics": True})  # fmt: skip


RULES: tuple[Rule, ...] = (
    Rule("unknown-type", unknown_type, SOURCE),
    Rule("draft-without-type", draft_without_type, SOURCE),
    Rule("draft-path-missing", type_without_draft, SOURCE),
    Rule("removed-flags", removed, SOURCE),
    Rule("simulated", simulated, SOURCE),
    Rule("draft-range", draft_range, SOURCE),
    Rule("context-split", context_split, "log of b10434: `n_ctx_slot`"),
    Rule("context-over-training", context_over_training, "log of b10434: `n_ctx_seq > n_ctx_train`, then capped"),
    Rule("metrics-off", metrics_off, "tools/server/README.md"),
)
