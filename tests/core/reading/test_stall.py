"""What a silence means: the phases' own patience, the bar's rhythm, history, GPUs, ranks."""

from __future__ import annotations

import pytest

from specconsole.core.reading.bars import find_bars
from specconsole.core.reading.eta import BarTrack, track
from specconsole.core.reading.model import START_PHASES, EtaRange, Phase, RankReading
from specconsole.core.reading.reading import Reader
from specconsole.core.reading.stall import USUAL_SILENCE_S, GpuActivity, judge, ranks_behind
from tests.core.reading.lines_for_tests import SGLANG_START

IDLE, WORKING = GpuActivity(0.0, 0.0), GpuActivity(85.0, 40.0)
SPINNING = GpuActivity(100.0, 0.0)


def _capture(done: int, seconds_each: float = 2.0) -> BarTrack:
    state = None
    for count in range(done + 1):
        elapsed = int(5 + count * seconds_each)
        pace = f"{seconds_each:5.2f}s/it"
        text = f"Capturing batches (bs=1 avail_mem=9.1 GB):  1%|  | {count}/23 [00:{elapsed:02d}<00:50, {pace}]"
        for bar in find_bars(text):
            state = track(state, bar)
    assert state is not None
    return state


@pytest.mark.parametrize("phase", START_PHASES)
def test_every_start_phase_has_its_patience(phase: Phase) -> None:
    normal_s, stalled_s = USUAL_SILENCE_S[phase]
    assert judge(phase, None, normal_s).stalled is False
    between = judge(phase, None, (normal_s + stalled_s) / 2)
    assert between.stalled is None
    assert between.reason is not None
    assert judge(phase, None, stalled_s + 1).stalled is True
    assert judge(phase, None, 5.0).limit_s == normal_s


@pytest.mark.parametrize(
    ("phase", "silent_s"),
    [
        ("starting", 20.0),  # imports of torch, in each process
        ("compile", 600.0),  # DeepGEMM, AITER
        ("graph-capture", 72.0),  # kernels compiled inside the first graph, SGLang 0.5.17
        ("warm-up", 100.0),
    ],
)
def test_silences_that_were_seen_in_healthy_starts_are_no_stall(phase: Phase, silent_s: float) -> None:
    assert judge(phase, None, silent_s).stalled is False


def test_vllms_long_profiling_is_not_called_a_stall() -> None:
    assert judge("kv-cache", None, 629.0).stalled is None
    assert judge("compile", None, 2219.0).stalled is None


def test_without_a_clock_there_is_no_verdict() -> None:
    assert judge("weights", "target", None).stalled is None
    assert judge("weights", "target", None).reason is None


def test_the_bars_rhythm_sets_the_limit() -> None:
    bar = _capture(10)
    assert judge("graph-capture", "target", 20.0, track=bar).stalled is False
    verdict = judge("graph-capture", "target", 61.0, track=bar)
    assert verdict.stalled is True
    assert verdict.reason is not None
    assert "graph-capture (target)" in verdict.reason
    assert "slowest item so far took 2.0 s" in verdict.reason
    slow = _capture(4, 12.0)
    assert judge("graph-capture", "target", 35.0, track=slow).stalled is False


def test_one_item_is_no_rhythm() -> None:
    assert judge("graph-capture", "target", 61.0, track=_capture(1)).stalled is False


def test_history_stretches_and_shortens_the_patience() -> None:
    long_before = EtaRange(800.0, 1100.0, 1400.0, "history:n=4")
    assert judge("weights", "target", 900.0, usual=long_before, spent_s=900.0).stalled is False
    short_before = EtaRange(15.0, 20.0, 28.0, "history:n=9")
    verdict = judge("weights", "target", 100.0, usual=short_before, spent_s=140.0)
    assert verdict.stalled is True
    assert verdict.reason is not None
    assert "history:n=9" in verdict.reason


def test_gpus_acquit_and_accuse() -> None:
    normal_s, stalled_s = USUAL_SILENCE_S["graph-capture"]
    late = stalled_s + 10
    assert judge("graph-capture", "target", late, gpu=WORKING).stalled is None
    assert judge("graph-capture", "target", late, gpu=IDLE).stalled is True
    assert judge("graph-capture", "target", normal_s + 1, gpu=IDLE).stalled is True
    spinning = judge("graph-capture", "target", normal_s + 1, gpu=SPINNING)
    assert spinning.stalled is True
    assert "collective" in (spinning.reason or "")
    assert judge("graph-capture", "target", normal_s + 1, gpu=GpuActivity()).stalled is None
    assert judge("compile", None, 901.0, gpu=IDLE).stalled is None  # compilers run on the CPU
    assert judge("graph-capture", "target", normal_s - 1, gpu=IDLE).stalled is False


def test_serving_and_idle() -> None:
    assert judge("ready", None, 9999.0).stalled is False
    assert judge("serving", None, 9999.0, running=0).stalled is False
    assert judge("serving", None, 60.0, running=3).stalled is False
    assert judge("serving", None, 150.0, running=3).stalled is None
    assert judge("serving", None, 150.0, running=3, gpu=IDLE).stalled is True
    assert judge("serving", None, 150.0, running=3, gpu=SPINNING).stalled is True
    assert judge("serving", None, 400.0, running=3, gpu=WORKING).stalled is None
    assert judge("failed", None, 9999.0).stalled is False


def _ranks(*places: tuple[str, Phase, float | None]) -> tuple[RankReading, ...]:
    return tuple(RankReading(name, phase, 1, silent_s) for name, phase, silent_s in places)


