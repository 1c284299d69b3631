"""Profiles: what is written wrong is named with file, line, key and the nearest known key."""

from __future__ import annotations

import json
import tomllib

import pytest

from specconsole.core.launching.command import build_argv, build_env, build_spec, flag_words, override, profile_of, show
from specconsole.core.launching.profile import Profile, decode_profile
from specconsole.core.launching.spec import LaunchSpec, decode_spec
from specconsole.core.launching.toml_place import line_of, nearest
from specconsole.errors import BadInputError

WHOLE = """
name = "eagle3"           # a comment
engine = "sglang"
description = "EAGLE-3, chain of 3"
tags = ["eagle3", "h200"]
environment = "~/venvs/sglang"
host = "gpu-a"
port = 30000
model = "/models/target"
draft_model = "/models/draft"
grace_s = 30

[args]
mem_fraction_static = 0.84
speculative_num_steps = 3
trust_remote_code = true
enable_metrics = false
cuda_graph_bs = [1, 2, 4]
json_thing = { a = 1 }

[env]
NCCL_DEBUG = "WARN"
OMP_NUM_THREADS = 4

[secrets]
HF_TOKEN = "env:HF_TOKEN"

[health]
timeout_s = 9.5
"""


def decode(text: str) -> Profile:
    return decode_profile(tomllib.loads(text), text, "mine.toml", name="mine")


