"""The engines' own adaptive speculation, written from what was measured.

SGLang (0.5.17 `speculative/adaptive_spec_params.py`): a JSON file, batch size from which on -> `candidate_steps`, among
which it moves by the acceptance that it sees. vLLM (0.32 `v1/spec_decode/dynamic/utils.py`): `[first, last, tokens]`
ranges inside `--speculative-config`.
"""

from __future__ import annotations

from typing import Any

from specconsole.core.engines.vllm.config import BATCH_SIZES, config_fix, speculative_config
from specconsole.core.launching.engine_settings import settings_of, spelled
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.rules import Asked
from specconsole.core.measuring.batch_schedule import BatchSchedule
from specconsole.errors import BadInputError


def sglang_config(schedule: BatchSchedule) -> dict[str, Any]:
    """The content of `--speculative-adaptive-config`: candidates by the batch size from which on they hold."""
    return {str(tier.first): {"candidate_steps": list(tier.candidates)} for tier in schedule.tiers}


def vllm_ranges(schedule: BatchSchedule) -> list[list[int]]:
    """The value of `num_speculative_tokens_per_batch_size`."""
    return [[tier.first, tier.last, tier.steps] for tier in schedule.tiers]


def adaptive_settings(profile: Profile, schedule: BatchSchedule, config_path: str | None) -> dict[str, Any]:
    """Settings for a profile, spelled as it spells them. `config_path`: where SGLang's file is on the host.

    Raises BadInputError for an engine that has no such thing, or a profile without speculation.
    """
    if profile.engine == "vllm":
        asked = Asked(settings_of(profile))
        if not speculative_config(asked):
            raise BadInputError("the profile does not speculate", where=profile.source, try_="a profile with a draft")
        most = max(tier.steps for tier in schedule.tiers)
        return config_fix(asked, num_speculative_tokens=most, **{BATCH_SIZES: vllm_ranges(schedule)})
    if profile.engine != "sglang":
        raise BadInputError(f"{profile.engine} has no adaptive speculation", try_="an sglang or vllm profile")
    algorithm = str(settings_of(profile).get("speculative_algorithm") or "").upper()
    if algorithm not in ("EAGLE", "EAGLE3", "NEXTN"):
        raise BadInputError("adaptive speculation needs EAGLE, EAGLE3 or NEXTN", where=profile.source)
    # The start must be one of the candidates.
    start = next(tier.steps for tier in schedule.tiers if tier.steps > 0)
    return spelled(
        profile,
        {
            "speculative_adaptive": True,
            "speculative_adaptive_config": config_path,
            "speculative_num_steps": start,
            "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": start + 1,
        },
    )