def test_the_ranks_that_the_others_wait_for_are_named() -> None:
    ranks = _ranks(
        ("TP0", "graph-capture", 200.0), ("TP1", "graph-capture", 200.0), ("TP2", "weights", 260.0),
        ("TP3", "graph-capture", 200.0),
    )  # fmt: skip
    assert ranks_behind(ranks) == ("TP2",)
    verdict = judge("graph-capture", "target", 1000.0, ranks=ranks)
    assert verdict.behind == ("TP2",)
    assert "waits for TP2" in (verdict.reason or "")
    assert judge("graph-capture", "target", 10.0, ranks=ranks).behind == ()


def test_a_rank_that_alone_fell_silent_is_named() -> None:
    ranks = _ranks(("TP0", "weights", 4.0), ("TP1", "weights", 5.0), ("TP2", "weights", 190.0))
    assert ranks_behind(ranks) == ("TP2",)


def test_ranks_that_hang_together_are_not_blamed() -> None:
    assert ranks_behind(_ranks(("TP0", "weights", 200.0), ("TP1", "weights", 201.0))) == ()
    assert ranks_behind(_ranks(("TP0", "weights", None), ("TP1", "weights", 900.0))) == ()
    assert ranks_behind(_ranks(("TP0", "weights", 900.0))) == ()
    assert ranks_behind(()) == ()


ARGS = (
    b"[2026-06-01 10:00:00] server_args=ServerArgs(model_path='/m/T', tp_size=1, port=30000)\n"
    b"[2026-06-01 10:00:44] The server is fired up and ready to roll!\n"
)


def _decode(second: int) -> bytes:
    return (
        f"[2026-06-01 10:{second // 60:02}:{second % 60:02}] Decode batch, #running-req: 1, #token: 106, token usage: 0.00"
        ", cuda graph: True, gen throughput (token/s): 11.00, #queue-req: 0\n"
    ).encode()


def _served(until: int) -> Reader:
    """A server that decodes from second 50 on, a line every 5 s, its bytes arriving as they are printed."""
    reader = Reader()
    reader.feed(ARGS, 44.0)
    for second in range(50, until + 1, 5):
        reader.feed(_decode(second), float(second))
    return reader


def test_a_server_that_goes_on_working_is_never_stalled() -> None:
    reader = Reader()
    reader.feed(ARGS, 44.0)
    for second in range(50, 1500, 5):
        reader.feed(_decode(second), float(second))
        reading = reader.reading(second + 4.0)
        assert (reading.phase, reading.stalled) == ("serving", False), (second, reading.stall_reason)


def test_sglang_that_falls_silent_is_idle_again_unless_its_gpus_work() -> None:
    reader = _served(300)
    assert reader.reading(315.0).phase == "serving"
    later = reader.reading(420.0)
    assert (later.phase, later.stalled) == ("ready", False)
    assert reader.reading(420.0, gpu=IDLE).phase == "ready"
    assert reader.reading(420.0, gpu=WORKING).phase == "serving"
    assert reader.reading(700.0, gpu=SPINNING).stalled is True


def test_a_failing_health_check_is_no_idleness() -> None:
    reader = _served(300)
    reader.feed(b"[2026-06-01 10:06:00] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.\n", 360.0)  # fmt: skip
    assert reader.reading(600.0).phase == "serving"


def test_a_prompt_that_takes_long_is_work() -> None:
    reader = _served(60)
    reader.feed(b"[2026-06-01 10:01:05] Prefill batch, #new-seq: 1, #new-token: 8192, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0\n", 65.0)  # fmt: skip
    assert reader.reading(150.0).phase == "serving"
    assert reader.reading(300.0).phase == "ready"


def test_vllm_that_falls_silent_with_requests_running_is_not_idle() -> None:
    reader = Reader()
    reader.feed(
        b"INFO 06-01 10:00:00 [api_server.py:1896] vLLM API server version 0.10.2\nINFO:     Application startup complete.\n"
        b"INFO 06-01 10:00:10 [loggers.py:123] Engine 000: Avg prompt throughput: 8.0 tokens/s, Avg generation throughput: "
        b"10.0 tokens/s, Running: 2 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%\n",
        10.0,
    )
    reading = reader.reading(400.0)
    assert (reading.phase, reading.stalled) == ("serving", True)


def test_vllm_without_its_statistics_is_idle_when_no_request_comes_any_more() -> None:
    reader = Reader(engine="vllm")
    reader.feed(b"INFO:     Application startup complete.\n", 90.0)
    reader.feed(b'INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 3, 100.0)
    assert [reader.reading(100.0 + s).phase for s in (1, 100, 130)] == ["serving", "serving", "ready"]
    # A long answer is still streamed: the GPUs show it.
    assert reader.reading(400.0, gpu=WORKING).phase == "serving"
    assert reader.reading(400.0, gpu=IDLE).phase == "ready"


def test_without_a_clock_the_logs_own_tells_that_sglang_is_idle_again() -> None:
    start = "\n".join(SGLANG_START)
    decode = (
        "[2026-11-29 14:13:{:02d} TP0] Decode batch, #running-req: 1, #token: 620, token usage: 0.02, accept len: 3.92, "
        "cuda graph: True, gen throughput (token/s): 62.92, #queue-req: 0"
    )
    access = '[2026-11-29 14:{}] INFO:     127.0.0.1:5 - "GET /get_model_info HTTP/1.1" 200 OK'
    log = "\n".join([start, *(decode.format(second) for second in (3, 4, 5, 6))])
    for last, phase in ((None, "serving"), ("13:07", "serving"), ("13:30", "serving"), ("14:36", "ready")):
        reader = Reader()
        reader.feed("\n".join([log, *([access.format(last)] if last else []), ""]).encode())
        assert reader.reading().phase == phase, last
