"""What real servers said of themselves, and the comparison with what was asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.engines.llamacpp import effective as llamacpp
from specconsole.core.engines.sglang import effective as sglang
from specconsole.core.engines.vllm import effective as vllm
from specconsole.core.launching.effective import compare_settings, same_value

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
