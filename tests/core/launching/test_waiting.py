"""The line that a waiter writes, in words; what a start needs, by its profile."""

from __future__ import annotations

import pytest

from specconsole.core.launching.model_check import GpuRoom
from specconsole.core.launching.model_files import Model
from specconsole.core.launching.needs import Needs, needs_of, never_free, passes_with_time
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.waiting import parse_waiting, waiting_text

GIB = 1024**3
H200 = tuple(GpuRoom(index, 141 * GIB, 10 * GIB) for index in range(4))


@pytest.mark.parametrize(
    ("engine", "args", "env", "words"),
    [
        ("sglang", {"tp_size": 2, "mem_fraction_static": 0.5}, {}, ("gpu=0/72192", "gpu=1/72192", "port=30000")),
        ("sglang", {"tp_size": 2, "base_gpu_id": 2}, {}, ("gpu=2/129946", "gpu=3/129946", "port=30000")),
        ("sglang", {"nccl_port": 7000}, {"CUDA_VISIBLE_DEVICES": "3"}, ("gpu=3/129946", "port=30000", "port=7000")),
        ("vllm", {"tensor_parallel_size": 2, "pipeline_parallel_size": 2, "gpu_memory_utilization": 0.25}, {},
         ("gpu=0/36096", "gpu=1/36096", "gpu=2/36096", "gpu=3/36096", "port=30000")),
        ("vllm", {}, {"CUDA_VISIBLE_DEVICES": "GPU-ab12"}, ("gpu=GPU-ab12/-", "port=30000")),
        ("llamacpp", {"n_gpu_layers": 0}, {}, ("port=30000",)),
        ("llamacpp", {}, {"CUDA_VISIBLE_DEVICES": "1"}, ("gpu=1/-", "port=30000")),
        ("other", {}, {"CUDA_VISIBLE_DEVICES": "0,2"}, ("gpu=0/-", "gpu=2/-", "port=30000")),
        # CUDA stops at the first name that is none; and a word may never carry more than a name.
        ("other", {}, {"CUDA_VISIBLE_DEVICES": "1,-1,2"}, ("gpu=1/-", "port=30000")),
        ("other", {}, {"CUDA_VISIBLE_DEVICES": "0 /x"}, ("port=30000",)),
    ],
)  # fmt: skip
def test_what_a_start_needs(engine: str, args: dict[str, object], env: dict[str, str], words: tuple[str, ...]) -> None:
    profile = Profile("p", engine, args=args, env=env)  # type: ignore[arg-type]  # plain values
    assert needs_of(profile, 30000, Model(), Model(), H200).words() == words


def test_without_gpus_or_a_look_at_them_it_says_so() -> None:
    profile = Profile("p", "sglang")
    for gpus, word in (((), "no GPU tool"), (None, "not looked at")):
        needs = needs_of(profile, 1, Model(), Model(), gpus)
        assert needs.words() == ("port=1",)
        assert word in needs.notes[0]


def test_what_no_waiting_helps_against_still_forbids() -> None:
    needs = needs_of(Profile("p", "vllm"), 1, Model(), Model(), H200)
    held = Finding("memory", "stop", "no room is left for the KV pool")
    assert passes_with_time(held, needs)
    assert passes_with_time(Finding("port", "stop", "held"), Needs())
    assert not passes_with_time(held, Needs())
    assert not passes_with_time(Finding("model", "stop", "missing"), needs)
    [too_many] = never_free(Profile("p", "sglang", args={"tp_size": 8}), Model(), Model(), H200)
    assert (too_many.check, too_many.severity) == ("gpu", "stop")


def test_a_waiter_that_hangs_is_told_from_one_that_waits() -> None:
    line = "at=100\tlooks=7\tport=30000 71 bob - python --api-key=topsecret99 x"
    waits = parse_waiting(line, uptime_s=110, began_uptime_s=50)
    assert waiting_text(waits) == "queued for 60 s: port 30000 is held by pid 71 (bob): python --api-key=*********** x"
    hangs = parse_waiting(line, uptime_s=400, began_uptime_s=50)
    assert "has not looked for 5 min" in waiting_text(hangs)


@pytest.mark.parametrize("line", ["", "\t", "port=", "gpu=", "on=0 5", "at=x\tlooks=-", "promised=",
                                  "gpu=0 a b\ton=1 1 2", "free=1\tahead=", "\x00\xff=1"])  # fmt: skip
def test_a_line_that_is_cut_or_foreign_is_no_error(line: str) -> None:
    assert waiting_text(parse_waiting(line, uptime_s=None, began_uptime_s=None)).startswith("queued")