def test_a_whole_profile() -> None:
    profile = decode(WHOLE)
    assert (profile.name, profile.engine, profile.port, profile.host) == ("eagle3", "sglang", 30000, "gpu-a")
    assert profile.env == {"NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "4"}
    assert profile.health.timeout_s == 9.5
    assert list(build_argv(profile, 30000)) == [
        "python3", "-m", "sglang.launch_server", "--model-path", "/models/target",
        "--speculative-draft-model-path", "/models/draft", "--mem-fraction-static", "0.84",
        "--speculative-num-steps", "3", "--trust-remote-code", "--cuda-graph-bs", "1", "2", "4",
        "--json-thing", '{"a":1}', "--host", "127.0.0.1", "--port", "30000",
    ]  # fmt: skip
    env = build_env(profile)
    assert env["PYTHONUNBUFFERED"] == "1"
    assert "HF_TOKEN" not in env


@pytest.mark.parametrize(
    ("text", "where", "what", "try_"),
    [
        ('engine = "vllm"\nprot = 1\n', "mine.toml:2", "`prot` is not a known key", "did you mean `port`?"),
        ('engine = "vllm"\n[healht]\npath = "/x"\n', "mine.toml:2", "`healht`", "did you mean `health`?"),
        ('engine = "vllm"\n[health]\n\ntimeout = 3\n', "mine.toml:4", "`health.timeout`", "did you mean `timeout_s`?"),
        ('engine = "vllm"\nport = "80"\n', "mine.toml:2", '`port` must be a whole number, not the text "80"', ""),
        ('engine = "vllm"\nport = true\n', "mine.toml:2", "`port` must be a whole number, not the switch true", ""),
        ('engine = "vllm"\nport = 70000\n', "mine.toml:2", "from 0 to 65535", ""),
        ('engine = "vllm"\n\n\ntags = "a"\n', "mine.toml:4", '`tags` must be a list of texts, not the text "a"', ""),
        ('engine = "vllm"\nargs = 3\n', "mine.toml:2", "`args` must be a table", ""),
        ('engine = "vllm"\n[env]\nA = [1]\n', "mine.toml:3", "`env.A`", ""),
        ('engine = "vlm"\n', "mine.toml:1", '`engine` is "vlm"', "did you mean vllm?"),
        ('name = "x"\n', "mine.toml", "`engine` is missing", 'engine = "sglang"'),
        ('engine = "other"\n', "mine.toml", "`command` is missing", "command ="),
        (
            'engine = "vllm"\n[secrets]\nHF_TOKEN = "hf_abc"\n',
            "mine.toml:3",
            "where the value is found",
            "env:HF_TOKEN",
        ),
        ('engine = "vllm"\n[env]\nHF_TOKEN = "hf_abc"\n', "mine.toml:3", "looks like a secret", "env:HF_TOKEN"),
        ('engine = "vllm"\ngrace_s = -1\n', "mine.toml:2", "`grace_s` must be seconds", ""),
        ('engine = "vllm"\nbinary = "a"\ncommand = ["b"]\n', "mine.toml:2", "can't both be given", ""),
    ],
)
def test_what_is_wrong_is_named(text: str, where: str, what: str, try_: str) -> None:
    with pytest.raises(BadInputError) as caught:
        decode(text)
    assert caught.value.where == where
    assert what in caught.value.what
    assert try_ in caught.value.try_
    assert "hf_abc" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_secret_on_the_command_line_is_refused() -> None:
    profile = decode('engine = "vllm"\n[args]\napi_key = "sk-123"\n')
    with pytest.raises(BadInputError, match="would show in `ps`") as caught:
        build_argv(profile, 1)
    assert "sk-123" not in str(caught.value)


def test_settings_can_be_changed_and_taken_away() -> None:
    profile = decode(WHOLE)
    changed = override(
        profile, {"mem-fraction-static": 0.8, "port": 0, "env.NCCL_DEBUG": None, "trust_remote_code": None}
    )
    assert changed.args["mem_fraction_static"] == 0.8
    assert "trust_remote_code" not in changed.args
    assert "NCCL_DEBUG" not in changed.env
    assert changed.port is None
    assert profile.args["mem_fraction_static"] == 0.84
    with pytest.raises(BadInputError, match="`port` can't be 'x'"):
        override(profile, {"port": "x"})


def test_flags_follow_the_kind_of_value() -> None:
    assert flag_words("c", 4096) == ["-c", "4096"]
    assert flag_words("--spec-type", "x") == ["--spec-type", "x"]
    assert flag_words("on", value=True) == ["--on"]
    assert flag_words("off", value=False) == []
    assert flag_words("none", []) == []


def test_a_launch_is_its_own_profile_again() -> None:
    profile = decode(WHOLE)
    spec = spec_of(profile)
    again = profile_of(decode_spec(spec.to_json_line()))
    assert build_argv(again, 30000) == spec.argv
    assert build_env(again) == dict(spec.env)
    assert again.secrets == {"HF_TOKEN": "env:HF_TOKEN"}


def spec_of(profile: Profile) -> LaunchSpec:
    return build_spec(
        profile, launch_id="i", port=30000, owner="a@b", client_id="c", now_s=1.0, version="0", python=None
    )


def test_python_is_only_for_this_machine() -> None:
    profile = decode('engine = "other"\ncommand = ["{python}", "-m", "x"]\n')
    with pytest.raises(BadInputError, match="another host"):
        spec_of(profile)


def test_a_cut_request_is_an_error_and_no_traceback() -> None:
    line = spec_of(decode(WHOLE)).to_json_line()
    for size in (0, 1, len(line) // 2, len(line) - 1):
        with pytest.raises(BadInputError):
            decode_spec(line[:size])
    with pytest.raises(BadInputError, match="newer"):
        decode_spec(json.dumps({**json.loads(line), "schema": 99}))
    assert decode_spec(json.dumps({**json.loads(line), "from_the_future": 1})).port == 30000


def test_a_shown_command_hides_secrets() -> None:
    assert show(["s", "--api-key", "abc", "--x=1", "--token=t"]) == "s --api-key '***' --x=1 '--token=***'"
    assert "hush" not in show(["s", "a=hushhush"], ["hushhush"])


def test_lines_of_keys_are_found() -> None:
    text = '[args]\n"a-b" = 1\n[x.y]\nz = 1\n[q]\nw.e = 2\n'
    assert line_of(text, ("args", "a-b")) == 2
    assert line_of(text, ("x", "y", "z")) == 4
    assert line_of(text, ("q", "w", "e")) == 6
    assert line_of(text, ("nope",)) is None
    assert nearest("modle", ("model", "port")) == "model"
    assert nearest("zzz", ("model", "port")) is None
