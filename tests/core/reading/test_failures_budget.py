"""The change that a failure card proposes: each value computed from what the start printed, checked by hand here.

The starts are recorded ones (an H200, SGLang 0.5.17; vLLM and SGLang on CPUs), cut where the memory is made to run out;
torch's message is in its own words with other numbers.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.reading.model import Failure
from specconsole.core.reading.reading import read_bytes

LOGS = Path(__file__).parent / "captures" / "logs"
SPEC = "sglang-spec1-topk1-steps3"
"""Its memory: 139.09 GiB free, 132.14 after both weights, 13.19 after both pools; mem_fraction_static 0.907."""


def recorded(name: str) -> str:
    return gzip.decompress((LOGS / f"{name}.log.gz").read_bytes()).decode()


def before(text: str, mark: str) -> str:
    """The log up to and with the line that holds `mark`."""
    lines = text.splitlines(keepends=True)
    return "".join(lines[: 1 + next(n for n, line in enumerate(lines) if mark in line)])


def oom(wanted: str, free: str, own: str = "138.00 GiB") -> str:
    return (
        "[2026-11-29 14:13:00] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/srv/sglang/srt/managers/scheduler.py", line 2713, in run_scheduler_process\n'
        "    scheduler = Scheduler(server_args, port_args, gpu_id, tp_rank, dp_rank)\n"
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {wanted}. GPU 0 has a total capacity of 139.80 "
        f"GiB of which {free} is free. Including non-PyTorch memory, this process has {own} memory in use.\n\n"
        "[2026-11-29 14:13:01] Received sigquit from a child process. It usually means the child failed.\n"
    )


def failure_of(text: str) -> Failure:
    got = read_bytes(text.encode(), dead=True).failure
    assert got is not None
    assert got.advice is not None
    return got


def fraction_in(text: str) -> float:
    found = re.search(r"mem_fraction_static=([\d.]+)", text)
    assert found is not None
    return float(found[1])


def test_graph_capture_runs_out() -> None:
    text = before(recorded(SPEC), "Capture target verify CUDA graph begin")
    assert fraction_in(text) == 0.907
    got = failure_of(text + oom("2.38 GiB", "1.06 GiB"))
    assert (got.failure_class, got.in_phase) == ("gpu-oom", "graph-capture")
    assert got.advice is not None
    # 2.38 - 1.06 missing and 1 spare are 2.32 of the 139.09 GiB that were free: 0.0167, and 0.907 - 0.0167 = 0.8903.
    assert got.advice.set == {"mem_fraction_static": 0.89}
    for number in ("2.38", "1.06", "2.32", "139.1", "0.907 -> 0.89", "KV pool 118.9", "weights 7.0"):
        assert number in got.advice.text


def test_graphs_still_to_come_are_counted_from_those_that_were_captured() -> None:
    text = before(recorded(SPEC), "Capture target verify CUDA graph begin")  # avail mem=11.72 GB
    bar = "Capturing batches (bs=8 avail_mem=8.72 GB):  25%|██▌       | 3/12 [00:01<00:03,  2.61it/s]\n"
    got = failure_of(text + bar + oom("512.00 MiB", "2.72 GiB"))
    assert got.advice is not None
    # A quarter took 11.72 - 2.72 = 9 GiB, so three quarters take up to 27 more: 27 / 139.09 = 0.194.
    assert got.advice.set == {"mem_fraction_static": 0.71}
    assert "27.0 for what is still to be captured" in got.advice.text


def test_the_pool_itself_runs_out() -> None:
    text = before(recorded(SPEC), "type=LlamaForCausalLMEagle3")
    entered = (
        "[2026-11-29 14:12:46] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 9, K size: 0.1 GB, V size: 0 GB\n"
    )
    got = failure_of(text + entered + oom("12.00 GiB", "9.50 GiB"))
    assert got.in_phase == "kv-cache"
    assert got.advice is not None
    # 2.5 missing and 1 spare of 139.09: 0.0252 less than 0.907.
    assert got.advice.set == {"mem_fraction_static": 0.88}
    assert got.advice.text.startswith("The KV pool ran out of room")


def test_a_request_too_many_while_it_serves() -> None:
    text = recorded(SPEC)
    got = failure_of(before(text, "The server is fired up") + oom("4.50 GiB", "3.00 GiB"))
    assert got.advice is not None
    assert got.advice.text.startswith(
        "Activations ran out of room (weights 7.0, KV pool 118.9, graphs 3.1 of 139.1 GiB)"
    )
    # 1.5 missing and 1 spare of 139.09: 0.018 less.
    assert got.advice.set == {"mem_fraction_static": 0.88}


def test_no_share_is_proposed_that_would_leave_no_pool() -> None:
    log = (
        "[2026-11-29 14:12:21] server_args=ServerArgs(model_path='/m', mem_fraction_static=0.9, tp_size=1)\n"
        "[2026-11-29 14:12:43] Load weight begin. avail mem=79.00 GB\n"
        "[2026-11-29 14:12:44] Load weight end. elapsed=1.23 s, type=X, avail mem=9.50 GB, mem usage=69.50 GB.\n"
        "[2026-11-29 14:12:45] Memory pool end. avail mem=7.90 GB\n"
        "[2026-11-29 14:12:46] Capture cuda graph begin. This can take up to several minutes. avail mem=7.90 GB\n"
    )
    got = failure_of(log + oom("3.00 GiB", "0.50 GiB"))
    assert got.advice is not None
    # The pool has 1.6 GiB and 3.5 are wanted.
    assert got.advice.set is None
    assert "no static share leaves 3.5 GiB more" in got.advice.text


def test_weights_that_do_not_fit_ask_for_ranks() -> None:
    head = (
        "[2026-11-29 14:12:21] server_args=ServerArgs(model_path='/m', mem_fraction_static=0.9, tp_size=2)\n"
        "[2026-11-29 14:12:43 TP0] Load weight begin. avail mem=139.00 GB\n"
    )
    bar = "Loading safetensors checkpoint shards:  50% Completed | 32/64 [00:30<00:30,  1.07it/s]\n"
    got = failure_of(head + bar + oom("1.00 GiB", "0.50 GiB", own="130.00 GiB"))
    assert (got.in_phase, got.in_part) == ("weights", "target")
    assert got.advice is not None
    # 130 GiB at half of the shards: 260 a GPU at tp 2. 130 at tp 4 exceed (130 + 0.5 - 1) * 0.9 = 116.6, 65 at tp 8 fit.
    assert got.advice.set == {"tp_size": 8}
    assert "about 260 GiB a GPU" in got.advice.text
    unknown = failure_of(head + oom("1.00 GiB", "0.50 GiB", own="130.00 GiB"))
    assert unknown.advice is not None
    assert unknown.advice.set is None, "without a bar nobody knows how much was still to come"


@pytest.mark.parametrize(
    ("share", "before_gib", "after_gib", "tp", "wanted"),
    [
        # 14.2 - 78.58 * 0.2 < 0; 0.84 keeps 12.57 back and leaves 1.63.
        (0.8, 78.58, 14.2, 1, {"mem_fraction_static": 0.84}),
        # Nothing above 0.97: two ranks halve 76.6 GiB of weights.
        (0.9, 78.6, 2.0, 1, {"tp_size": 2}),
        (0.9, 78.6, 2.0, 4, {"tp_size": 8}),
    ],
)  # fmt: skip
def test_no_room_for_the_pool(
    share: float, before_gib: float, after_gib: float, tp: int, wanted: dict[str, Any]
) -> None:
    log = (
        f"[2026-11-29 14:12:21] server_args=ServerArgs(model_path='/m', mem_fraction_static={share}, tp_size={tp})\n"
        f"[2026-11-29 14:12:43] Load weight begin. avail mem={before_gib} GB\n"
        f"[2026-11-29 14:12:44] Load weight end. elapsed=1.23 s, type=X, avail mem={after_gib} GB, mem usage=1.00 GB.\n"
        "[2026-11-29 14:12:45] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/srv/sglang/srt/model_executor/model_runner.py", line 1200, in init_memory_pool\n'
        "    raise RuntimeError(\n"
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n\n"
        "[2026-11-29 14:12:46] Received sigquit from a child process. It usually means the child failed.\n"
    )
    got = failure_of(log)
    assert got.failure_class == "kv-cache-too-small"
    assert got.advice is not None
    assert got.advice.set == wanted


def test_recorded_starts_and_what_is_proposed_for_them() -> None:
    table: dict[str, tuple[str, dict[str, Any] | None, str]] = {
        "sglang-cpu-fail-kv-too-small": ("kv-cache-too-small", {"max_total_tokens": 4096}, "8 -> 4096"),
        "vllm-fail-kv-cache-too-small": ("kv-cache-too-small", {"max_model_len": 130944}, "needs 3.05 GiB of KV cache and 1"),
        "vllm-fail-memory-utilization": ("host-memory", {"gpu_memory_utilization": 0.9}, "21.41 of 23.54 GiB"),
        "vllm-fail-context-too-long": ("context-too-long", {"max_model_len": 4096}, "999999 -> 4096"),
        "sglang-fail-context-too-long": ("context-too-long", {"context_length": 4096}, "16384 -> 4096"),
        "sglang-fail-oom-other-process": ("gpu-busy", None, "pid 11723 holds 136.5 GiB"),
        "sglang-fail-draft-hidden-mismatch": ("draft-mismatch", None, "gets 12288 numbers a token from the target and was made for 6144"),
        "sglang-smoke-port-in-use": ("port-in-use", None, "Port 30000"),
    }  # fmt: skip
    for name, (failure_class, change, says) in table.items():
        got = failure_of(recorded(name))
        assert got.advice is not None
        assert (got.failure_class, got.advice.set) == (failure_class, change), name
        assert says in got.advice.text, (name, got.advice.text)


@pytest.mark.parametrize(
    ("line", "args", "failure_class", "wanted"),
    [
        ("ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (854). Each decode sequence requires one "
         "Mamba cache block", "", "kv-cache-too-small", {"max_num_seqs": 854}),
        ("ValueError: max_num_batched_tokens (64) must be greater than or equal to max_num_seqs (256).", "",
         "bad-argument", {"max_num_seqs": 64}),
        ("AssertionError: max_running_request is zero", ", max_running_requests=1, dp_size=8", "bad-argument",
         {"max_running_requests": 8}),
    ],
)  # fmt: skip
def test_too_many_requests_at_once(line: str, args: str, failure_class: str, wanted: dict[str, Any]) -> None:
    log = (
        f"[2026-11-29 14:12:21] server_args=ServerArgs(model_path='/m', mem_fraction_static=0.9{args})\n"
        "[2026-11-29 14:12:45] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/srv/sglang/srt/managers/tp_worker.py", line 120, in __init__\n'
        "    assert self.max_running_requests > 0\n"
        f"{line}\n\n"
        "[2026-11-29 14:12:46] Received sigquit from a child process. It usually means the child failed.\n"
    )
    got = failure_of(log)
    assert got.advice is not None
    assert (got.failure_class, got.advice.set) == (failure_class, wanted)


@pytest.mark.parametrize(
    ("version", "asked", "wanted"),
    [("0.32.0", "", 0.88), ("0.14.1", "", 0.86), ("0.14.1", "'gpu_memory_utilization': 0.8, ", 0.76)],
)
def test_vllm_starts_from_the_default_of_its_version(version: str, asked: str, wanted: float) -> None:
    log = (
        f"(APIServer pid=1) INFO 11-29 14:32:58 [api_server.py:1] vLLM API server version {version}\n"
        f"(APIServer pid=1) INFO 11-29 14:32:59 [utils.py:286] non-default args: {{{asked}'model': '/m'}}\n"
        f"(EngineCore pid=2) INFO 11-29 14:33:10 [core.py:133] Initializing a V1 LLM engine (v{version}) with config: "
        "model='/m', speculative_config=None\n"
        "(EngineCore pid=2) INFO 11-29 14:33:12 [gpu_model_runner.py:1] Model loading took 14.99 GiB memory and 5.1 seconds\n"
        "(EngineCore pid=2) INFO 11-29 14:33:13 [gpu_worker.py:276] Available KV cache memory: 49.07 GiB\n"
        "Capturing CUDA graphs (decode, FULL):   0%|          | 0/35 [00:00<?, ?it/s]\n"
        "(EngineCore pid=2) ERROR 11-29 14:33:20 [core.py:1] EngineCore failed to start.\n"
        "(EngineCore pid=2) ERROR 11-29 14:33:20 [core.py:1] Traceback (most recent call last):\n"
        "(EngineCore pid=2) ERROR 11-29 14:33:20 [core.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
        "2.50 GiB. GPU 0 has a total capacity of 80.00 GiB of which 0.50 GiB is free.\n"
    )
    got = failure_of(log)
    assert got.failure_class == "gpu-oom"
    assert got.advice is not None
    # 2 missing and 1 spare of 80: 0.0375 less, rounded down.
    assert got.advice.set == {"gpu_memory_utilization": wanted}
    assert "weights 15.0, KV pool 49.1" in got.advice.text


def test_shared_memory_says_what_did_not_fit() -> None:
    line = (
        "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-vT3xq1 (size 9637888), error: No space left "
        "on device (28)\n"
    )
    got = failure_of(line)
    assert got.failure_class == "host-memory"
    assert got.advice is not None
    assert "a segment of 9.2 MiB did not fit" in got.advice.text


def test_the_same_budget_whatever_the_chunks() -> None:
    text = (before(recorded(SPEC), "Capture target verify CUDA graph begin") + oom("2.38 GiB", "1.06 GiB")).encode()
    from specconsole.core.reading.reading import Reader

    whole = read_bytes(text, dead=True).failure
    reader = Reader()
    for start in range(0, len(text), 777):
        reader.feed(text[start : start + 777])
        if start % (777 * 20) == 0:
            reader = Reader.resume(reader.checkpoint())
    assert reader.reading(dead=True).failure == whole
