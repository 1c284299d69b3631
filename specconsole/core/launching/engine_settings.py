"""A profile -> the settings that its engine's rules judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specconsole.core.engines.llamacpp.flags import FLAGS as LLAMACPP
from specconsole.core.engines.sglang.flags import FLAGS as SGLANG
from specconsole.core.engines.vllm.flags import FLAGS as VLLM
from specconsole.core.launching.engine_flags import EngineFlags
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.rules import Asked, Verdict, judge_settings, normalise
from specconsole.core.launching.versions import Version

ENGINE_FLAGS: Mapping[str, EngineFlags] = {flags.engine: flags for flags in (SGLANG, VLLM, LLAMACPP)}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the rules go by besides settings. None: not read."""

    architecture: str | None = None
    positions: int | None = None
    """The longest context that it knows."""
    heads: int | None = None
    """Attention heads."""
    mtp_layers: int | None = None
    """Layers for multi-token prediction in its own checkpoint."""


def settings_of(profile: Profile) -> dict[str, Any]:
    """All settings under the engine's own Python names, model and draft included."""
    flags = ENGINE_FLAGS.get(profile.engine)
    if flags is None:
        return dict(profile.args)
    given = {flags.model: profile.model, **({flags.draft: profile.draft_model} if flags.draft else {})}
    named = {key: value for key, value in given.items() if value is not None}
    return {**named, **normalise(profile.args, flags.aliases)}


def spelled(profile: Profile, fix: Mapping[str, Any]) -> dict[str, Any]:
    """A fix by the engine's names -> the same by the profile's own: `model`, `draft_model`, `tp` for `tp_size`.

    So that what is set is replaced, and not set a second time under its other name.
    """
    flags = ENGINE_FLAGS.get(profile.engine)
    if flags is None:
        return dict(fix)
    mine: dict[str, str] = {}
    if profile.model is not None:
        mine[flags.model] = "model"
    if profile.draft_model is not None and flags.draft is not None:
        mine[flags.draft] = "draft_model"
    for key in profile.args:
        plain = key.lstrip("-").replace("-", "_")
        mine.setdefault(flags.aliases.get(plain, plain), key)
    return {mine.get(key, key): value for key, value in fix.items()}


def judge_profile(
    profile: Profile, version: Version | None, target: ModelFacts | None = None, draft: ModelFacts | None = None
) -> tuple[Verdict, ...]:
    """What the engine's rules say, gravest first; () for an engine without rules."""
    flags = ENGINE_FLAGS.get(profile.engine)
    if flags is None:
        return ()
    target, draft = target or ModelFacts(), draft or ModelFacts()
    asked = Asked(
        args=settings_of(profile),
        env=profile.env,
        version=version,
        model_architecture=target.architecture,
        model_positions=target.positions,
        model_heads=target.heads,
        model_mtp_layers=target.mtp_layers,
        draft_architecture=draft.architecture,
        draft_positions=draft.positions,
    )
    return judge_settings(flags.rules, asked)
