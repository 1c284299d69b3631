"""Each engine's wordings, by version: what one message means."""

# Log lines stay whole.
# ruff: noqa: E501

from __future__ import annotations

import pytest

from specconsole.core.reading.dialect import load, load_all
from specconsole.core.reading.events import (
    Busy,
    Count,
    Enter,
    Event,
    Facts,
    Heartbeat,
    HttpUp,
    Idle,
    Leave,
    Line,
    Prefill,
    Ready,
    StopAsked,
    Stopped,
    Warn,
    Window,
)

TABLE: list[tuple[str, str, str, list[Event]]] = [
    # engine, version, message, events that must be among those it gives
    ("vllm", "0.32", " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0", [Facts(version="0.32.0")]),
    ("vllm", "0.32", "  █▄█▀ █     █     █     █  model   models/tiny-hf", [Facts(model="models/tiny-hf")]),
    ("vllm", "0.10", "vLLM API server version 0.10.2", [Facts(version="0.10.2")]),
    ("vllm", "0.6", "Initializing an LLM engine (v0.6.3) with config: model='acme/M', speculative_config=None", [Facts(version="0.6.3", model="acme/M")]),
    ("vllm", "0.8", "Initializing a V0 LLM engine (v0.8.5) with config: model='acme/M', speculative_config=None", [Facts(version="0.8.5", model="acme/M")]),
    ("vllm", "0.33", "Initializing a V1 LLM engine (v0.33.0) with config: model='t', speculative_config=SpeculativeConfig(method='eagle3', model='d', num_spec_tokens=3), x=1", [Facts(version="0.33.0", model="t", draft_model="d", args={"num_speculative_tokens": 3})]),
    ("vllm", "0.33", "vLLM is using nccl==2.27.3", [Enter("distributed", stay=True)]),
    ("vllm", "0.20", "rank 1 in world size 2 is assigned as DP rank 0, PP rank 0, TP rank 1, EP rank 1", [Enter("distributed", stay=True)]),
    ("vllm", "0.33", "Starting to load model models/large-hf...", [Enter("weights", "target"), Facts(model="models/large-hf")]),
    ("vllm", "0.10", "Loading drafter model...", [Enter("weights", "draft")]),
    ("vllm", "0.33", "Loading weights took 2.00 seconds", [Leave("weights", seconds=2.0)]),
    ("vllm", "0.10", "Model loading took 14.9889 GiB and 5.123456 seconds", [Leave("weights", seconds=5.123456)]),
    ("vllm", "0.33", "Model loading took 14.99 GiB memory and 12.345678 seconds", [Leave("weights", seconds=12.345678)]),
    ("vllm", "0.6", "Loading model weights took 14.9888 GB", [Leave("weights")]),
    ("vllm", "0.10", "Using cache directory: /root/.cache/vllm/torch_compile_cache/ab/rank_0_0/backbone for vLLM's torch.compile", [Enter("compile")]),
    ("vllm", "0.14", "torch.compile takes 16.02 s in total", [Leave("compile", seconds=16.02)]),
    ("vllm", "0.33", "torch.compile took 45.21 s in total", [Leave("compile", seconds=45.21)]),
    ("vllm", "0.33", "Compiling a graph for compile range (1, 8192) takes 20.11 s", [Enter("compile", stay=True)]),
    ("vllm", "0.33", "Directly load the compiled graph(s) for compile range (1, 8192) from the cache, took 0.512 s", [Enter("compile", stay=True)]),
    ("vllm", "0.33", "JIT kernel warmup starting.", [Enter("compile")]),
    ("vllm", "0.6", "# GPU blocks: 27839, # CPU blocks: 2340", [Enter("kv-cache")]),
    ("vllm", "0.8", "# cuda blocks: 27839, # CPU blocks: 2340", [Enter("kv-cache")]),
    ("vllm", "0.10", "Available KV cache memory: 49.07 GiB", [Enter("kv-cache")]),
    ("vllm", "0.10", "GPU KV cache size: 412,345 tokens", [Enter("kv-cache")]),
    ("vllm", "0.33", "GPU + host KV cache size: 209,664 tokens, Maximum concurrency for 2,048 tokens per request: 102.38x", [Enter("kv-cache")]),
    ("vllm", "0.6", "Capturing the model for CUDA graphs. This may lead to unexpected consequences if the model is not static.", [Enter("graph-capture", "target")]),
    ("vllm", "0.9", "Capturing cudagraphs for decoding. This may lead to unexpected consequences if the model is not static.", [Enter("graph-capture", "target")]),
    ("vllm", "0.33", "Graph capturing finished in 21 secs, took 0.93 GiB", [Leave("graph-capture", seconds=21.0)]),
    ("vllm", "0.10", "init engine (profile, create kv cache, warmup model) took 44.01 seconds", [Enter("warm-up")]),
    ("vllm", "0.14", "Starting vLLM API server 0 on http://0.0.0.0:8000", [Enter("warm-up"), Facts(port=8000)]),
    ("vllm", "0.20", "Starting vLLM server on http://0.0.0.0:8001", [Enter("warm-up"), Facts(port=8001)]),
    ("vllm", "any", "Application startup complete.", [Ready()]),
    ("vllm", "0.10", "Waiting for 1 local, 0 remote core engine proc(s) to start.", [Heartbeat()]),
    ("vllm", "0.9", "Waiting for 1 core engine proc(s) to start: {0}", [Heartbeat()]),
    ("vllm", "0.33", "No available shared memory broadcast block found in 60 seconds. This typically happens when some", [Heartbeat()]),
    ("vllm", "0.10", "Engine 000: Avg prompt throughput: 2.8 tokens/s, Avg generation throughput: 124.6 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 3.1%, Prefix cache hit rate: 0.0%", [Window(gen_throughput_tok_s=124.6, running=1, queued=0, kv_usage=0.031, group="0", spans_idle=False)]),
    ("vllm", "0.33", "Engine 001: Avg prompt throughput: 2.8 tokens/s, Avg generation throughput: 9.5 tokens/s, Running: 2 reqs, Waiting: 1 reqs, Deferred: 0 reqs, Preemptions: 0, CPU KV cache usage: 50.0%, Prefix cache hit rate: 0.0%", [Window(gen_throughput_tok_s=9.5, running=2, queued=1, kv_usage=0.5, group="1", spans_idle=False)]),
    ("vllm", "0.6", "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 41.2 tokens/s, Running: 6 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 7.4%, CPU KV cache usage: 0.0%", [Window(gen_throughput_tok_s=41.2, running=6, queued=2, kv_usage=0.074, spans_idle=False)]),
    ("vllm", "0.33", "SpecDecoding metrics: Mean acceptance length: 2.05, Accepted throughput: 63.82 tokens/s, Drafted throughput: 182.05 tokens/s", [Window(accept_length=2.05, opens=False)]),
    ("vllm", "0.33", "[shutdown] API server: shutdown triggered", [StopAsked()]),
    ("vllm", "0.10", "Shutting down FastAPI HTTP server.", [StopAsked()]),
    ("vllm", "any", "Application shutdown complete.", [Stopped()]),
    ("vllm", "any", '127.0.0.1:46980 - "POST /v1/completions HTTP/1.1" 200 OK', [Busy()]),
    ("vllm", "any", '127.0.0.1:46980 - "POST /v1/completions HTTP/1.1" 400 Bad Request', []),
    ("llamacpp", "b11434", "srv  llama_server: initializing ...", [Enter("starting")]),
    ("llamacpp", "b11549", "srv          init: initializing ...", [Enter("starting")]),
    ("llamacpp", "b4567", "build: 4567 (a1b2c3d4) with gcc-11 (Ubuntu 11.4.0) for x86_64-linux-gnu", [Facts(version="b4567")]),
    ("llamacpp", "b10434", "srv    load_model: loading model 'models/tiny.gguf'", [Enter("weights", "target"), Facts(model="models/tiny.gguf")]),
    ("llamacpp", "b3000", "main: loading model", [Enter("weights", "target")]),
    ("llamacpp", "b10434", "common_speculative_init_result: loading draft model 'd.gguf'", [Enter("weights", "draft"), Facts(draft_model="d.gguf")]),
    ("llamacpp", "b5000", "srv    load_model: loading draft model 'd.gguf'", [Enter("weights", "draft"), Facts(draft_model="d.gguf")]),
    ("llamacpp", "b4567", "....................................", [Count(36, 100, "percent", "weights")]),
    ("llamacpp", "b10434", "srv  llama_server: listening on http://127.0.0.1:18100", [Ready(), Facts(port=18100)]),
    ("llamacpp", "b4567", "main: server is listening on http://127.0.0.1:8080 - starting the main loop", [Ready(), Facts(port=8080)]),
    ("llamacpp", "b10434", "slot launch_slot_: id  1 | task 2 | processing task, is_child = 0", [Busy()]),
    ("llamacpp", "b10434", "slot      release: id  1 | task 2 | stop processing: n_tokens = 32, truncated = 0", [Idle()]),
    ("llamacpp", "b8000", "srv  update_slots: all slots are idle", [Idle()]),
    ("llamacpp", "b10434", "slot print_timing: id  0 | task 0 |        eval time =    4105.50 ms /   400 tokens (   10.26 ms per token,    97.43 tokens per second)", [Window(gen_throughput_tok_s=97.43, spans_idle=False)]),
    ("llamacpp", "b4567", "       eval time =    4105.50 ms /   400 tokens (   10.26 ms per token,    97.43 tokens per second)", [Window(gen_throughput_tok_s=97.43, spans_idle=False)]),
    ("llamacpp", "b10434", "slot print_timing: id  0 | task 0 | prompt eval time =     412.06 ms /    31 tokens (   13.29 ms per token,    75.23 tokens per second)", []),
    ("llamacpp", "b10434", "slot print_timing: id  1 | task 2 | draft acceptance = 0.52632 (   40 accepted /    76 generated), mean len =  3.11", [Window(accept_length=3.11, opens=False)]),
    ("llamacpp", "b9500", "slot print_timing: id  0 | task 0 | draft acceptance = 0.54386 (  248 accepted /   456 generated), mean acceptance length =  2.63, acceptance rate per position = (0.763)", [Window(accept_length=2.63, opens=False)]),
    ("llamacpp", "b6000", "slot print_timing: id  0 | task 0 | draft acceptance rate = 0.57576 (  171 accepted /   297 generated)", []),
    ("llamacpp", "b10434", "srv    operator(): operator(): cleaning up before exit...", [StopAsked()]),
    ("tensorrt-llm", "0.21", "TensorRT-LLM version: 0.21.0", [Facts(version="0.21.0")]),
    ("tensorrt-llm", "0.9", "MPI size: 4, MPI local size: 4, rank: 2", [Enter("distributed", stay=True)]),
    ("tensorrt-llm", "0.9", "Loaded engine size: 9120 MiB", [Enter("weights", "target")]),
    ("tensorrt-llm", "0.9", "Max tokens in paged KV cache: 38144. Allocating 4999610368 bytes.", [Enter("kv-cache")]),
    ("tensorrt-llm", "1.0", "[MemUsageChange] Allocated 78.30 GiB for max tokens in paged KV cache (3731744).", [Enter("kv-cache")]),
    ("tensorrt-llm", "1.0", "Run generation-only CUDA graph warmup for batch size=32, draft_len=3", [Enter("graph-capture", "target")]),
    ("tensorrt-llm", "1.0", '"Started HTTPService at 0.0.0.0:8000"', [HttpUp(8000), Ready()]),
    ("tensorrt-llm", "1.0", "Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)", [HttpUp(8000), Ready()]),
    ("tgi", "2.0", "Starting shard rank=0", [Enter("weights", "target")]),
    ("tgi", "2.0", "Download: [3/30] -- ETA: 0:12:00", [Count(3, 30, "file", "download")]),
    ("tgi", "2.0", "Shard ready in 63.51s rank=0", [Leave("weights", seconds=63.51)]),
    ("tgi", "3.0", "router/src/server.rs:2402: Connected", [Ready()]),
    ("ollama", "0.5", "Listening on 127.0.0.1:11434 (version 0.5.7)", [Facts(version="0.5.7", port=11434), Ready()]),
    ("ollama", "0.5", "model load progress 0.45", [Count(45, 100, "percent", "weights", "target")]),
    ("ollama", "0.5", "llama runner started in 5.01 seconds", [Leave("weights", seconds=5.01), Ready()]),
    ("hub", "0.24", "Downloading 'model-00001-of-00030.safetensors' to '/d/blobs/4f.incomplete'", [Enter("download")]),
    ("sglang", "0.4.6", "Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ", [Prefill(7, 0, 0, 0.0)]),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "version", "message", "expected"), TABLE)
