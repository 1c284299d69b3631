# ruff: noqa: E501 - a row of the table stays a line
"""A table a rule: settings that it speaks of, with level and consequence, and their nearest neighbours that it lets pass."""

from __future__ import annotations

from typing import Any

import pytest

from specconsole.core.engines.llamacpp import rules as llamacpp
from specconsole.core.engines.sglang import rules as sglang
from specconsole.core.engines.vllm import rules as vllm
from specconsole.core.launching.rules import Asked, judge_settings, normalise
from specconsole.core.launching.versions import parse_version

ENGINES = {"sglang": sglang, "vllm": vllm, "llamacpp": llamacpp}
E3 = {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/d"}


def triple(steps: int, topk: int, tokens: int) -> dict[str, int]:
    return {
        "speculative_num_steps": steps,
        "speculative_eagle_topk": topk,
        "speculative_num_draft_tokens": tokens,
    }


CHAIN = {**E3, **triple(3, 1, 4)}
TREE = {**E3, **triple(5, 4, 16)}
EAGLE3 = {"method": "eagle3", "model": "/d", "num_speculative_tokens": 3}
V2 = {"env": {"SGLANG_ENABLE_SPEC_V2": "1"}}

# (engine, rule, version, settings, more, level or None when it must not speak, what it becomes or proposes)
TABLE: list[tuple[str, str, str | None, dict[str, Any], dict[str, Any], str | None, dict[str, Any]]] = [
    ("sglang", "chain-tokens", "0.5.12", {**E3, **triple(3, 1, 8)}, {}, "overridden", {"speculative_num_draft_tokens": 4}),
    ("sglang", "chain-tokens", "0.5.12", CHAIN, {}, None, {}),
    ("sglang", "chain-tokens", "0.5.12", TREE, {}, None, {}),
    ("sglang", "all-three-or-none", "0.5.12", {**E3, "speculative_num_steps": 3}, {}, "error", triple(3, 1, 4)),
    ("sglang", "all-three-or-none", "0.5.12", {**E3, "speculative_eagle_topk": 1}, {}, "error", triple(3, 1, 4)),
    ("sglang", "all-three-or-none", "0.5.12", E3, {}, None, {}),
    ("sglang", "automatic-triple", "0.5.12", E3, {}, "note", triple(3, 1, 4)),
    ("sglang", "automatic-triple", "0.5.12", CHAIN, {}, None, {}),
    ("sglang", "tree-holds-tokens", "0.5.12", {**E3, **triple(2, 2, 8)}, {}, "warning", {"speculative_num_draft_tokens": 5}),
    ("sglang", "tree-holds-tokens", "0.5.12", TREE, {}, None, {}),
    ("sglang", "running-cap", "0.5.12", CHAIN, {}, "overridden", {"max_running_requests": 48}),
    ("sglang", "running-cap", "0.5.12", {**CHAIN, "max_running_requests": 128}, {}, None, {}),
    ("sglang", "running-cap", "0.5.12", {"model_path": "/m"}, {}, None, {}),
    ("sglang", "overlap-off", "0.5.8", CHAIN, {}, "overridden", {"disable_overlap_schedule": True}),
    ("sglang", "overlap-off", "0.5.8", CHAIN, V2, None, {}),
    ("sglang", "overlap-off", "0.5.12", CHAIN, {}, None, {}),
    ("sglang", "spec-v2-topk", "0.5.8", TREE, V2, "error", {"env.SGLANG_ENABLE_SPEC_V2": None}),
    ("sglang", "spec-v2-topk", "0.5.8", CHAIN, V2, None, {}),
    ("sglang", "spec-v2-topk", "0.5.15", TREE, V2, None, {}),
    ("sglang", "spec-v2-falls-back", "0.5.12", TREE, {}, "overridden", {"disable_overlap_schedule": True}),
    ("sglang", "spec-v2-falls-back", "0.5.15", TREE, {}, None, {}),
    ("sglang", "spec-v2-variable-gone", "0.5.17", CHAIN, V2, "warning", {"env.SGLANG_ENABLE_SPEC_V2": None}),
    ("sglang", "spec-v2-variable-gone", "0.5.8", CHAIN, V2, None, {}),
    ("sglang", "page-size-topk", "0.4.6", {**TREE, "page_size": 64}, {}, "overridden", {"speculative_eagle_topk": 1}),
    ("sglang", "page-size-topk", "0.5.3", {**TREE, "page_size": 64, "attention_backend": "fa3"}, {}, "error", {"page_size": 1}),
    ("sglang", "page-size-topk", "0.5.8", {**TREE, "page_size": 64, "attention_backend": "fa3"}, {}, None, {}),
    ("sglang", "page-size-topk", "0.5.8", {**TREE, "page_size": 64, "attention_backend": "triton"}, {}, "error", {"page_size": 1}),
    ("sglang", "page-size-topk", "0.5.17", {**TREE, "page_size": 64, "attention_backend": "triton"}, {}, None, {}),
    ("sglang", "page-size-topk", "0.5.17", {**CHAIN, "page_size": 64}, {}, None, {}),
    ("sglang", "trtllm-mha-topk", "0.5.19", {**TREE, "decode_attention_backend": "trtllm_mha"}, {}, "error", {"speculative_eagle_topk": 1}),
    ("sglang", "trtllm-mha-topk", "0.5.19", {**CHAIN, "attention_backend": "trtllm_mha"}, {}, None, {}),
    ("sglang", "mixed-chunk", "0.5.8", {**CHAIN, "enable_mixed_chunk": True}, {}, "overridden", {"enable_mixed_chunk": False}),
    ("sglang", "mixed-chunk", "0.5.8", {"enable_mixed_chunk": True}, {}, None, {}),
    ("sglang", "dp-attention", "0.5.12", {"speculative_algorithm": "NGRAM", "enable_dp_attention": True}, {}, "error", {"enable_dp_attention": None}),
    ("sglang", "dp-attention", "0.5.12", {**CHAIN, "enable_dp_attention": True}, {}, None, {}),
    ("sglang", "mtp-needs-no-draft", "0.5.12", {"speculative_algorithm": "NEXTN", "speculative_draft_model_path": "/d"},
     {"model_architecture": "DeepseekV3ForCausalLM"}, "note", {"speculative_draft_model_path": None}),
    ("sglang", "mtp-needs-no-draft", "0.5.12", CHAIN, {"model_architecture": "LlamaForCausalLM"}, None, {}),
    ("sglang", "draft-path-missing", "0.5.12", {"speculative_algorithm": "EAGLE3"}, {}, "error", {}),
    ("sglang", "draft-path-missing", "0.5.12", {"speculative_algorithm": "NGRAM"}, {}, None, {}),
    ("sglang", "rejection-sampling", "0.5.19", {**TREE, "speculative_use_rejection_sampling": True}, {}, "error", {"speculative_use_rejection_sampling": None}),
    ("sglang", "rejection-sampling", "0.5.19", {**CHAIN, "speculative_use_rejection_sampling": True}, {}, None, {}),
    ("sglang", "adaptive", "0.5.12", {**TREE, "speculative_adaptive": True}, {}, "overridden", {"speculative_adaptive": False}),
    ("sglang", "adaptive", "0.5.12", {**CHAIN, "speculative_adaptive": True}, {}, None, {}),
    ("sglang", "lossy-thresholds", "0.5.12", {**CHAIN, "speculative_accept_threshold_acc": 0.9}, {}, "warning", {"speculative_accept_threshold_acc": 1.0}),
    ("sglang", "lossy-thresholds", "0.5.12", {**CHAIN, "speculative_accept_threshold_acc": 1.0}, {}, None, {}),
    ("sglang", "simulated", "0.5.12", CHAIN, {"env": {"SGLANG_SIMULATE_ACC_LEN": "2.5"}}, "warning", {"env.SGLANG_SIMULATE_ACC_LEN": None}),
    ("sglang", "simulated", "0.5.12", CHAIN, {"env": {"SGLANG_SIMULATE_ACC_LEN": "-1"}}, None, {}),
    ("sglang", "context-beyond-draft", "0.5.12", {**CHAIN, "context_length": 8192}, {"draft_positions": 2048}, "error",
     {"env.SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}),
    ("sglang", "context-beyond-draft", "0.5.12", CHAIN, {"draft_positions": 2048, "model_positions": 131072}, "error", {}),
    ("sglang", "context-beyond-draft", "0.4.6", {**CHAIN, "context_length": 8192}, {"draft_positions": 2048}, None, {}),
    ("sglang", "context-beyond-draft", "0.5.12", CHAIN, {}, None, {}),
    ("sglang", "token-map-eagle3", "0.5.12", {**CHAIN, "speculative_token_map": "/t"}, {}, "overridden", {"speculative_token_map": None}),
    ("sglang", "token-map-eagle3", "0.5.12", {"speculative_algorithm": "EAGLE", "speculative_token_map": "/t"}, {}, None, {}),
    ("sglang", "pipeline-parallel", "0.5.23", {**CHAIN, "pp_size": 2}, {}, "error", {"pp_size": None}),
    ("sglang", "pipeline-parallel", "0.5.23", {**CHAIN, "pp_size": 2}, {"env": {"SGLANG_ENABLE_PP_SPEC": "1"}}, None, {}),
    ("sglang", "ngram-width", "0.5.12", {"speculative_algorithm": "NGRAM", "speculative_eagle_topk": 4}, {}, "overridden", {"speculative_eagle_topk": 10}),
    ("sglang", "ngram-width", "0.5.12", {"speculative_algorithm": "NGRAM"}, {}, None, {}),
    ("sglang", "block-drafts", "0.5.19", {"speculative_algorithm": "DFLASH", "speculative_num_steps": 4}, {}, "overridden", {"speculative_num_steps": 1}),
    ("sglang", "block-drafts", "0.5.19", {"speculative_algorithm": "DFLASH"}, {}, None, {}),
    ("sglang", "windows", "0.5.23", {**CHAIN, "speculative_draft_sink_size": 4}, {}, "error", {"speculative_draft_sink_size": None}),
    ("sglang", "windows", "0.5.23", {**CHAIN, "speculative_draft_sink_size": 4, "speculative_draft_window_size": 64}, {}, None, {}),
    ("sglang", "api-key-argument", "0.5.12", {"api_key": "k"}, {}, "error", {"api_key": None}),
    ("sglang", "api-key-argument", "0.5.12", {}, {}, None, {}),
    ("vllm", "unreadable-json", "0.33.0", {"speculative_config": "{method:"}, {}, "error", {}),
    ("vllm", "unreadable-json", "0.33.0", {"speculative_config": '{"method": "ngram"}'}, {}, None, {}),
    ("vllm", "unknown-keys", "0.33.0", {"speculative_config": {**EAGLE3, "steps": 3}}, {}, "error", {}),
    ("vllm", "unknown-keys", "0.33.0", {"speculative_config": {**EAGLE3, "tensor_parallel_size": 2}}, {}, "error", {}),
    ("vllm", "unknown-keys", "0.33.0", {"speculative_config": EAGLE3}, {}, None, {}),
    ("vllm", "old-keys", "0.33.0", {"speculative_config": {**EAGLE3, "disable_by_batch_size": 8}}, {}, "error", {}),
    ("vllm", "old-keys", "0.14.1", {"speculative_config": {**EAGLE3, "disable_by_batch_size": 8}}, {}, None, {}),
    ("vllm", "unknown-method", "0.33.0", {"speculative_config": {"method": "eagle4"}}, {}, "error", {}),
    ("vllm", "unknown-method", "0.33.0", {"speculative_config": EAGLE3}, {}, None, {}),
    ("vllm", "old-methods", "0.33.0", {"speculative_config": {"method": "medusa", "model": "/d"}}, {}, "error", {}),
    ("vllm", "old-methods", "0.20.2", {"speculative_config": {"method": "medusa", "model": "/d"}}, {}, None, {}),
    ("vllm", "draft-path-missing", "0.33.0", {"speculative_config": {"method": "eagle3", "num_speculative_tokens": 3}}, {}, "error", {}),
    ("vllm", "draft-path-missing", "0.33.0", {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3}}, {}, None, {}),
    ("vllm", "tokens-missing", "0.33.0", {"speculative_config": {"method": "eagle3", "model": "/d"}}, {}, "error", {}),
    ("vllm", "tokens-missing", "0.33.0", {"speculative_config": {**EAGLE3, "num_speculative_tokens": 0}}, {}, "error", {}),
    ("vllm", "tokens-missing", "0.33.0", {"speculative_config": {"method": "mtp"}}, {}, None, {}),
    ("vllm", "given-twice", "0.33.0", {"speculative_config": EAGLE3, "spec_tokens": 4}, {}, "error", {"spec_tokens": None}),
    ("vllm", "given-twice", "0.33.0", {"spec_method": "ngram", "spec_tokens": 4}, {}, None, {}),
    ("vllm", "draft-parallel", "0.33.0", {"speculative_config": {**EAGLE3, "draft_tensor_parallel_size": 2}, "tensor_parallel_size": 4}, {}, "error", {}),
    ("vllm", "draft-parallel", "0.33.0", {"speculative_config": {**EAGLE3, "draft_tensor_parallel_size": 4}, "tensor_parallel_size": 4}, {}, None, {}),
    ("vllm", "per-batch-with-dp", "0.33.0", {"speculative_config": {**EAGLE3, "num_speculative_tokens_per_batch_size": [[1, 8, 3]]}, "data_parallel_size": 2}, {}, "overridden", {}),
    ("vllm", "per-batch-with-dp", "0.33.0", {"speculative_config": {**EAGLE3, "num_speculative_tokens_per_batch_size": [[1, 8, 3]]}}, {}, None, {}),
    ("vllm", "simulated", "0.33.0", {"speculative_config": {**EAGLE3, "rejection_sample_method": "synthetic"}}, {}, "warning", {}),
    ("vllm", "simulated", "0.33.0", {"speculative_config": EAGLE3}, {}, None, {}),
    ("vllm", "lookup-range", "0.33.0", {"speculative_config": {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_min": 5, "prompt_lookup_max": 2}}, {}, "error", {}),
    ("vllm", "lookup-range", "0.33.0", {"speculative_config": {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_min": 2, "prompt_lookup_max": 5}}, {}, None, {}),
    ("vllm", "memory-share", "0.33.0", {"gpu_memory_utilization": 1.2}, {}, "error", {}),
    ("vllm", "memory-share", "0.33.0", {"gpu_memory_utilization": 0.9}, {}, None, {}),
    ("vllm", "heads-divide", "0.33.0", {"num_attention_heads": 4, "tensor_parallel_size": 3}, {}, "error", {}),
    ("vllm", "heads-divide", "0.33.0", {"num_attention_heads": 4, "tensor_parallel_size": 2}, {}, None, {}),
    ("vllm", "context-beyond-model", "0.33.0", {"max_model_len": 999999}, {"model_positions": 4096}, "error", {"max_model_len": 4096}),
    ("vllm", "context-beyond-model", "0.33.0", {"max_model_len": 4096}, {"model_positions": 4096}, None, {}),
    ("vllm", "draft-shortens-context", "0.33.0", {"speculative_config": EAGLE3, "max_model_len": 4096}, {"draft_positions": 2048}, "overridden", {"max_model_len": 2048}),
    ("vllm", "draft-shortens-context", "0.33.0", {"max_model_len": 4096}, {"draft_positions": 2048}, None, {}),
    ("vllm", "old-draft-flags", "0.33.0", {"speculative_model": "/d", "num_speculative_tokens": 4}, {}, "error",
     {"speculative_config": {"model": "/d", "num_speculative_tokens": 4}}),
    ("vllm", "old-draft-flags", "0.33.0", {"speculative_config": EAGLE3}, {}, None, {}),
    ("vllm", "api-key-argument", "0.33.0", {"api_key": "k"}, {}, "error", {"api_key": None}),
    ("vllm", "api-key-argument", "0.33.0", {}, {}, None, {}),
    ("llamacpp", "unknown-type", None, {"spec_type": "mtp"}, {}, "error", {"spec_type": "draft-mtp"}),
    ("llamacpp", "unknown-type", None, {"spec_type": "ngram-mod"}, {}, None, {}),
    ("llamacpp", "draft-without-type", None, {"spec_draft_model": "/d"}, {}, "note", {"spec_type": "draft-simple"}),
    ("llamacpp", "draft-without-type", None, {"spec_draft_model": "/d", "spec_type": "draft-simple"}, {}, None, {}),
    ("llamacpp", "draft-path-missing", None, {"spec_type": "draft-simple"}, {}, "error", {}),
    ("llamacpp", "draft-path-missing", None, {"spec_type": "ngram-simple"}, {}, None, {}),
    ("llamacpp", "removed-flags", None, {"draft_max": 8}, {}, "error", {"draft_max": None, "spec_draft_n_max": 8}),
    ("llamacpp", "removed-flags", None, {"spec_draft_n_max": 8}, {}, None, {}),
    ("llamacpp", "simulated", None, {"spec_synth_len": 2.5}, {}, "warning", {"spec_synth_len": None}),
    ("llamacpp", "simulated", None, {}, {}, None, {}),
    ("llamacpp", "draft-range", None, {"spec_draft_n_min": 5}, {}, "error", {}),
    ("llamacpp", "draft-range", None, {"spec_draft_n_min": 5, "spec_draft_n_max": 8}, {}, None, {}),
    ("llamacpp", "context-split", None, {"ctx_size": 4096, "parallel": 4}, {}, "note", {}),
    ("llamacpp", "context-split", None, {"ctx_size": 4096, "parallel": 1}, {}, None, {}),
    ("llamacpp", "context-over-training", None, {"ctx_size": 32768}, {"model_positions": 4096}, "overridden", {"ctx_size": 4096}),
    ("llamacpp", "context-over-training", None, {"ctx_size": 4096}, {"model_positions": 4096}, None, {}),
    ("llamacpp", "metrics-off", None, {}, {}, "note", {"metrics": True}),
    ("llamacpp", "metrics-off", None, {"metrics": True}, {}, None, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "rule", "version", "args", "more", "level", "gives"),
    TABLE,
    ids=[f"{row[0]}-{row[1]}-{number}" for number, row in enumerate(TABLE)],
)
def test_a_rule_speaks_when_it_must_and_only_then(
    engine: str,
    rule: str,
    version: str | None,
    args: dict[str, Any],
    more: dict[str, Any],
    level: str | None,
    gives: dict[str, Any],
) -> None:
    asked = Asked(args=args, version=parse_version(version), **more)
    found = [v for v in judge_settings(ENGINES[engine].RULES, asked) if v.rule_id == rule]
    if level is None:
        assert found == []
        return
    (verdict,) = found
    assert verdict.level == level
    assert verdict.text
    assert verdict.source
    offered = {**(verdict.fix or {}), **verdict.becomes}
    for key, value in gives.items():
        assert key in offered
        assert offered[key] == value


def test_every_rule_stands_in_the_table_in_both_ways() -> None:
    for engine, module in ENGINES.items():
        for rule in {r.rule_id for r in module.RULES}:
            rows = [row for row in TABLE if row[0] == engine and row[1] == rule]
            assert {row[5] is None for row in rows} == {True, False}, f"{engine}: {rule}"


def test_a_fix_silences_its_rule() -> None:
    """Applying what a verdict proposes must not leave the same error standing."""
    for engine, rule, version, args, more, level, _ in TABLE:
        if level != "error":
            continue
        asked = Asked(args=args, version=parse_version(version), **more)
        (verdict,) = [v for v in judge_settings(ENGINES[engine].RULES, asked) if v.rule_id == rule]
        if verdict.fix is None:
            continue
        mended, env = dict(args), dict(asked.env)
        for key, value in verdict.fix.items():
            target, name = (env, key[4:]) if key.startswith("env.") else (mended, key)
            if value is None:
                target.pop(name, None)
            else:
                target[name] = value
        again = Asked(args=mended, version=asked.version, **{**more, "env": env})
        assert [v for v in judge_settings(ENGINES[engine].RULES, again) if v.rule_id == rule] == [], rule


def test_without_a_version_a_rule_of_some_versions_is_one_level_softer_and_says_so() -> None:
    found = judge_settings(sglang.RULES, Asked(args=CHAIN))
    (verdict,) = [v for v in found if v.rule_id == "overlap-off"]
    assert verdict.level == "warning"
    assert "up to 0.5.10" in verdict.text


def test_aliases_are_one_setting() -> None:
    assert normalise({"--tp": 8, "speculative-draft-model": "/d"}, sglang.ALIASES) == {
        "tp_size": 8,
        "speculative_draft_model_path": "/d",
    }
