"""Every shipped profile resolves, its version's rules and flags find nothing wrong, and its command is whole."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import pytest

import specconsole
from specconsole.adapters.toml_files import ProfileFiles
from specconsole.assets import shipped_files, shipped_folder
from specconsole.core.launching.command import build_argv, build_env
from specconsole.core.launching.engine_flags import check_flags
from specconsole.core.launching.engine_settings import ENGINE_FLAGS, judge_profile
from specconsole.core.launching.help_text import FlagCatalogue, parse_help
from specconsole.core.launching.versions import parse_version

SGLANG = "python3 -m sglang.launch_server --model-path /models/target"
ON = " --trust-remote-code --mem-fraction-static 0.85 --max-running-requests 48 --enable-metrics"
CHAIN = " --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
TREE = " --speculative-num-steps 4 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16"
HERE = " --host 127.0.0.1 --port 30000"
BIG = (
    " --trust-remote-code --mem-fraction-static {} --max-running-requests 48 --enable-metrics --tp-size 8"
    " --context-length 32768 --disable-custom-all-reduce --dist-timeout 3600 --watchdog-timeout 1800"
)
BIG_DRAFT = " --speculative-draft-model-path /models/draft-1t-eagle3"
VLLM = "vllm serve --model /models/target --trust-remote-code --gpu-memory-utilization 0.9"
COMMANDS = {
    "sglang-baseline": SGLANG + ON + HERE,
    "sglang-eagle3-chain": SGLANG + " --speculative-draft-model-path /models/draft-eagle3" + ON
    + " --speculative-algorithm EAGLE3" + CHAIN + HERE,
    "sglang-eagle3-tree": SGLANG + " --speculative-draft-model-path /models/draft-eagle3" + ON
    + " --speculative-algorithm EAGLE3" + TREE + HERE,
    "sglang-spec-v2": SGLANG + " --speculative-draft-model-path /models/draft-eagle3" + ON
    + " --speculative-algorithm EAGLE3" + CHAIN + HERE,
    "sglang-mtp": SGLANG + ON + " --speculative-algorithm NEXTN" + CHAIN + HERE,
    "sglang-ngram": SGLANG + ON + " --speculative-algorithm NGRAM --speculative-num-draft-tokens 12" + HERE,
    "sglang-standalone": SGLANG + " --speculative-draft-model-path /models/draft-small" + ON
    + " --speculative-algorithm STANDALONE" + CHAIN + HERE,
    "sglang-1t-baseline": SGLANG + "-1t" + BIG.format(0.88) + HERE,
    "sglang-1t-eagle3-chain": SGLANG + "-1t" + BIG_DRAFT + BIG.format(0.82)
    + " --speculative-algorithm EAGLE3" + CHAIN + HERE,
    "sglang-1t-eagle3-tree": SGLANG + "-1t" + BIG_DRAFT + BIG.format(0.82)
    + " --speculative-algorithm EAGLE3" + TREE + HERE,
    "vllm-baseline": VLLM + HERE,
    "vllm-eagle3": VLLM
    + ' --speculative-config {"method":"eagle3","model":"/models/draft-eagle3","num_speculative_tokens":3}' + HERE,
    "vllm-ngram": VLLM + ' --speculative-config {"method":"ngram","num_speculative_tokens":4,'
    '"prompt_lookup_min":2,"prompt_lookup_max":4}' + HERE,
    "vllm-draft": VLLM
    + ' --speculative-config {"method":"draft_model","model":"/models/draft-small","num_speculative_tokens":3}' + HERE,
    "llamacpp-draft": "llama-server -m /models/target.gguf -md /models/draft.gguf --ctx-size 8192 --parallel 2"
    " --spec-type draft-simple --spec-draft-n-max 4 --metrics" + HERE,
}  # fmt: skip


@cache
def catalogue(built_in: str) -> FlagCatalogue:
    packed = (Path(specconsole.__file__).parent / "catalogues" / f"{built_in}.txt.gz").read_bytes()
    return FlagCatalogue(parse_help(gzip.decompress(packed).decode()), built_in)


def test_none_is_left_out() -> None:
    assert {name for name in shipped_files("profiles") if not name.startswith("demo")} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_shipped_profile_is_whole(name: str) -> None:
    profile = ProfileFiles([shipped_folder("profiles")]).read(name)
    assert " ".join(build_argv(profile, 30000)) == COMMANDS[name]
    assert profile.description
    version = parse_version(profile.engine_version)
    assert version is not None
    worst = [verdict for verdict in judge_profile(profile, version) if verdict.level != "note"]
    assert worst == []
    flags = ENGINE_FLAGS[profile.engine]
    assert check_flags(flags, catalogue(flags.built_in), profile.args, certain=True) == ()


def test_the_big_family_carries_what_people_set() -> None:
    files = ProfileFiles([shipped_folder("profiles")])
    env = build_env(files.read("sglang-1t-eagle3-tree"))
    assert env["EAGLE3_PROFILE"] == "1"
    assert {"NCCL_ALGO", "NCCL_DEBUG", "NCCL_NVLS_ENABLE", "GLOO_SOCKET_IFNAME"} <= set(env)
    assert "EAGLE3_PROFILE" not in build_env(files.read("sglang-1t-baseline"))
    assert build_env(files.read("sglang-spec-v2"))["SGLANG_ENABLE_SPEC_V2"] == "1"
