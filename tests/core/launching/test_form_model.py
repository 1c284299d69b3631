"""The form without a screen: what an edit makes of the layer, where a value comes from, undo, and what it says."""

from __future__ import annotations

import time
from typing import Any

import pytest

from specconsole.core.launching.form_fields import FieldPath
from specconsole.core.launching.form_layer import seen
from specconsole.core.launching.form_model import FormModel
from specconsole.core.views.form import FieldView
from tests.core.launching.form_cases import model_of


def args(name: str) -> FieldPath:
    return ("args", name)


def view(model: FormModel, *path: str) -> FieldView:
    return model.view.by_path[path]


def put(model: FormModel, path: FieldPath, text: str) -> str:
    return model.set_text(model.view.by_path[path].field, text)


@pytest.mark.parametrize(
    ("name", "path", "text", "own", "value", "origin"),
    [
        ("child", args("speculative_num_steps"), "5", {"args": {"speculative_num_steps": 5}}, 5, "own"),
        # What the parent says anyway is no word of its own.
        ("child", args("speculative_num_steps"), "3", {}, 3, "parent"),
        # `tp` is how the parent spells it: the flag's field writes over that, and not beside it.
        ("child", args("tp"), "4", {"args": {"tp": 4}}, 4, "own"),
        ("child", args("mem_fraction_static"), "0.90", {"args": {"mem_fraction_static": "0.90"}}, "0.90", "own"),
        ("child", args("page_size"), "64", {"args": {"page_size": 64}}, 64, "own"),
        ("child", args("speculative_num_steps"), "", {"unset": ["args.speculative_num_steps"]}, None, "taken-away"),
        ("child", args("trust-remote-code"), "off", {"unset": ["args.trust-remote-code"]}, None, "taken-away"),
        ("child", ("model",), "${model_dir}/other", {"model": "${model_dir}/other"}, "/m/other", "own"),
        ("child", ("model",), "$${HOME}/m", {"model": "$${HOME}/m"}, "${HOME}/m", "own"),
        ("child", ("env", "NCCL_ALGO"), "Ring", {"env": {"NCCL_ALGO": "Ring"}}, "Ring", "own"),
        ("child", ("port",), "31000", {"port": 31000}, 31000, "own"),
        ("child", ("port",), "", {"unset": ["port"]}, None, "taken-away"),
        ("child", ("bind",), "0.0.0.0", {"bind": "0.0.0.0"}, "0.0.0.0", "own"),
        ("child", ("tags",), "mine 'two words'", {"tags": ["mine", "two words"]}, ["mine", "two words"], "own"),
        ("child", args("cuda_graph_bs_decode"), "1 2", {"args": {"cuda_graph_bs_decode": [1, 2]}}, [1, 2], "own"),
        ("vllm", ("args", "speculative_config", "num_speculative_tokens"), "5",
         {"args": {"speculative_config": {"method": "eagle3", "model": "/m/draft", "num_speculative_tokens": 5}}},
         5, "own"),
        ("vllm", ("args", "speculative_config", "model"), "",
         {"args": {"speculative_config": {"method": "eagle3", "num_speculative_tokens": 3}}}, None, "taken-away"),
        ("vllm", args("enable_prefix_caching"), "off",
         {"unset": ["args.enable_prefix_caching"], "args": {"no_enable_prefix_caching": True}}, False, "own"),
        ("vllm", args("async_scheduling"), "on",
         {"unset": ["args.no_async_scheduling"], "args": {"async_scheduling": True}}, True, "own"),
        ("llama", args("c"), "8192", {"args": {"c": 8192}}, 8192, "own"),
        ("llama", args("flash_attn"), "auto", {"args": {"flash_attn": "auto"}}, "auto", "own"),
    ],
)  # fmt: skip
def test_an_edit_makes_the_layer_that_a_person_would_write(
    name: str, path: FieldPath, text: str, own: dict[str, Any], value: object, origin: str
) -> None:
    model = model_of(name)
    assert put(model, path, text) == ""
    assert model.own == {"extends": name, **own}
    after = view(model, *path)
    assert (after.value, after.origin) == (value, origin)
    # What is shown is what a launch of the layer would be.
    assert seen(model.base, model.own) == model.view.profile
    assert model.unsaved == bool(own)


