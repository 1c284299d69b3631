"""What stands around a server's line comes off, and what it says is kept."""

from __future__ import annotations

import pytest

from specconsole.core.reading.prefixes import peel
from specconsole.core.reading.text import LINE_CAP_BYTES, Splitter, clean
from specconsole.core.reading.wrappers import Shapes, Unwrapped, unwrap

INNER = "[2026-06-01 10:00:00 TP3] Load weight begin. avail mem=78.58 GB"
MESSAGE = "Load weight begin. avail mem=78.58 GB"


def one(text: str) -> Unwrapped:
    found = unwrap(clean(text.encode()), Shapes())
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    "wrapped",
    [
        INNER,
        f"2026-06-01T10:00:00.123456789Z {INNER}",
        f"2026-06-01T12:00:00.1+02:00 {INNER}",
        f"2026-06-01T10:00:00.123456789Z stderr F {INNER}",
        f"sglang-1  | {INNER}",
        f"my.service_x-12 | {INNER}",
        f"[pod/sglang-0/server] {INNER}",
        f"[pod/sglang-0/server] 2026-06-01T10:00:00.123456789Z {INNER}",
        f"Jun  1 10:00:00 gpu-a sglang[4711]: {INNER}",
        f"Jun 01 10:00:00.123456 gpu-a docker/sglang[4711]: {INNER}",
        f"<30>Jun  1 10:00:00 gpu-a sglang[4711]: {INNER}",
        f"2026-06-01T10:00:00+0000 gpu-a python3[99]: {INNER}",
        f" 3: {INNER}",
        f"12: {INNER}",
        f"(SGLangEngine pid=3342) {INNER}",
        f"\x1b[36m(SGLangEngine pid=3342, ip=10.0.0.4)\x1b[0m {INNER}",
        f"(SGLangEngine pid=3342) {INNER} [repeated 7x across cluster]",
        f"[2025-12-19T10:05:41+08:00] job-a-head-0 >> (SGLangEngine pid=3342) {INNER}",
        f"     12  {INNER}",
        f"   1234\t{INNER}",
        f"812:{INNER}",
        f"[1;36m{INNER}[0m",
        f"\x1b[1;33m{INNER}\x1b[0m",
        f"^[[32m{INNER}^[[0m",
        f"#033[32m{INNER}#033[0m",
        f"[default3]:{INNER}",
        f"[1,3]<stderr>:{INNER}",
        f"gpu-node-7: {INNER}",
        '{"log":"' + INNER + '\\n","stream":"stderr","time":"2026-06-01T10:00:00.1Z"}',
        '{"MESSAGE":"' + INNER + '","__REALTIME_TIMESTAMP":"1","_PID":"3"}',
        f"Jun 01 10:00:00 gpu-a docker[1]: (SGLangEngine pid=3342) {INNER}",
        f"weird>wrapper#3> {INNER}",
        f"{INNER}\r",
    ],
)
def test_a_wrapper_comes_off(wrapped: str) -> None:
    found = one(wrapped)
    assert (found.text, found.form, found.rank) == (MESSAGE, "sglang", "TP3")


def test_an_unknown_wrapper_is_learned_for_the_lines_without_a_prefix() -> None:
    shapes = Shapes()
    unwrap(f"<worker 3> {INNER}", shapes)
    (found,) = unwrap('<worker 12>   File "x.py", line 3, in f', shapes)
    assert found.text == '  File "x.py", line 3, in f'


def test_a_quoted_line_stays_the_message_of_the_line_that_quotes_it() -> None:
    text = f"[2026-06-01 10:00:00] the last line was '{INNER}'"
    assert [u.text for u in unwrap(text, Shapes())] == [f"the last line was '{INNER}'"]


def test_two_lines_without_an_end_between_them_are_two() -> None:
    texts = [u.text for u in unwrap(f"{INNER}{INNER.replace('TP3', 'TP4')}", Shapes())]
    assert texts == [MESSAGE, MESSAGE]


def test_a_json_line_with_several_lines_in_its_message() -> None:
    found = unwrap('{"level": "WARNING", "time": "06-29 07:10:02.118", "message": "one\\n  two\\u001b[31m"}', Shapes())
    assert [(u.text, u.level) for u in found] == [("one", "WARNING"), ("  two", "WARNING")]


def test_json_that_is_no_log_line_stays_as_it_is() -> None:
    for text in ('{"model": "x"}', "{not json}", '{"message": 3}', "[1, 2]", "{" * 3000 + "}"):
        assert unwrap(text, Shapes()) in ([], unwrap(text, Shapes()))


