"""Profiles that build on others: what wins, and where an error is said to be."""

from __future__ import annotations

import tomllib

import pytest

from specconsole.core.launching.inherit import Layer, resolve
from specconsole.core.launching.profile import Profile
from specconsole.errors import BadInputError

BASE = """
engine = "sglang"
description = "base"
model = "${model_dir}/m"
command = ["python3", "-m", "sglang.launch_server"]

[variables]
model_dir = "${root}/models"
root = "/data"

[args]
mem-fraction-static = 0.8
page_size = 1
name = "a$${root}b"

[env]
NCCL_DEBUG = "WARN"

[hosts."gpu-a".variables]
root = "/nvme"
"""


def layer(name: str, text: str) -> Layer:
    return Layer(name, tomllib.loads(text), text, f"{name}.toml")


def made(*texts: str) -> Profile:
    """The nearest layer first."""
    return resolve([layer(f"p{number}", text) for number, text in enumerate(texts)])


def test_tables_are_merged_key_by_key_and_the_rest_replaced() -> None:
    profile = made(
        'extends = "p1"\nunset = ["args.page-size"]\nbinary = "mine"\n'
        '[args]\nmem_fraction_static = 0.7\ntp_size = 2\n[env]\nA = "1"',
        BASE,
    )
    assert profile.args == {"mem-fraction-static": 0.7, "name": "a${root}b", "tp_size": 2}
    assert profile.env == {"NCCL_DEBUG": "WARN", "A": "1"}
    assert (profile.name, profile.engine, profile.description) == ("p0", "sglang", "base")
    assert profile.command == ("mine",)
    assert profile.extends == ("p1",)


def test_a_variable_of_the_child_reaches_what_the_parent_wrote() -> None:
    assert made(BASE).model == "/data/models/m"
    assert made('extends = "p1"\n[variables]\nroot = "/x"', BASE).model == "/x/models/m"


def test_a_hosts_part_comes_on_top_of_all_layers() -> None:
    profile = made('extends = "p1"\n[variables]\nroot = "/x"\n[hosts."gpu-b".args]\ntp_size = 8', BASE)
    assert profile.on("gpu-a").model == "/nvme/models/m"
    assert profile.on("gpu-b").args["tp_size"] == 8
    assert profile.on("gpu-b").model == "/x/models/m"
    assert profile.on("elsewhere").args == profile.args
    assert "tp_size" not in profile.args


def test_a_secret_is_the_whole_value_of_a_variable() -> None:
    profile = made(
        'engine = "vllm"\n[secrets]\nhub = "file:~/hub"\nPLAIN = "env:PLAIN"\n'
        '[env]\nHF_TOKEN = "${secret:hub}"\nVLLM_API_KEY = "${secret:VLLM_API_KEY}"\nX = "1"\nY = "$${secret:X}"'
    )
    assert profile.secrets == {"PLAIN": "env:PLAIN", "HF_TOKEN": "file:~/hub", "VLLM_API_KEY": "env:VLLM_API_KEY"}
    assert profile.env == {"X": "1", "Y": "${secret:X}"}


@pytest.mark.parametrize(
    ("child", "where", "what", "try_"),
    [
        ('extends = "p1"\nmodle = "x"', "p0.toml:2", "`modle` is not a known key", "`model`"),
        ('extends = "p1"\n[args]\nx = "${modl_dir}"', "p0.toml:3", "uses ${modl_dir}", "${model_dir}"),
        ('extends = "p1"\n[variables]\nroot = "${model_dir}"', "p1.toml:8", "circle: model_dir -> root", ""),
        ('extends = "p1"\nunset = ["args.page_siz"]', "p0.toml:2", "which no parent sets", "args.page_size"),
        ('extends = 3', "p0.toml:1", "`extends` must be", ""),
        ('extends = "p1"\n[hosts.a]\nprot = 1', "p0.toml:3", "`hosts.a.prot` is not a known key", "`port`"),
        ('extends = "p1"\n[hosts.a]\nport = "x"', "p0.toml:3", "`hosts.a.port` must be a whole number", ""),
        ('extends = "p1"\n[hosts.a]\nengine = "vllm"', "p0.toml:3", "can't differ by host", ""),
        ('extends = "p1"\nhosts = 1', "p0.toml:2", "must be a table for each host", ""),
        ('extends = "p1"\n[variables]\nx = []', "p0.toml:3", "must be text or a number", ""),
        ('extends = "p1"\n[args]\nserved_model_name = "${secret:K}"', "p0.toml:3", "would show in `ps`", "[env]"),
        ('extends = "p1"\n[env]\nX = "a${secret:K}"', "p0.toml:3", "no place for a secret", "the whole value"),
        ('extends = "p1"\n[env]\nHF_TOKEN = "hf_x"', "p0.toml:3", "looks like a secret", "[secrets]"),
        ("[args]\nx = 1", "p0.toml", "`engine` is missing", ""),
    ],
)  # fmt: skip
def test_an_error_names_the_file_that_it_stands_in(child: str, where: str, what: str, try_: str) -> None:
    layers = [layer("p0", child)] + ([layer("p1", BASE)] if "extends" in child else [])
    with pytest.raises(BadInputError) as caught:
        resolve(layers)
    assert caught.value.where == where
    assert what in caught.value.what
    assert try_ in caught.value.try_
