"""What the tables of rules are made of."""

from __future__ import annotations

from typing import Any

Row = tuple[str, str | None, dict[str, Any], dict[str, Any], str | None, dict[str, Any]]
"""Rule, version, settings, more of `Asked`, level or None where it must not speak, what it becomes or proposes."""


def triple(steps: int, topk: int, tokens: int) -> dict[str, int]:
    return {
        "speculative_num_steps": steps,
        "speculative_eagle_topk": topk,
        "speculative_num_draft_tokens": tokens,
    }


E3: dict[str, Any] = {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/d"}
CHAIN = {**E3, **triple(3, 1, 4)}
TREE = {**E3, **triple(5, 4, 16)}
EAGLE3 = {"method": "eagle3", "model": "/d", "num_speculative_tokens": 3}
V2 = {"env": {"SGLANG_ENABLE_SPEC_V2": "1"}}
