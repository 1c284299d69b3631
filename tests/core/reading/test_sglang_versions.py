"""SGLang's start, service and end as each version words them (texts from the versions' sources)."""

from __future__ import annotations

import pytest

from specconsole.core.reading.model import Reading
from specconsole.core.reading.reading import Reader, read_bytes

BAR = "Loading safetensors checkpoint shards: {p:3d}% Completed | {n}/{t} [00:{e:02}<00:{r:02},  1.00it/s]"


def read(*lines: str, dead: bool = False) -> Reading:
    return read_bytes("".join(f"{line}\n" for line in lines).encode(), dead=dead)


def stamped(second: int, text: str, rank: str = "") -> str:
    return f"[2026-02-26 21:{second // 60:02}:{second % 60:02}{rank}] {text}"


def order(reading: Reading) -> list[str]:
    return [entry.phase + (f"/{entry.part}" if entry.part else "") for entry in reading.timeline]


# 0.4.6 to 0.5.12: the target completely, then the draft completely.
OLD_START = (
    stamped(0, "server_args=ServerArgs(model_path='meta/L', tp_size=2, port=30000, speculative_algorithm='EAGLE3', "
               "speculative_draft_model_path='org/E3', speculative_num_steps=3, api_key=None)"),
    *(stamped(9, "Init torch distributed begin.", f" TP{r}") for r in (0, 1)),
    stamped(10, "sglang is using nccl==2.21.5", " TP0"),
    *(stamped(11, "Init torch distributed ends. mem usage=0.18 GB", f" TP{r}") for r in (0, 1)),
    *(stamped(12, "Load weight begin. avail mem=78.58 GB", f" TP{r}") for r in (1, 0)),
    *(BAR.format(p=100 * n // 4, n=n, t=4, e=n, r=4 - n) for n in range(5)),
    *(stamped(20, "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.43 GB, mem usage=15.10 GB.",
              f" TP{r}") for r in (0, 1)),
    *(stamped(22, "KV Cache is allocated. #tokens: 412345, K size: 12.59 GB, V size: 12.59 GB", f" TP{r}") for r in (0, 1)),
    *(stamped(23, "Memory pool end. avail mem=12.34 GB", f" TP{r}") for r in (0, 1)),
    stamped(24, "Capture cuda graph begin. This can take up to several minutes. avail mem=11.86 GB", " TP0"),
    stamped(24, "Capture cuda graph bs [1, 2, 3, 4]", " TP0"),
    "Capturing batches (avail_mem=11.43 GB):  25%|██▌       | 1/4 [00:01<00:03,  1.10s/it]",
    stamped(29, "Capture cuda graph end. Time elapsed: 5.43 s. mem usage=0.93 GB. avail mem=10.93 GB.", " TP0"),
    *(stamped(30, "Init torch distributed begin.", f" TP{r}") for r in (0, 1)),
    *(stamped(30, "Init torch distributed ends. mem usage=0.00 GB", f" TP{r}") for r in (0, 1)),
    *(stamped(31, "Load weight begin. avail mem=10.90 GB", f" TP{r}") for r in (0, 1)),
    *(stamped(33, "Load weight end. type=LlamaForCausalLMEagle3, dtype=torch.bfloat16, avail mem=9.43 GB, mem usage=1.10 GB.",
              f" TP{r}") for r in (0, 1)),
    stamped(34, "KV Cache is allocated. #tokens: 412345, K size: 0.59 GB, V size: 0.59 GB", " TP0"),
    stamped(34, "Memory pool end. avail mem=8.34 GB", " TP0"),
    stamped(35, "Capture draft cuda graph begin. This can take up to several minutes. avail mem=8.31 GB", " TP0"),
    stamped(39, "Capture draft cuda graph end. Time elapsed: 4.00 s. avail mem=8.00 GB. mem usage=0.31 GB.", " TP0"),
    stamped(40, "Capture draft extend cuda graph begin. This can take up to several minutes. avail mem=8.00 GB", " TP0"),
    stamped(42, "Capture draft extend cuda graph end. Time elapsed: 2.00 s. mem usage=0.12 GB. avail mem=7.88 GB.", " TP0"),
    stamped(43, "max_total_num_tokens=412345, chunked_prefill_size=8192, max_prefill_tokens=16384, context_len=131072", " TP0"),
    stamped(44, "INFO:     Started server process [1234]"),
    stamped(44, "INFO:     Waiting for application startup."),
    stamped(44, "INFO:     Application startup complete."),
    stamped(44, "INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)"),
    stamped(45, 'INFO:     127.0.0.1:51234 - "GET /get_model_info HTTP/1.1" 200 OK'),
    stamped(45, "Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ",
            " TP0"),
    stamped(46, 'INFO:     127.0.0.1:51235 - "POST /generate HTTP/1.1" 200 OK'),
    stamped(46, "The server is fired up and ready to roll!"),
)  # fmt: skip


def test_an_old_start_target_first_then_draft() -> None:
    reading = read(*OLD_START)
    assert (reading.engine, reading.phase, reading.failure) == ("sglang", "ready", None)
    assert order(reading) == [
        "starting", "distributed", "weights/target", "kv-cache", "graph-capture/target", "distributed",
        "weights/draft", "kv-cache", "graph-capture/draft", "graph-capture/draft-extend", "warm-up", "ready",
    ]  # fmt: skip
    assert reading.server.port == 30000
    assert reading.server.draft_model == "org/E3"
    assert reading.server.args["speculative_num_steps"] == 3
    seconds = {(e.phase, e.part): e.seconds for e in reading.timeline}
    assert seconds[("graph-capture", "target")] == 5.43
    assert seconds[("weights", "target")] == 8.0


@pytest.mark.parametrize(
    ("upto", "phase", "part", "progress"),
    [
        ("server_args", "starting", None, None),
        ("Init torch distributed begin", "distributed", None, None),
        ("Completed | 2/4", "weights", "target", (2, 4)),
        ("Memory pool end", "kv-cache", None, None),
        ("Capturing batches", "graph-capture", "target", (1, 4)),
        ("Capture draft cuda graph begin", "graph-capture", "draft", None),
        ("Capture draft extend cuda graph begin", "graph-capture", "draft-extend", None),
        ("Uvicorn running", "warm-up", None, None),
        ("Prefill batch", "warm-up", None, None),
    ],
)
def test_an_old_start_seen_on_its_way(
    upto: str, phase: str, part: str | None, progress: tuple[int, int] | None
) -> None:
    end = next(i for i, line in enumerate(OLD_START) if upto in line)
    reading = read(*OLD_START[: end + 1])
    assert (reading.phase, reading.part) == (phase, part)
    got = reading.progress and (reading.progress.done, reading.progress.total)
    assert got == progress


# 0.5.23: a dict, `Init parallel`, all weights before all graphs, the KV pool sized after the capture.
NEW_START = (
    stamped(0, "server_args={'model_path': 'meta/L', 'port': 31000, 'speculative_algorithm': 'EAGLE3', "
               "'speculative_draft_model_path': 'org/E3', 'admin_api_key': 'sk-secret', 'tokenizer_path': 'meta/L'}"),
    stamped(9, "Init parallel begin."),
    stamped(10, "Init parallel ends. elapsed=1.23 s"),
    stamped(12, "Load weight begin. avail mem=78.58 GB"),
    "Multi-thread loading shards:  50% Completed | 2/4 [00:01<00:01, 2.00it/s]\rMulti-thread loading shards: 100% Completed | 4/4 [00:02<00:00, 2.00it/s]",
    stamped(14, "Load weight end. elapsed=2.34 s, type=LlamaForCausalLM, avail mem=63.43 GB, mem usage=15.10 GB."),
    stamped(15, "Load weight begin. avail mem=63.43 GB"),
    stamped(16, "Load weight end. elapsed=0.90 s, type=LlamaForCausalLMEagle3, avail mem=62.43 GB, mem usage=1.10 GB."),
    stamped(17, "Full KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 900000, K size: 20.00 GB, V size: 20.00 GB"),
    stamped(17, "Memory pool end. avail mem=22.34 GB"),
    stamped(18, "Running FlashInfer autotune with cache: /root/.cache/flashinfer"),
    stamped(30, "FlashInfer autotune completed."),
    stamped(31, "Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4, 8], avail mem=20.00 GB"),
    "Capturing prefill shape (num_tokens=8 avail_mem=13.25 GB):  50%|█████     | 1/2 [00:00<00:00,  3.55it/s]",
    stamped(33, "Capture target prefill CUDA graph end. elapsed=2.00 s, mem usage=1.53 GB, avail mem=11.72 GB."),
    stamped(33, "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=4, avail mem=11.72 GB"),
    stamped(35, "Capture target verify CUDA graph end. bs=[1, 2], elapsed=2.00 s, mem usage=0.09 GB, avail mem=11.63 GB."),
    stamped(36, "Capture draft decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1, 2], avail mem=11.0 GB"),
    stamped(39, "Capture draft decode CUDA graph end. elapsed=3.00 s, mem usage=0.06 GB, avail mem=10.17 GB."),
    stamped(40, "Post-capture KV sizing: full_layer_tokens=800000, swa_layer_tokens=0"),
    stamped(40, "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 800000, KV size: 30.00 GB, avail mem=3.00 GB"),
    stamped(41, "max_total_num_tokens=800000, chunked_prefill_size=8192, context_len=131072, available_gpu_mem=3.00 GB"),
    stamped(42, "INFO:     Uvicorn running on http://127.0.0.1:31000 (Press CTRL+C to quit)"),
    stamped(44, "The server is fired up and ready to roll!"),
)  # fmt: skip


def test_a_new_start_both_models_before_the_graphs() -> None:
    reading = read(*NEW_START)
    assert reading.phase == "ready"
    assert order(reading) == [
        "starting", "distributed", "weights/target", "weights/draft", "kv-cache", "compile", "graph-capture/target",
        "graph-capture/draft", "kv-cache", "warm-up", "ready",
    ]  # fmt: skip
    assert reading.server.args["admin_api_key"] == "***"
    assert reading.server.args["tokenizer_path"] == "meta/L"
    assert "sk-secret" not in str(reading.to_json())


def test_weights_that_are_committed_after_the_graphs() -> None:
    # --startup-weight-load-mode overlap, 0.5.19 on
    reading = read(
        *NEW_START[:4],
        NEW_START[12],
        NEW_START[14],
        stamped(
            40,
            "Load weight end. Committed real weights after CUDA graph capture in 2.10 s (capture overlap window 1 s)",
        ),
        *NEW_START[-3:],
    )
    assert reading.phase == "ready"


def test_data_parallel_ranks_are_summed_and_accept_length_is_weighted() -> None:
    decode = (
        "Decode batch. #running-req: {run}, #token: 512, token usage: {kv}, accept len: {acc}, accept rate: 0.60, "
        "cuda graph: True, gen throughput (token/s): {tps}, #queue-req: {queue}, "
    )
    reading = read(
        *(stamped(s, decode.format(run=8, kv=0.5, acc=2.0, tps=400.5, queue=1), " DP0 TP0") for s in (1, 9)),
        *(stamped(s, decode.format(run=24, kv=0.7, acc=3.0, tps=1200.0, queue=2), " DP1 TP4") for s in (2, 10)),
        # a rank that stopped working minutes ago is not part of the interval
    )
    metrics = reading.metrics
    assert metrics is not None
    assert metrics.gen_throughput_tok_s == 1600.5
    assert (metrics.running, metrics.queued) == (32, 3)
    assert metrics.accept_length == pytest.approx(2.75)
    assert metrics.kv_usage == pytest.approx(0.6)
    assert reading.phase == "serving"


def test_a_rank_that_went_quiet_is_left_out_of_the_sum() -> None:
    decode = "Decode batch, #running-req: 4, #token: 9, token usage: 0.10, cuda graph: True, gen throughput (token/s): 100.0, #queue-req: 0"
    reading = read(
        stamped(1, decode, " DP0 TP0"), stamped(2, decode, " DP0 TP0"), stamped(2, decode, " DP1 TP1"),
        stamped(400, decode, " DP1 TP1"), stamped(401, decode, " DP1 TP1"),
    )  # fmt: skip
    assert reading.metrics is not None
    assert reading.metrics.running == 4


@pytest.mark.parametrize(
    "line",
    [
        "Decode batch. #running-req: 3, #token: 123, token usage: 0.25, accept len: 3.10, cuda graph: True, gen throughput (token/s): 123.45, #queue-req: 2",
        "Decode batch. #running-req: 3, #token: 123, token usage: 0.25, accept len: 3.10, accept rate: 0.78, cuda graph: True, gen throughput (token/s): 123.45, #queue-req: 2, ",
        "Decode batch [1234], #running-req: 3, #full token: 9, full token usage: 0.25, #swa token: 3, swa token usage: 0.50, accept len: 3.10, accept rate: 0.53, cap len: 4.00, block accept len: 9.99, cuda graph: True, gen throughput (token/s): 123.45, #queue-req: 2, est. decode TFLOPS/s (per GPU): 1.00",
        "Decode batch, #running-req: 3, #token: 5, token usage: 0.25, mamba num: 4, mamba usage: 0.90, accept len: 3.10, accept rate: 0.70, pre-allocated usage: 0.10, #prealloc-req: 1, #transfer-req: 0, #retracted-req: 0, npu graph: True, gen throughput (token/s): 123.45, #queue-req: 2, fwd occupancy: 1.00%, fwd+idle occupancy: 2.00%",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_wording_of_a_decode_line(line: str, end: str) -> None:
    data = (stamped(1, line) + end) * 7
    for reading in (read_bytes(data.encode()), read_bytes(data.encode(), engine="sglang")):
        assert reading.metrics is not None
        assert reading.metrics.accept_length == 3.10
        assert reading.metrics.gen_throughput_tok_s == 123.45
        assert (reading.metrics.running, reading.metrics.queued, reading.metrics.kv_usage) == (3, 2, 0.25)


def test_the_first_window_after_idle_is_dropped_and_probes_are_no_traffic() -> None:
    probe = (
        "Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0"
    )
    prompt = "Prefill batch, #new-seq: 1, #new-token: 99, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0"
    decode = "Decode batch, #running-req: 1, #token: {}, token usage: 0.10, accept len: {}, cuda graph: True, gen throughput (token/s): {}, #queue-req: 0"
    start = (*NEW_START, stamped(50, probe), stamped(51, probe))
    idle = read(*start)
    assert (idle.phase, idle.metrics) == ("ready", None)
    burst = (stamped(60, prompt), stamped(61, decode.format(9, 2.5, 0.4)))
    first = read(*start, *burst)
    assert first.phase == "serving"
    assert first.metrics is not None
    assert first.metrics.gen_throughput_tok_s is None
    assert first.metrics.accept_length == 2.5
    full = read(
        *start,
        *burst,
        stamped(61, decode.format(9, 2.8, 170.0)),
        stamped(70, probe),
        stamped(71, decode.format(0, 1.0, 2.0)),
    )
    assert full.metrics is not None
    assert (full.metrics.accept_length, full.metrics.gen_throughput_tok_s) == (2.8, 170.0)
    assert full.phase == "ready"
    entry = next(e for e in full.timeline if e.phase == "serving")
    assert (entry.count, entry.seconds) == (1, 10.0)
    ready = next(e for e in full.timeline if e.phase == "ready")
    assert (ready.count, ready.start_s) == (2, 44.0)


def test_ready_is_void_after_the_port_could_not_be_bound() -> None:
    reading = read(
        *NEW_START[:-2],
        stamped(
            42,
            "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 31000): address already in use",
        ),
        stamped(42, "INFO:     Waiting for application shutdown."),
        stamped(44, "The server is fired up and ready to roll!"),
        stamped(
            45,
            "Prefill batch, #new-seq: 1, #new-token: 9, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0",
        ),
    )
    assert reading.phase == "failed"
    assert reading.failure is not None
    assert reading.failure.failure_class == "port-in-use"
    assert "ready" not in order(reading)


def test_the_last_of_several_starts_is_read() -> None:
    crash = (
        stamped(50, "Scheduler hit an exception: Traceback (most recent call last):", " TP0"),
        '  File "/sgl/x.py", line 1, in f',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB",
        "",
        stamped(51, "Received sigquit from a child process. It usually means the child failed."),
    )
    first = (*OLD_START[:20], *crash)
    alone = read(*first)
    assert alone.failure is not None
    assert alone.failure.failure_class == "gpu-oom"
    again = read(*first, *NEW_START)
    assert (again.phase, again.starts, again.failure, again.suspect) == ("ready", 2, None, None)
    assert again.server.port == 31000
    assert again.timeline[0].line_no == len(first) + 1
    assert again.timeline[0].start_s == 0.0
    third = read(
        *first,
        *NEW_START,
        stamped(90, "SIGTERM received. signum=15 frame=None. Draining requests and shutting down..."),
        stamped(95, "kill_process_tree called: parent_pid=1, include_parent=True, pid=1"),
        *OLD_START[:8],
    )
    assert (third.phase, third.starts) == ("weights", 3)


def test_two_nodes_in_one_file_are_one_start() -> None:
    reading = read(OLD_START[0], OLD_START[0].replace("port=30000", "port=30000, node_rank=1"), *OLD_START[1:])
    assert (reading.starts, reading.phase) == (1, "ready")


def test_a_stop_that_was_asked_for_is_no_failure() -> None:
    asked = (
        *NEW_START,
        stamped(60, "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."),
    )
    assert read(*asked).phase == "stopping"
    assert read(*asked, dead=True).phase == "stopped"
    crashed = stamped(
        61, "Subprocess scheduler_0 (pid=7248) crashed with exit code -15. Triggering SIGQUIT for cleanup..."
    )
    ended = stamped(66, "kill_process_tree called: parent_pid=7067, include_parent=True, pid=7067")
    reading = read(*asked, crashed, ended)
    assert (reading.phase, reading.failure) == ("stopped", None)


def test_gone_without_a_word_is_killed_and_said_to_be_that() -> None:
    reading = read(*NEW_START[:6], dead=True)
    assert reading.phase == "failed"
    assert reading.failure is not None
    assert (reading.failure.failure_class, reading.failure.line, reading.failure.in_phase) == (
        "killed",
        None,
        "weights",
    )
    assert read(*NEW_START[:6]).failure is None


def test_ranks_that_are_behind_are_seen() -> None:
    lines = [stamped(12, "Load weight begin. avail mem=78.58 GB", f" TP{r}") for r in range(4)]
    lines += [
        stamped(20, "Load weight end. elapsed=8.00 s, type=L, avail mem=1 GB, mem usage=1 GB.", f" TP{r}")
        for r in (0, 1, 3)
    ]
    lines += [stamped(22, "Memory pool end. avail mem=12.34 GB", f" TP{r}") for r in (0, 1, 3)]
    lines += [stamped(24, "Capture cuda graph begin. This can take up to several minutes. avail mem=11.86 GB", " TP0")]
    reading = read(*lines)
    assert reading.phase == "graph-capture"
    assert {rank.rank: rank.phase for rank in reading.ranks} == {
        "TP0": "graph-capture", "TP1": "kv-cache", "TP2": "weights", "TP3": "kv-cache",
    }  # fmt: skip


def test_a_worker_node_has_no_ready_line_of_its_own() -> None:
    reading = read(
        *OLD_START[1:12], stamped(60, "Dummy health check server started in background thread at 0.0.0.0:30000")
    )
    assert reading.phase == "ready"


def test_warnings_of_a_busy_server() -> None:
    reading = read(
        *NEW_START,
        stamped(
            60,
            "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 1048, #new_token_ratio: 0.5 -> 0.6",
        ),
        stamped(
            61,
            "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: 06:09:21.",
        ),
        stamped(62, "Received output for rid='a' but the state was deleted in TokenizerManager."),
    )
    assert {w.warning_class for w in reading.warnings} >= {"kv-full", "health-failing", "zombie-requests"}
    assert reading.failure is None


def test_speculation_that_does_nothing_is_said() -> None:
    decode = "Decode batch, #running-req: 4, #token: 9, token usage: 0.10, accept len: 1.02, cuda graph: True, gen throughput (token/s): 90.0, #queue-req: 0"
    plain = decode.replace("accept len: 1.02, ", "")
    useless = read(*NEW_START, *(stamped(60 + i, decode) for i in range(4)))
    assert "speculation-useless" in {w.warning_class for w in useless.warnings}
    off = read(*NEW_START, *(stamped(60 + i, plain) for i in range(4)))
    assert "speculation-off" in {w.warning_class for w in off.warnings}


def test_a_decode_line_that_is_cut_gives_no_number_that_may_go_on() -> None:
    decode = stamped(
        60,
        "Decode batch, #running-req: 64, #token: 9, token usage: 0.10, cuda graph: True, gen throughput (token/s): 1234.5, #queue-req: 133",
    )
    reader = Reader()
    reader.feed(("\n".join(NEW_START) + "\n" + (decode + "\n") * 2 + decode[:-2]).encode())
    reading = reader.reading()
    assert reading.metrics is not None
    assert reading.metrics.queued in (None, 133)