def test_a_value_that_the_parent_sets_for_this_host_alone_is_written_for_this_host() -> None:
    model = model_of("child", host="gpu-b")
    assert view(model, "args", "mem_fraction_static").value == 0.7
    put(model, args("mem_fraction_static"), "0.75")
    assert model.own == {"extends": "child", "hosts": {"gpu-b": {"args": {"mem_fraction_static": 0.75}}}}
    assert view(model, "args", "mem_fraction_static").value == 0.75
    put(model, args("mem_fraction_static"), "")
    assert model.own["hosts"] == {"gpu-b": {"unset": ["args.mem_fraction_static"]}}
    assert view(model, "args", "mem_fraction_static").value is None
    model.put_back(view(model, "args", "mem_fraction_static").field)
    assert model.own == {"extends": "child"}


def test_putting_back_goes_to_the_parents_then_to_none_then_to_the_parents() -> None:
    model = model_of("child")
    field = view(model, "args", "speculative_num_steps").field
    put(model, field.path, "7")
    seen_values = []
    for _ in range(3):
        model.put_back(field)
        now = view(model, "args", "speculative_num_steps")
        seen_values.append((now.value, now.origin))
    assert seen_values == [(3, "parent"), (None, "taken-away"), (3, "parent")]


def test_undo_and_redo_go_step_by_step_and_a_new_edit_forgets_what_was_undone() -> None:
    model = model_of("child")
    states = [model.own]
    for text in ("4", "5", "6"):
        put(model, args("speculative_num_steps"), text)
        states.append(model.own)
    assert [bool(model.undo()) for _ in range(4)] == [True, True, True, False]
    assert model.own == states[0]
    assert not model.unsaved
    assert [bool(model.redo()) for _ in range(4)] == [True, True, True, False]
    assert model.own == states[3]
    model.undo()
    put(model, args("page_size"), "1")
    assert model.redo() == ""
    model.undo()
    assert model.own == states[2]


def test_a_thousand_steps_do_not_grow_without_end() -> None:
    model = model_of("child")
    for number in range(1000):
        model.replace({"extends": "child", "args": {"page_size": number}}, str(number))
    undone = 0
    while model.undo():
        undone += 1
    assert 100 <= undone <= 500


@pytest.mark.parametrize(
    ("name", "path", "by", "value"),
    [
        ("child", args("speculative_num_steps"), 1, 4),
        ("child", args("speculative_num_steps"), -1, 2),
        ("child", args("mem_fraction_static"), 1, 0.89),
        ("child", args("mem_fraction_static"), -1, 0.87),
        ("child", args("speculative_algorithm"), 1, "NEXTN"),
        ("child", args("dtype"), 1, "auto"),
        ("child", args("dtype"), -1, "float32"),
        ("child", args("enable_metrics"), 1, True),
        ("child", args("trust-remote-code"), 1, None),
        ("vllm", args("enable_prefix_caching"), 1, False),
        ("vllm", args("gpu_memory_utilization"), 1, 0.93),
        ("llama", args("threads"), 1, 0),
        ("child", args("max_total_tokens"), 1, "not at all"),
        ("child", ("model",), 1, "not at all"),
    ],
)
def test_left_and_right_go_to_the_next_value(name: str, path: FieldPath, by: int, value: object) -> None:
    model = model_of(name)
    field = model.view.by_path[path].field
    assert model.step(field, by) == (value != "not at all")
    if value != "not at all":
        assert view(model, *path).value == value


def test_the_last_launch_and_the_rules_stand_beside_the_values() -> None:
    model = model_of("child", last={"speculative_num_steps": 5, "mem_fraction_static": 0.9})
    steps = view(model, "args", "speculative_num_steps")
    assert (steps.value, steps.last_value, steps.differs_from_last) == (3, 5, True)
    assert not view(model, "args", "tp").differs_from_last
    assert view(model, "args", "page_size").ran == "1"
    put(model, args("speculative_num_steps"), "4")
    tokens = view(model, "args", "speculative_num_draft_tokens")
    assert (tokens.becomes, tokens.level) == ("5", "overridden")
    changes = {one.key: (one.before, one.after) for one in model.view.against_last}
    assert changes == {"speculative_num_steps": ("5", "4"), "mem_fraction_static": ("0.9", "0.88")}
    assert [(one.key, one.before, one.after) for one in model.view.against_parent] == [
        ("speculative_num_steps", "3", "4")
    ]


