"""Profiles as layers, and the flags of sampled servers, for the form's tests."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from specconsole.adapters.flag_store import built_in_catalogue
from specconsole.core.launching.engine_settings import ENGINE_FLAGS
from specconsole.core.launching.form_fields import FlagIndex
from specconsole.core.launching.form_layer import base_of
from specconsole.core.launching.form_model import FormModel, LastLaunch
from specconsole.core.launching.form_remarks import Learned
from specconsole.core.launching.inherit import Layer, resolve
from specconsole.core.launching.versions import parse_version

BASE = """\
engine = "sglang"
engine_version = "0.5.17"
model = "${model_dir}/target"
port = 30000
[variables]
model_dir = "/m"
[args]
tp = 8
mem_fraction_static = 0.88
trust-remote-code = true
cuda_graph_bs_decode = [1, 2, 4]
[env]
NCCL_ALGO = "Tree"
HF_TOKEN = "${secret:hub}"
[secrets]
hub = "file:~/.hub-token"
[hosts.gpu-b.args]
mem_fraction_static = 0.7
"""
CHILD = """\
extends = "base"
draft_model = "${model_dir}/draft"
[args]
speculative_algorithm = "EAGLE3"
speculative_num_steps = 3
speculative_eagle_topk = 1
speculative_num_draft_tokens = 4
"""
VLLM = """\
engine = "vllm"
engine_version = "0.32.0"
model = "/m/target"
[args]
enable_prefix_caching = true
no_async_scheduling = true
[args.speculative_config]
method = "eagle3"
model = "/m/draft"
num_speculative_tokens = 3
"""
LLAMA = """\
engine = "llamacpp"
engine_version = "b10434"
model = "/m/target.gguf"
[args]
c = 4096
np = 4
flash_attn = "on"
"""


def layer(name: str, text: str) -> Layer:
    return Layer(name, tomllib.loads(text), text, f"{name}.toml")


LAYERS: Mapping[str, tuple[Layer, ...]] = {
    "base": (layer("base", BASE),),
    "child": (layer("child", CHILD), layer("base", BASE)),
    "vllm": (layer("vllm", VLLM),),
    "llama": (layer("llama", LLAMA),),
}


@cache
def index_of(engine: str) -> FlagIndex:
    return FlagIndex(built_in_catalogue(ENGINE_FLAGS[engine]))


def model_of(
    name: str, *, host: str = "gpu-a", last: Mapping[str, Any] | None = None, certain: bool = True
) -> FormModel:
    """A form over one of the profiles above, with the flags of the sampled version; `last`: its args then."""
    layers = LAYERS[name]
    base = base_of(name, host, layers)
    assert base.profile is not None
    was = None
    if last is not None:
        profile = resolve([Layer("last", {"extends": name, "args": dict(last)}, "", "last"), *layers]).on(host)
        was = LastLaunch("L9", profile, host, None, {"page_size": 1, "tp_size": 8})
    model = FormModel(base, {"extends": name}, last=was, python="/venv/bin/python")
    engine = base.profile.engine
    version = parse_version(ENGINE_FLAGS[engine].built_in.partition("-")[2])
    model.learn(Learned(index_of(engine), version, certain))
    return model