def test_one_message(engine: str, version: str, message: str, expected: list[Event]) -> None:
    del version
    dialect = load(engine)
    assert dialect is not None
    got = list(dialect.parse(Line(text=message, no=1)))
    if not expected:
        assert got == []
    for event in expected:
        assert event in got
    if got:
        raw = "".join(c for c in message if not c.isdigit()).encode()
        bare = ["".join(c for c in literal.decode() if not c.isdigit()).encode() for literal in dialect.literals]
        assert any(literal and literal in raw for literal in bare), "no literal lets this line through"


@pytest.mark.parametrize(
    ("engine", "message", "kind"),
    [
        ("vllm", "Overriding draft model max model len from 4096 to 2048", "setting-overridden"),
        (
            "vllm",
            "The draft model's max_model_len (4096) is smaller than the target model's (8192). reducing max_model_len to 4096.",
            "setting-overridden",
        ),
        (
            "vllm",
            "Async scheduling not supported with ngram-based speculative decoding and will be disabled.",
            "setting-overridden",
        ),
        (
            "vllm",
            "Sequence group 12 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.",
            "kv-full",
        ),
        (
            "vllm",
            "Argument '--disable-log-requests' is deprecated and replaced with '--enable-log-requests'.",
            "deprecated-flag",
        ),
        (
            "llamacpp",
            "srv    load_model: failed to initialize speculative decoding context: draft model vocab type must match",
            "speculation-off",
        ),
        (
            "llamacpp",
            "srv    load_model: the slot context (32768) exceeds the training context of the model (4096) - capping",
            "setting-overridden",
        ),
    ],
)
def test_a_message_that_is_worth_a_look(engine: str, message: str, kind: str) -> None:
    dialect = load(engine)
    assert dialect is not None
    got = [event.warning_class for event in dialect.parse(Line(text=message, no=1)) if isinstance(event, Warn)]
    assert got == [kind]


def test_what_only_one_engine_prints_is_claimed_by_no_other() -> None:
    dialects = load_all()
    assert {d.engine for d in dialects} == {
        "sglang",
        "vllm",
        "llamacpp",
        "tensorrt-llm",
        "tgi",
        "ollama",
        "hub",
        "transformers",
    }
    sure = {
        "vllm": "Initializing a V1 LLM engine (v0.33.0) with config: model='t'",
        "llamacpp": "srv  llama_server: listening on http://127.0.0.1:18100",
        "tensorrt-llm": "TensorRT-LLM version: 0.21.0",
        "sglang": "The server is fired up and ready to roll!",
    }
    for engine, message in sure.items():
        claims = {d.engine: d.evidence(Line(text=message, no=1)) for d in dialects}
        assert max(claims, key=lambda name: claims[name]) == engine
        assert [name for name, weight in claims.items() if weight == 3] == [engine]
