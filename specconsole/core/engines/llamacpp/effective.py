"""llama.cpp's own account: /props and /slots (b10434 to b11549, tools/server/server.cpp).

`/slots[].speculative` says whether a draft is really in use: with a draft of another vocabulary the server comes up
without it. `speculative.types` in /props says `none` even while a draft runs, and is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from specconsole.core.launching.effective import Effective, Said, Speculation, Vocabulary, whole

VOCABULARY = Vocabulary(
    log_words=("n_ctx_slot", "draft vocabs are not compatible", "failed to initialize speculative decoding"),
    aliases={
        "c": ("ctx_size",),
        "np": ("parallel",),
        "n_parallel": ("parallel",),
        "m": ("model",),
        "a": ("alias",),
    },
    worth_telling=("parallel", "ctx_size"),
    complete=False,
)


def read_effective(
    *,
    args: Mapping[str, Any],
    props: Mapping[str, Any] | None = None,
    slots: Sequence[Mapping[str, Any]] | None = None,
    draft_model: str | None = None,
) -> Effective:
    """From the settings asked for and the two endpoints (None: not there, or switched off)."""
    props = props or {}
    on = None
    if slots:
        on = any(bool(slot.get("speculative")) for slot in slots)
    per_slot = whole((props.get("default_generation_settings") or {}).get("n_ctx"))
    if per_slot is None and slots:
        per_slot = whole(slots[0].get("n_ctx"))
    count = whole(props.get("total_slots")) or (len(slots) if slots else None)
    settings: dict[str, Any] = {}
    if count is not None:
        settings["parallel"] = count
    if per_slot is not None and count is not None:
        settings["ctx_size"] = per_slot * count
    for key, name in (("model_path", "model"), ("model_alias", "alias")):
        if props.get(key):
            settings[name] = props[key]
    synthetic = args.get("spec_synth_len")
    most = whole(args.get("spec_draft_n_max"))
    return Effective(
        settings=settings,
        speculation=Speculation(
            on=on,
            algorithm=str(args.get("spec_type") or "draft-simple") if on else None,
            num_steps=most if on else None,
            topk=1 if on else None,
            draft_tokens=most if on else None,
            draft_model=draft_model if on else None,
            simulated=f"--spec-synth-len {synthetic}" if synthetic else "",
            source="/slots" if slots else "",
        ),
        context=per_slot,
        kv_tokens=per_slot * count if per_slot is not None and count is not None else None,
        running_cap=count,
        dp_size=1,
        build={"version": str(props["build_info"])} if props.get("build_info") else {},
        sources=tuple(name for name, there in (("/props", bool(props)), ("/slots", bool(slots))) if there),
    )


def from_said(said: Said, props: Mapping[str, Any] | None, slots: Sequence[Mapping[str, Any]] | None) -> Effective:
    """The same from what is known of a launch and the two endpoints."""
    plain = {name.lstrip("-").replace("-", "_"): value for name, value in said.asked.items()}
    found = read_effective(args=plain, props=props, slots=slots, draft_model=said.draft_model)
    refused = any("not compatible" in line or "failed to initialize speculative" in line for line in said.lines)
    if found.speculation.on is None and refused:
        return replace(found, speculation=Speculation(False, source="log"))
    return found
