"""What a launch needs by its settings: ports, GPUs, host memory; and a look at files that was cut."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specconsole.core.launching.checkpoint import parse_checkpoint
from specconsole.core.launching.gguf_header import GgufHead
from specconsole.core.launching.model_check import (
    GpuRoom,
    algorithm,
    draft_path,
    gpus_used,
    judge_gpu_memory,
    judge_host_memory,
    ports_beside,
)
from specconsole.core.launching.model_files import Model, read_model
from specconsole.core.launching.preflight import HostMemory
from specconsole.core.launching.profile import Profile

GIB = 1 << 30


@pytest.mark.parametrize(
    ("engine", "args", "port", "ports"),
    [
        ("sglang", {}, 30000, []),
        ("sglang", {"nccl_port": 4000}, 30000, [4000]),
        ("sglang", {"dist_init_addr": "10.0.0.1:5000"}, 30000, [5000]),
        ("sglang", {"dist_init_addr": "10.0.0.1:5000", "node_rank": 1}, 30000, []),
        ("sglang", {"enable_dp_attention": True, "dp": 2}, 30000, list(range(30233, 30240))),
        ("sglang", {"enable_dp_attention": True, "dist_init_addr": "a:5000"}, 30000, list(range(5000, 5007))),
        ("vllm", {"data_parallel_rpc_port": 13345, "master_port": 29501}, 8000, [13345, 29501]),
        ("other", {}, 8000, []),
    ],
)
def test_ports_beside_the_servers_own(engine: str, args: dict[str, object], port: int, ports: list[int]) -> None:
    assert sorted(ports_beside(Profile("p", engine, args=args), port)) == ports  # type: ignore[arg-type]  # values are settings


def test_the_draft_is_found_whichever_setting_names_it() -> None:
    assert draft_path(Profile("p", "sglang", args={"speculative_draft_model_path": "/d"})) == "/d"
    assert draft_path(Profile("p", "llamacpp", args={"md": "/d"})) == "/d"
    vllm = Profile("p", "vllm", args={"speculative_config": '{"method": "eagle3", "model": "/d"}'})
    assert (draft_path(vllm), algorithm(vllm)) == ("/d", "EAGLE3")
    assert draft_path(Profile("p", "vllm", args={"speculative_config": {"method": "ngram"}})) is None


def test_gpus_are_those_that_it_will_see() -> None:
    rooms = [GpuRoom(index, 80 * GIB, 80 * GIB) for index in range(8)]
    two = Profile("p", "sglang", args={"tp": 2})
    assert [gpu.index for gpu in gpus_used(two, rooms)[1]] == [0, 1]
    chosen = Profile("p", "sglang", args={"tp": 2}, env={"CUDA_VISIBLE_DEVICES": "6,7"})
    assert [gpu.index for gpu in gpus_used(chosen, rooms)[1]] == [6, 7]
    later = Profile("p", "sglang", args={"tp": 2, "base_gpu_id": 4})
    assert [gpu.index for gpu in gpus_used(later, rooms)[1]] == [4, 5]
    nodes = Profile("p", "sglang", args={"tp": 16, "nnodes": 2})
    assert gpus_used(nodes, rooms)[0] == 8


def test_memory_on_gpus_names_the_parts_and_the_holders() -> None:
    config = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096,
              "max_position_embeddings": 8192}  # fmt: skip
    model = Model(config, weights_bytes=16 * GIB)
    profile = Profile("p", "sglang", args={"mem_fraction_static": 0.85})
    [fine] = judge_gpu_memory(profile, model, Model(), [GpuRoom(0, 80 * GIB, 79 * GIB)])
    assert (fine.severity, "weights 16.0" in fine.text) == ("ok", True)
    held = GpuRoom(0, 80 * GIB, 10 * GIB, ("70.0 GiB by pid 7 (bob, python)",))
    holder, tight = judge_gpu_memory(profile, model, Model(), [held])
    assert (holder.severity, "pid 7" in holder.text, tight.severity) == ("warning", True, "stop")
    assert tight.fix == {"tp_size": 2}


def test_memory_of_the_host_counts_the_cache() -> None:
    metadata = {"general.architecture": "llama", "llama.block_count": 32, "llama.embedding_length": 4096,
                "llama.attention.head_count": 32, "llama.attention.head_count_kv": 8,
                "llama.context_length": 131072}  # fmt: skip
    model = Model(weights_bytes=4 * GIB, gguf=GgufHead(metadata, 1, None))
    small = judge_host_memory(
        Profile("p", "llamacpp", args={"c": 8192}), model, Model(), HostMemory(16 * GIB, 12 * GIB)
    )
    assert small is not None
    assert (small.severity, "KV 1.00" in small.text) == ("ok", True)
    large = judge_host_memory(Profile("p", "llamacpp"), model, Model(), HostMemory(16 * GIB, 12 * GIB))
    assert large is not None
    assert (large.severity, "KV 16.00" in large.text) == ("stop", True)
    assert judge_host_memory(Profile("p", "llamacpp"), model, Model(), HostMemory()) is None


@pytest.mark.parametrize("output", [b"", b"folder\n", b"folder\nfile 10 10 config.json\n{}", b"\x1f\x8bcut", b"\xff\n"])
def test_a_look_that_was_cut_is_unknown_and_never_fine(output: bytes) -> None:
    found = parse_checkpoint(output)
    assert found.kind == "unknown"
    [finding] = read_model("model", "/m", found).findings
    assert finding.severity == "warning"


@settings(max_examples=200, deadline=None)
@given(body=st.binary(max_size=300), packed=st.booleans())
def test_no_answer_gives_a_traceback(body: bytes, packed: bool) -> None:
    output = b"at /m\nfolder\nfile 300 8 config.json\n" + body + b"\nend\n"
    read_model("draft", "/m", parse_checkpoint(gzip.compress(output) if packed else output))