@pytest.mark.parametrize(
    ("text", "form", "level", "rank", "source", "message"),
    [
        ("INFO 02-06 03:10:12 llm_engine.py:706] Avg prompt", "vllm", "INFO", None, "llm_engine.py:706", "Avg prompt"),
        ("ERROR 06-10 08:11:20 [core.py:936]     raise", "vllm", "ERROR", None, "core.py:936", "    raise"),
        ("INFO 2026-06-10 08:11:20.123 [core.py:936] x", "vllm", "INFO", None, "core.py:936", "x"),
        ("INFO:     Started server process [1]", "uvicorn", "INFO", None, "", "Started server process [1]"),
        ("0.09.114.220 W slot x", "llamacpp", "WARNING", None, "", "slot x"),
        ("[TensorRT-LLM][ERROR] [TensorRT-LLM][ERROR] boom", "tensorrt-llm", "ERROR", None, "", "boom"),
        ("[05/23/2025-10:11:12] [TRT-LLM] [RANK 2] [I] hi", "tensorrt-llm", "INFO", "rank 2", "", "hi"),
        ("I0224 10:20:14.110233 120 model.cc:472] \"x\"", "glog", "INFO", None, "model.cc:472", '"x"'),
        ("[rank4]:[E1129 14:24:54.633 ProcessGroupNCCL.cpp:1575] y", "torch", "ERROR", "rank 4", "ProcessGroupNCCL.cpp:1575", "y"),
        ("[E ProcessGroupNCCL.cpp:475] [Rank 4] Watchdog", "torch", "ERROR", "rank 4", "ProcessGroupNCCL.cpp:475", "Watchdog"),
        ("host-b:241:250 [6] NCCL INFO x", "nccl", "", "GPU 6", "", "NCCL INFO x"),
        ("2024-05-20T10:00:00.123456Z  INFO text_generation_launcher: Ready rank=0", "tgi", "INFO", "rank 0", "text_generation_launcher", "Ready"),
        ('time=2025-01-01T00:00:00.000Z level=WARN source=server.go:1 msg="a \\"b\\"" k=1', "ollama", "WARNING", None, "server.go:1", 'a "b" k=1'),
        ("2025-01-01 12:00:00,123 - httpx - INFO - GET /", "python", "INFO", None, "httpx", "GET /"),
        ("2025-01-01 12:00:00.123 | ERROR    | mod:func:12 - bad", "python", "ERROR", None, "mod:func:12", "bad"),
        ("[2024-09-20 21:14:05,118] [INFO] [real_accelerator.py:203:get] Setting", "python", "INFO", None, "real_accelerator.py:203", "Setting"),
        ("[2026-01-01 10:00:00,101] torch.distributed.run: [WARNING] x", "python", "WARNING", None, "torch.distributed.run", "x"),
        ("[21:14:02 TP1] Load", "sglang", "", "TP1", "", "Load"),
        ("[2026-06-01 10:00:00.123 DP1 PP0 TP3 EP3] Load", "sglang", "", "DP1 PP0 TP3 EP3", "", "Load"),
    ],
)  # fmt: skip
def test_a_servers_own_prefix(text: str, form: str, level: str, rank: str | None, source: str, message: str) -> None:
    found = one(text)
    assert (found.form, found.level, found.rank, found.source, found.text) == (form, level, rank, source, message)


def test_process_tags_name_the_rank() -> None:
    assert one("(VllmWorker rank=2 pid=340) INFO 04-19 20:31:10 [monitor.py:33] x").rank == "rank 2"
    assert one("(vLLMHttpServer pid=7012) (Worker_TP1 pid=7344) ERROR 06-10 08:11:20 [a.py:8] x").rank == "Worker_TP1"
    assert one("(RayWorkerVllm pid=5102) [E ProcessGroupNCCL.cpp:475] [Rank 4] Watchdog").rank == "rank 4"


def test_what_looks_like_a_wrapper_and_is_none() -> None:
    for text in (
        "slot print_timing: id  0 | task 0 | prompt eval time = 1 ms",
        "  0%|          | 0/23 [00:00<?, ?it/s]",
        "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<00:01, 2.00it/s]",
        "RuntimeError: NCCL error: unhandled system error",
        "vllm: error: unrecognized arguments: --x",
        "multiproc_executor.py [multiproc]",
    ):
        assert one(text).text == text.rstrip(), text


def test_no_prefix_is_peeled_off_a_message() -> None:
    for text in ("", "[", "[x] y", "12 monkeys", "time is money", "INFO", "(x)", "2026-13-45 99:99:99 x", "0.1.2 x"):
        prefix = peel(text)
        assert prefix is None or prefix.text != ""


def test_text_is_clean_whatever_comes() -> None:
    assert clean(b"a\tb\x00\x07\x1b[31mred\x1b[0m\x1b]0;t\x07 \xff\xe2\x80\xae  ") == "a    bred �"
    assert clean("naïve ▌ 図".encode()) == "naïve ▌ 図"
    assert clean(b"(x) [multiproc_executor.py:852] [0mz[m") == "(x) [multiproc_executor.py:852] z"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_splitter_cuts_behind_every_kind_of_end(size: int) -> None:
    data = b"one\r\ntwo\rthree\nfour\n\rfive"
    splitter, got = Splitter(), b""
    for start in range(0, len(data), size):
        got += splitter.feed(data[start : start + size])
    assert got == b"one\r\ntwo\rthree\nfour\n\r"
    assert bytes(splitter.pending) == b"five"


def test_a_line_without_an_end_stays_bounded() -> None:
    splitter = Splitter()
    for _ in range(300):
        assert splitter.feed(b"x" * 10_000) == b""
    assert len(splitter.pending) == LINE_CAP_BYTES
