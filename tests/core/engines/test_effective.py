"""What real servers said of themselves, and the comparison with what was asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.engines.llamacpp import effective as llamacpp
from specconsole.core.engines.sglang import effective as sglang
from specconsole.core.engines.vllm import effective as vllm
from specconsole.core.launching.effective import (
    Said,
    compare_settings,
    decode_account,
    encode_account,
    judge,
    same_value,
)

DATA = Path(__file__).parents[2] / "data" / "effective"


def load(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def test_sglang_on_an_h200() -> None:
    found = sglang.read_effective(args={}, info=load("sglang-0.5.17-eagle3-server_info.json"))
    assert found.speculation.on is True
    assert (found.speculation.algorithm, found.speculation.num_steps, found.speculation.topk) == ("EAGLE3", 3, 1)
    assert found.speculation.draft_tokens == 4
    assert (found.running_cap, found.kv_tokens, found.dp_size) == (48, 1837968, 1)
    assert found.attention_backend == "triton"
    assert found.cuda_graphs is True
    assert found.build == {"version": "0.5.17"}
    assert found.startup_s["cuda_graph.draft_decode"] == pytest.approx(4.26, abs=0.01)
    reports = compare_settings(
        {"speculative_num_draft_tokens": 8, "page_size": 1, "mem_fraction_static": "0.907", "no_such": 1},
        found.settings,
    )
    assert [(r.key, r.state) for r in reports] == [
        ("speculative_num_draft_tokens", "overridden"),
        ("no_such", "ignored"),
        ("page_size", "as-asked"),
        ("mem_fraction_static", "as-asked"),
    ]


def test_sglang_masks_keys_and_tells_made_up_acceptance() -> None:
    found = sglang.read_effective(
        args={"api_key": "sk-planted", "speculative_algorithm": "EAGLE3"}, env={"SGLANG_SIMULATE_ACC_LEN": "2.5"}
    )
    assert "planted" not in repr(found)
    assert found.speculation.simulated == "SGLANG_SIMULATE_ACC_LEN=2.5"
    assert sglang.read_effective(args={}).speculation.on is None


def test_llamacpp_slots_are_the_witness_not_props() -> None:
    props, slots = load("llamacpp-b11434-draft-props.json"), load("llamacpp-b11434-draft-slots.json")
    assert props["default_generation_settings"]["params"]["speculative.types"] == "none"
    found = llamacpp.read_effective(args={"spec_draft_n_max": 4}, props=props, slots=slots, draft_model="/d.gguf")
    assert found.speculation.on is True
    assert found.speculation.num_steps == 4
    assert (found.context, found.running_cap, found.kv_tokens) == (2048, 2, 4096)
    off = llamacpp.read_effective(args={}, props=props, slots=[{**slot, "speculative": False} for slot in slots])
    assert off.speculation.on is False
    assert off.speculation.draft_model is None


def test_vllm_configuration_line_and_metrics() -> None:
    config = vllm.read_config_line((DATA / "vllm-0.32.0-eagle3-config-line.txt").read_text())
    found = vllm.read_effective(args={"max_model_len": 2048}, config=config, version="0.32.0", spec_counters_there=True)
    assert found.speculation.on is True
    assert (found.speculation.algorithm, found.speculation.num_steps) == ("eagle3", 3)
    assert (found.context, found.cuda_graphs, found.dp_size) == (2048, False, 1)
    plain = vllm.read_config_line((DATA / "vllm-0.32.0-nospec-config-line.txt").read_text())
    assert plain["speculative_config"] is None
    assert vllm.read_effective(args={}, config=plain).speculation.on is False
    # Asked for, but no drafter was built: the metrics are believed.
    assert vllm.read_effective(args={}, config=config, spec_counters_there=False).speculation.on is False
    assert vllm.read_config_line("INFO 11-29 anything else") == {}


def test_nothing_learned_is_unknown_not_ignored() -> None:
    (report,) = compare_settings({"tp_size": 8}, {})
    assert report.state == "unknown"


def test_what_the_server_chose_is_listed_where_defaults_are_known() -> None:
    reports = compare_settings({}, {"page_size": 64, "seed": 0}, defaults={"page_size": 1, "seed": 0})
    assert [(r.key, r.effective, r.state) for r in reports] == [("page_size", 64, "defaulted")]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [("3", 3, True), (0.9, "0.90", True), (["tiny"], "tiny", True), (True, "true", True), ("EAGLE3", "eagle3", True),
     ([1, 2], [1, 2], True), ([1, 2], [1, 3], False), ({"a": 1}, {"a": 1, "b": 2}, True), (1, True, False),
     ("fa3", "triton", False)],
)  # fmt: skip
def test_two_writings_of_one_value(a: Any, b: Any, same: bool) -> None:
    assert same_value(a, b) is same


def test_sglang_without_its_endpoint_is_read_from_its_log() -> None:
    lines = (
        "[2026-11-29 14:13:00] max_total_num_tokens=1837968, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        "max_running_requests=48, context_len=4096, available_gpu_mem=10.09 GB",
        "[2026-11-29 14:13:00] Engine startup timings (s): load_weight=1.33, kv_cache_allocation=0.45, "
        "scheduler_e2e=19.20, cuda_graph={prefill=5.05, decode=0.00, draft_decode=4.26}, tokenizer_e2e=38.84",
        "[2026-11-29 14:12:40] sglang is using nccl==2.27.5",
    )
    found = sglang.read_effective(args={"speculative_algorithm": "EAGLE3"}, lines=lines)
    assert (found.kv_tokens, found.running_cap, found.context) == (1837968, 48, 4096)
    assert found.startup_s["load_weight"] == 1.33
    assert found.startup_s["cuda_graph.draft_decode"] == 4.26
    assert found.startup_s["tokenizer_e2e"] == 38.84
    assert found.build["nccl"] == "2.27.5"


def test_under_dp_attention_each_rank_takes_its_share_of_the_cap() -> None:
    args = {"max_running_requests": 48, "dp_size": 8, "enable_dp_attention": True}
    assert sglang.read_effective(args=args).running_cap == 6
    assert sglang.read_effective(args={**args, "enable_dp_attention": False}).running_cap == 48


def test_vllm_lines_of_its_log() -> None:
    log = vllm.read_lines(
        (
            "(EngineCore pid=4222) INFO 11-29 14:10:11 [kv_cache_utils.py:2327] CPU KV cache size: 116,480 tokens, "
            "Maximum concurrency for 2,048 tokens per request: 56.88x",
            "INFO 11-29 14:10:11 [cuda.py:420] Using FLASH_ATTN attention backend out of potential backends: ['A']",
            "INFO 11-29 14:10:11 [pynccl.py:113] vLLM is using nccl==2.29.7",
        )
    )
    assert (log.kv_tokens, log.attention_backend, log.nccl) == (116480, "FLASH_ATTN", "2.29.7")
    asked = {"speculative_config": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}}
    found = vllm.read_effective(args=asked, config={"speculative_config": {"method": "ngram", "model": None}})
    (report,) = compare_settings(asked, found.settings)
    assert report.state == "as-asked", "what the configuration line leaves out was not refused"


def test_a_partial_account_calls_nothing_ignored() -> None:
    said = Said(asked={"--tp": 1, "no-such": 3, "speculative_config": '{"method": "ngram"}'})
    found = vllm.from_said(replace(said, args={"tensor_parallel_size": 2, "speculative_config": {"method": "ngram"}}))
    account = judge(said.asked, found, vllm.VOCABULARY, drafts=True, build={"torch": "2.13.0"})
    states = {report.key: report.state for report in account.reports}
    assert states["tensor_parallel_size"] == "overridden"
    assert states["no_such"] == "unknown"
    assert states["speculative_config"] == "as-asked"
    assert account.effective.build["torch"] == "2.13.0"
    assert not account.speculation_off


def test_a_draft_that_llamacpp_dropped_is_said() -> None:
    said = Said(asked={}, draft_model="/d.gguf", lines=("spec common_specu: the draft vocabs are not compatible",))
    found = llamacpp.from_said(said, None, None)
    assert judge({}, found, llamacpp.VOCABULARY, drafts=True).speculation_off


def test_an_account_survives_its_file() -> None:
    found = sglang.read_effective(args={}, info=load("sglang-0.5.17-eagle3-server_info.json"))
    account = judge({"page_size": 64}, found, sglang.VOCABULARY, drafts=True)
    assert decode_account(encode_account(account)) == account
    assert decode_account(b'{"schema": 2}') is None
    assert decode_account(b"\xff\x00 cut") is None
    told = {report.key: report.effective for report in account.reports if report.state == "defaulted"}
    assert told["max_running_requests"] == 48, "the cap that nobody asked for is told"
