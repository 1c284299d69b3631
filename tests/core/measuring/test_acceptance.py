"""Acceptance from each engine's own figures, by hand and against numbers that real servers printed."""

from typing import Any

import pytest

from specconsole.core.measuring.acceptance import (
    SpecCounters,
    from_counters,
    from_llamacpp_requests,
    from_sglang_requests,
)
from specconsole.core.measuring.requests import RequestRecord


def answered(tokens: int, spec: dict[str, Any]) -> RequestRecord:
    return RequestRecord(
        point=0, body=0, warmup=False, start_s=0.0, end_s=2.0, error=None, event_s=(1.0, 2.0),
        event_tokens=(1, tokens - 1), completion_tokens=tokens, tokens_from="usage", spec=spec,
    )  # fmt: skip


def test_sglang_per_request() -> None:
    found = from_sglang_requests(
        [
            answered(101, {"spec_verify_ct": 40, "spec_num_correct_drafts": 60, "spec_num_proposed_drafts": 120,
                           "spec_correct_drafts_histogram": [10, 10, 10, 10]}),
            answered(21, {"spec_verify_ct": 10, "spec_num_correct_drafts": 10, "spec_num_proposed_drafts": 30,
                          "spec_correct_drafts_histogram": [5, 2, 1, 2]}),
        ]
    )  # fmt: skip
    assert found.accept_length == pytest.approx(1 + 70 / 50)
    assert found.target_steps == 50
    assert found.engine_figure == pytest.approx(122 / 50), "the engine's own counts the prefill's token"
    assert found.per_position_ratio == pytest.approx((35 / 50, 23 / 50, 12 / 50))
    assert found.proposed_drafts == 150


def test_sglang_before_it_told_correct_drafts() -> None:
    found = from_sglang_requests([answered(101, {"spec_verify_ct": 40})])
    assert found.accept_length == pytest.approx(1 + 60 / 40)
    assert found.proposed_drafts is None


def test_counters_count_steps_without_a_draft_and_the_engine_figure_does_not() -> None:
    before = SpecCounters(10, 40, 20, 1000, (12, 8))
    after = SpecCounters(60, 240, 110, 1190, (52, 38, 10))
    delta = after.since(before)
    assert delta is not None
    assert list(delta.per_position) == [40, 30, 10]
    # 190 generated tokens of 10 requests: 180 decode tokens, 90 of them accepted drafts, so 90 steps; 50 had a draft.
    found = from_counters(delta, 180)
    assert found.accept_length == pytest.approx(2.0)
    assert found.target_steps == 90
    assert found.engine_figure == pytest.approx(1 + 90 / 50)
    assert found.per_position_ratio == pytest.approx((0.8, 0.6, 0.2))


def test_sglang_counts_right_drafts_beyond_the_last_token_too() -> None:
    # 255 decode tokens in 85 steps; the last step had three right drafts and room for one token.
    found = from_sglang_requests([answered(256, {"spec_verify_ct": 85, "spec_num_correct_drafts": 173})])
    assert found.accept_length == pytest.approx(3.0)
    assert found.accepted_drafts == 173


def test_drafts_accepted_beyond_the_last_token_make_no_step_fewer() -> None:
    # Twelve requests of 256 tokens as vLLM 0.32 counts them: each last step is cut at the limit, its drafts are not.
    found = from_counters(
        SpecCounters(drafts=1010, draft_tokens=4040, accepted_tokens=2069, generated_tokens=3072), 3060
    )
    assert found.target_steps == 1010
    assert found.accept_length == pytest.approx(3060 / 1010)
    assert found.engine_figure == pytest.approx(3.0485, abs=1e-3)


def test_a_restart_in_between_and_speculation_off_are_said() -> None:
    assert SpecCounters(1, 1, 1, 5).since(SpecCounters(2, 2, 2, 9)) is None
    assert "restarted" in from_counters(None, 10).why_not
    assert "off" in from_counters(SpecCounters(0, 0, 0, 50), 50).why_not


def test_llamacpp_timings() -> None:
    found = from_llamacpp_requests([answered(129, {"draft_n": 120, "draft_n_accepted": 88})])
    assert found.target_steps == 40
    assert found.accept_length == pytest.approx(128 / 40)
    assert "off" in from_llamacpp_requests([answered(129, {})]).why_not