def test_of_two_tables_the_keys_that_differ_are_said() -> None:
    model = model_of("vllm")
    put(model, ("args", "speculative_config", "num_speculative_tokens"), "5")
    assert [(one.key, one.before, one.after) for one in model.view.against_parent] == [
        ("speculative_config.num_speculative_tokens", "3", "5")
    ]
    assert view(model, "args", "enable_expert_parallel").field.default == "off"


def test_a_remarks_fix_is_one_step_and_mends_it() -> None:
    model = model_of("child")
    put(model, args("speculative_num_steps"), "4")
    remark = next(one for one in model.view.remarks if one.level == "overridden" and "steps + 1" in one.text)
    assert remark.paths[0] == args("speculative_num_steps")
    assert model.apply(remark)
    assert view(model, "args", "speculative_num_draft_tokens").value == 5
    assert remark.text not in [one.text for one in model.view.remarks]
    model.undo()
    assert view(model, "args", "speculative_num_draft_tokens").value == 4


@pytest.mark.parametrize(
    ("name", "own", "level", "said", "fixed"),
    [
        ("child", {"args": {"speculative_num_step": 4}}, "warning", "silently take", {"speculative_num_steps": 4}),
        ("child", {"args": {"specultive_num_steps": 4}}, "error", "no such flag", {"speculative_num_steps": 4}),
        ("child", {"args": {"disable_cuda_graph": True}}, "warning", "deprecated", None),
        ("child", {"args": {"cuda_graph_max_bs": 8}}, "warning", "deprecated", None),
        ("child", {"args": {"speculative": 4}}, "error", "ambiguous", None),
        ("child", {"args": {"dtype": "bfloat"}}, "error", "takes auto", {"dtype": "float"}),
        ("child", {"args": {"tp": "eight"}}, "error", "a whole number is wanted", None),
        ("llama", {"args": {"np": 2}}, "error", "the flag is", {"parallel": 2}),
        ("llama", {"args": {"draft_max": 8}}, "error", "", None),
    ],
)
def test_flags_are_marked_and_their_replacement_is_one_key(
    name: str, own: dict[str, Any], level: str, said: str, fixed: dict[str, Any] | None
) -> None:
    model = model_of(name)
    model.replace({"extends": name, **own}, "as text")
    found = [one for one in model.view.remarks if one.level == level and said in one.text]
    assert found, [f"{one.level}: {one.text}" for one in model.view.remarks]
    if fixed is not None:
        assert model.apply(found[0])
        profile = model.view.profile
        assert profile is not None
        for key, value in fixed.items():
            assert profile.args[key] == value
        assert found[0].text not in [one.text for one in model.view.remarks]


def test_what_makes_no_profile_is_said_and_can_be_mended() -> None:
    model = model_of("child")
    put(model, ("model",), "${no_such}/x")
    shown = model.view
    assert shown.profile is None
    assert shown.error is not None
    assert "no_such" in shown.error.what
    assert view(model, "model").text == "${no_such}/x"
    put(model, ("model",), "/m/x")
    assert model.view.profile is not None


def test_secrets_are_shown_by_their_place_and_never_taken_as_a_value() -> None:
    model = model_of("child")
    secret = view(model, "secrets", "HF_TOKEN")
    assert secret.value == "file:~/.hub-token"
    assert put(model, ("secrets", "HF_TOKEN"), "hf_abcdef") != ""
    model.show(("env", "WANDB_API_KEY"))
    wrong = put(model, ("env", "WANDB_API_KEY"), "s3cr3t-value")
    assert "looks like a secret" in wrong
    assert "s3cr3t-value" not in wrong
    assert "s3cr3t-value" not in str(model.own)
    assert put(model, ("env", "WANDB_API_KEY"), "${secret:WANDB_API_KEY}") == ""
    assert any(unit.text == "WANDB_API_KEY=***" for unit in model.view.units)
    model.replace({"extends": "child", "args": {"api_key": "s3cr3t-value"}}, "as text")
    assert model.view.error is not None
    assert all("s3cr3t-value" not in unit.text for unit in model.view.units)


@pytest.mark.parametrize("name", ["child", "vllm", "llama"])
def test_a_state_is_judged_well_within_the_time_of_a_key(name: str) -> None:
    model = model_of(name, last={})
    own = {"extends": name, "args": {"page_size": 32}}
    model.view_of(own)
    took = []
    for _ in range(5):
        began = time.process_time()
        model.view_of(own)
        took.append(time.process_time() - began)
    assert min(took) < 0.05, took
