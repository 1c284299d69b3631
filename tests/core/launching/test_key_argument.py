"""A key as an argument: refused with the reason, by what is better; allowed only by a person's word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from specconsole.core.launching.command import build_argv, build_spec, override, profile_of, show
from specconsole.core.launching.inherit import Layer, resolve
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.profile_table import profile_table
from specconsole.core.launching.script import server_script
from specconsole.core.launching.server_key import server_key
from specconsole.errors import EXIT_REFUSED, BadInputError, ConsentNeededError


def profile(engine: str = "sglang", **more: Any) -> Profile:
    data: dict[str, Any] = {
        "engine": engine, "model": "/m", "args": {"api_key": "${secret:SERVER_KEY}"},
        "secrets": {"SERVER_KEY": "file:~/.key"}, **more,
    }  # fmt: skip
    return resolve([Layer("p", data, "", "p.toml")])


@pytest.mark.parametrize(
    ("engine", "better"),
    [("sglang", "--allow-key-argument"), ("vllm", "VLLM_API_KEY"), ("llamacpp", "LLAMA_API_KEY")],
)
def test_it_is_refused_with_the_reason_and_what_is_better(engine: str, better: str) -> None:
    with pytest.raises(ConsentNeededError, match="every user of the host sees arguments") as caught:
        build_argv(profile(engine), 30000)
    assert better in caught.value.try_
    assert "--allow-key-argument" in caught.value.try_
    assert (caught.value.exit_code, caught.value.subject) == (EXIT_REFUSED, "p")


def test_with_a_persons_word_the_host_fills_it_in_and_nothing_else_holds_it() -> None:
    allowed = profile(allow_key_argument=True)
    assert profile_table(allowed)["allow_key_argument"] is True
    spec = build_spec(allowed, launch_id="x", port=1, owner="", client_id="", now_s=0, version="", python=None)
    assert "${secret:SERVER_KEY}" in spec.argv
    assert '--api-key "$SERVER_KEY" ' in server_script(spec)
    assert show(spec.argv).count("***") == 1
    assert profile_of(spec).allow_key_argument  # a relaunch need not ask again
    assert server_key({"SERVER_KEY": "abc", "OTHER_API_KEY": "x"}, spec.settings) == "abc"


def test_the_words_of_a_secret_elsewhere_stay_words() -> None:
    spec = build_spec(
        replace(profile(allow_key_argument=True), command=("echo", "${secret:OTHER}", "${secret:x y}")),
        launch_id="x", port=1, owner="", client_id="", now_s=0, version="", python=None,
    )  # fmt: skip
    assert "'${secret:OTHER}' '${secret:x y}'" in server_script(spec)
    not_allowed = replace(spec, key_argument_allowed=False)
    assert "'${secret:SERVER_KEY}'" in server_script(not_allowed)


@pytest.mark.parametrize("value", ["sk-secret-value", "x${secret:SERVER_KEY}", True])
def test_a_key_that_is_written_out_is_never_taken_and_never_repeated(value: Any) -> None:
    for allow in (False, True):
        with pytest.raises(BadInputError, match="written out here") as caught:
            build_argv(replace(profile(), args={"api-key": value}, allow_key_argument=allow), 1)
        assert str(value) not in str(caught.value) or value is True


def test_a_secret_that_nobody_named_is_no_key() -> None:
    with pytest.raises(BadInputError, match="secret NOWHERE is not known"):
        build_argv(override(profile(allow_key_argument=True), {"api_key": "${secret:NOWHERE}"}), 1)


def test_the_switch_is_a_switch() -> None:
    with pytest.raises(BadInputError, match="must be true or false"):
        profile(allow_key_argument="yes")
