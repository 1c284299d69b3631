"""A launch's profile as a layer over its profile: whatever was changed then, the layer makes it again."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specconsole.core.launching.form_layer import base_of, layer_of, seen
from specconsole.core.launching.inherit import Layer, resolve
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.profile_table import profile_table
from tests.core.launching.form_cases import LAYERS, model_of


def wanted_of(name: str, host: str, changes: dict[str, Any]) -> Profile:
    """A profile with some args, variables and keys changed; None takes one away."""
    base = base_of(name, host, LAYERS[name]).profile
    assert base is not None
    args, env = dict(base.args), dict(base.env)
    for key, value in changes.items():
        table = env if key.isupper() else args
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return replace(base, args=args, env=env)


CHANGES = st.dictionaries(
    st.sampled_from(["tp", "mem_fraction_static", "page_size", "speculative_num_steps", "cuda_graph_bs_decode",
                     "NCCL_ALGO", "OMP_NUM_THREADS"]),
    st.one_of(st.none(), st.integers(1, 99), st.text("a${}x/ '\"\n", min_size=1, max_size=8)),
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(changes=CHANGES, host=st.sampled_from(["gpu-a", "gpu-b"]))
def test_the_layer_of_a_launch_makes_its_profile_again(changes: dict[str, Any], host: str) -> None:
    changes = {key: str(value) if key.isupper() and value is not None else value for key, value in changes.items()}
    base = base_of("child", host, LAYERS["child"])
    wanted = wanted_of("child", host, changes)
    own = layer_of(base, wanted)
    assert profile_table(seen(base, own)) == profile_table(wanted)
    # Also after it was written to a file and read again.
    text = tomli_w.dumps(own)
    again = resolve([Layer("saved", tomllib.loads(text), text, "saved.toml"), *LAYERS["child"]]).on(host)
    assert profile_table(replace(again, name="child")) == profile_table(wanted)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["3", "0.5", "on", "", "x y", "${model_dir}/z"]),
                          st.sampled_from(["set", "back", "step", "undo"])), max_size=12))  # fmt: skip
def test_whatever_is_edited_the_file_says_what_is_shown(edits: list[tuple[int, str, str]]) -> None:
    model = model_of("child", host="gpu-b")
    first = model.own
    for place, text, what in edits:
        one = model.view.fields[place % len(model.view.fields)].field
        if what == "set":
            model.set_text(one, text)
        elif what == "back":
            model.put_back(one)
        elif what == "step":
            model.step(one, 1)
        else:
            model.undo()
        shown = model.view.profile
        if shown is not None:
            written = tomllib.loads(tomli_w.dumps(model.own))
            assert profile_table(seen(model.base, written)) == profile_table(shown)
    while model.undo():
        pass
    assert model.own == first


def test_secrets_are_not_taken_over_from_a_launch() -> None:
    base = base_of("child", "gpu-a", LAYERS["child"])
    wanted = wanted_of("child", "gpu-a", {})
    own = layer_of(base, replace(wanted, secrets={"HF_TOKEN": "command:rm -rf /"}))
    assert own == {"extends": "child"}


@pytest.mark.parametrize("host", ["gpu-a", "gpu-b"])
def test_a_profile_that_stands_alone_is_said_whole(host: str) -> None:
    wanted = wanted_of("child", host, {"page_size": 4})
    base = base_of("gone", host, ())
    own = layer_of(base, wanted)
    assert profile_table(replace(seen(base, own), name="x", secrets={})) == profile_table(
        replace(wanted, name="x", secrets={})
    )
