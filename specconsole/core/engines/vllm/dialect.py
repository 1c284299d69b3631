"""vLLM's lines, 0.6 (V0) to 0.33 (V1, both model runners), CUDA, ROCm, CPU and the Ascend plug-in.

Order of a start, from `v1/engine/core.py`, `v1/worker/gpu_model_runner.py` and the recorded starts: banner and
arguments, engine process, process groups, target weights, draft weights, compile, memory profile and KV cache,
graphs, `init engine`, HTTP. The server sends no warm-up request; its last word is uvicorn's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from specconsole.core.engines.vllm.dialect_serving import SERVING_ROWS
from specconsole.core.engines.vllm.dialect_steady import AccessLines
from specconsole.core.reading.events import (
    Enter,
    Event,
    Facts,
    Heartbeat,
    HttpUp,
    Leave,
    Ready,
    Started,
    StopAsked,
    Stopped,
    Warn,
)
from specconsole.core.reading.generic_table import Row, TableDialect, number, row
from specconsole.core.reading.generic_values import literal_dict


def _args(match: re.Match[str]) -> Sequence[Event]:
    args = literal_dict(match[1])
    spec = args.get("speculative_config")
    draft: str | None = None
    if isinstance(spec, dict):
        draft = spec.get("model") if isinstance(spec.get("model"), str) else None
        for key in ("method", "num_speculative_tokens"):
            if key in spec:
                args.setdefault("speculative_method" if key == "method" else key, spec[key])
    model = args.get("model") or args.get("model_tag")
    port = args.get("port")
    return (
        Enter("starting"),
        Facts(
            model=model if isinstance(model, str) else None,
            draft_model=draft,
            port=port if isinstance(port, int) else None,
            args=args,
        ),
    )


def _engine_config(match: re.Match[str]) -> Sequence[Event]:
    config = match[2]
    model = re.search(r"\bmodel='([^']+)'", config)
    draft = re.search(r"SpeculativeConfig\([^)]*?\bmodel='([^']+)'", config)
    count = re.search(r"\bnum_spec(?:ulative)?_tokens=(\d{1,6})", config)
    args: dict[str, Any] = {"num_speculative_tokens": int(count[1])} if count else {}
    target = model[1] if model else None
    draft_model = draft[1] if draft and draft[1] != target else None
    return (Enter("starting"), Facts(version=match[1], model=target, draft_model=draft_model, args=args))


def _port(match: re.Match[str]) -> Sequence[Event]:
    port = int(match[1])
    return (Enter("warm-up"), Facts(port=port)) if 0 < port < 65536 else (Enter("warm-up"),)


def _leave(phase: Any) -> Any:
    return lambda match: (Leave(phase, seconds=number(match[1])),)


START_ROWS: tuple[Row, ...] = (
    # `(APIServer pid=4051) INFO 11-29 14:09:58 [api_utils.py:347]  ▄▄ ▄█ █  █  █ ▀▄▀ █  version 0.32.0` (0.3x logo)
    row("█  version ", r"█  version (\S+)", make=lambda m: (Started(), Enter("starting"), Facts(version=m[1]))),
    # `   █▄█▀ █     █     █     █  model   models/tiny-hf`
    row("█  model ", r"█  model +(\S.*)$", make=lambda m: (Facts(model=m[1].strip()),)),
    # `INFO 09-21 10:01:11 [api_server.py:1896] vLLM API server version 0.10.2` (0.5 to 0.2x, entrypoints/openai)
    row("vLLM API server version", r"vLLM API server version (\S+)", make=lambda m: (Started(), Facts(version=m[1]))),
    # `non-default args: {'model_tag': 'models/tiny-hf', 'port': 18000, 'speculative_config': {...}}` (0.9 to 0.33)
    row("non-default args:", r"non-default args: (\{.*)", make=_args),
    # `Initializing a V1 LLM engine (v0.32.0) with config: model='models/tiny-hf', ...` (core.py:133; V0: `an LLM
    # engine`)
    row("LLM engine (v", r"Initializing an? (?:V\d )?LLM engine \(v([^)]+)\) with config: (.*)", make=_engine_config),
    # `Automatically detected platform cuda.` (platforms/__init__.py, 0.7 to 0.2x)
    row("Automatically detected platform", r"Automatically detected platform \w+", Enter("starting")),
    # `Initializing Ray ... ` / `Started a local Ray instance.` / `Connecting to existing Ray cluster at address: ...`
    row("Ray ", r"(?:Started a local|Connecting to existing) Ray (?:instance|cluster)", Enter("distributed")),
    # `world_size=4 rank=0 local_rank=0 distributed_init_method=tcp://... backend=nccl` (parallel_state.py:1906)
    row("distributed_init_method=", r"^world_size=\d+ rank=\d+", Enter("distributed", stay=True)),
    # `vLLM is using nccl==2.27.3` (pynccl.py:93; the Ascend plug-in says hccl)
    row("vLLM is using", r"vLLM is using (?:nccl|rccl|hccl)", Enter("distributed", stay=True)),
    # `rank 0 in world size 2 is assigned as DP rank 0, PP rank 0, TP rank 0, EP rank 0` (parallel_state.py)
    row("in world size", r"rank \d+ in world size \d+ is assigned as", Enter("distributed", stay=True)),
    # `Time spent downloading weights for acme/M: 512.231 seconds` (weight_utils.py)
    row("Time spent downloading weights", r"downloading weights for .*?: ([\d.]+) s", make=_leave("download")),
    # `Starting to load model models/tiny-hf...` (gpu_model_runner.py, cpu_model_runner.py:68, model_runner_v1.py on
    # NPU)
    row(
        "Starting to load model",
        r"Starting to load model (.+?)\.\.\.$|Starting to load model",
        make=lambda m: (Enter("weights", "target"), *((Facts(model=m[1]),) if m[1] else ())),
    ),
    # `Loading drafter model...` (gpu_model_runner.py:1549)
    row("Loading drafter model", r"^Loading drafter model", Enter("weights", "draft")),
    # `Loading model from scratch...` (gpu_model_runner.py, 0.10; V2 runner 0.33)
    row("Loading model from scratch", r"^Loading model from scratch", Enter("weights", stay=True)),
    # `Loading weights took 2.00 seconds` (default_loader.py:501; once for the target, once for the draft)
    row("Loading weights took", r"^Loading weights took ([\d.]+) seconds", make=_leave("weights")),
    # `Model loading took 15.0 GiB memory and 12.345678 seconds` (0.10: `Model loading took 14.98 GiB and 5.1
    # seconds`):
    # all models are in, the profiling run begins
    row(
        "odel loading took",
        r"odel loading took .*? and ([\d.]+) seconds",
        make=lambda m: (Leave("weights", seconds=number(m[1])), Enter("kv-cache", stay=True)),
    ),
    # `Loading model weights took 14.9888 GB` (V0 to 0.6; once a model)
    row("Loading model weights took", r"^Loading model weights took", Leave("weights")),
    # `model weights take 14.99GiB; non_torch_memory takes ...` (V0 worker.py); `Memory profiling takes 5.42 seconds`
    row("Memory profiling takes", r"Memory profiling takes", Enter("kv-cache")),
    # `# GPU blocks: 27839, # CPU blocks: 2340` (V0 executor; later `# cuda blocks:`, `# rocm blocks:`, `# npu
    # blocks:`)
    row(" blocks: ", r"^# \w+ blocks: \d+, # CPU blocks", Enter("kv-cache")),
    # `Available KV cache memory: 49.07 GiB` (gpu_worker.py:276)
    row("Available KV cache memory", r"^Available KV cache memory", Enter("kv-cache")),
    # `Explicitly set (1.0/23.54) GiB for KV cache on node 0.` (cpu_worker.py:260)
    row("for KV cache", r"^Explicitly set .* for KV cache", Enter("kv-cache")),
    # `GPU KV cache size: 412,345 tokens` (kv_cache_utils.py:634); 0.33: `CPU KV cache size: 116,480 tokens, Maximum
    # ...`
    row("KV cache size:", r"KV cache size: ([\d,]+) tokens", Enter("kv-cache")),
    # `Maximum concurrency for 32,768 tokens per request: 7.05x`
    row("Maximum concurrency for", r"^Maximum concurrency for", Enter("kv-cache", stay=True)),
    # `Using cache directory: /root/.cache/vllm/torch_compile_cache/... for vLLM's torch.compile` (backends.py:539)
    row("torch.compile", r"for vLLM's torch\.compile$", Enter("compile")),
    # `torch.compile takes 16.02 s in total` (monitor.py:33, to 0.14) / `torch.compile took 45.21 s in total`
    row("torch.compile t", r"torch\.compile (?:takes|took) ([\d.]+) s in total", make=_leave("compile")),
    # `Dynamo bytecode transform time: 8.50 s`; `Compiling a graph for compile range (1, 8192) takes 20.11 s`
    row("Dynamo bytecode transform", r"Dynamo bytecode transform time", Enter("compile")),
    row("ompil", r"^(?:\[\w+\] )?Compiling (?:a graph|model again)", Enter("compile", stay=True)),
    # `Cache the graph for dynamic shape for later use`; `Directly load the compiled graph(s) for ... from the cache`
    row("the graph", r"^Cache the graph (?:for|of)", Enter("compile", stay=True)),
    row("compiled graph", r"^Directly load the compiled graph", Enter("compile", stay=True)),
    # `Warming up model for the compilation...`, `Warming up done.` (cpu_model_runner.py:87, :91)
    row("Warming up", r"^Warming up model for the compilation", Enter("compile")),
    row("Warming up done", r"^Warming up done", Leave("compile")),
    # `saved AOT compiled function to /...` (decorators.py:743); `Initial profiling/warmup run took 16.88 s`
    # (monitor.py:91)
    row("AOT compiled function", r"saved AOT compiled function to", Enter("compile", stay=True)),
    # `flashinfer.jit: [Autotuner]: Autotuning process starts ...` (flashinfer under vLLM 0.14 on)
    row("Autotuning process", r"Autotuning process starts", Enter("compile", stay=True)),
    # `Warming up Qwen Triton kernels for model_type=...` (qwen_triton_warmup.py, 0.2x)
    row("Warming up", r"^Warming up .*kernels", Enter("compile", stay=True)),
    # `[aiter] start build [module_fmha_v3_varlen_fwd] under /opt/aiter/jit/build/...` (ROCm)
    row("start build [", r"start build \[\w+\]", Enter("compile", stay=True)),
    # `JIT kernel warmup starting.` (0.32 kernel warm-up); `Running FlashInfer autotune with ...`
    row("JIT kernel warmup", r"JIT kernel warmup starting", Enter("compile")),
    row("JIT kernel warmup finished", r"JIT kernel warmup finished in ([\d.]+)", make=_leave("compile")),
    # `Capturing the model for CUDA graphs. This may lead to unexpected consequences ...` (V0 model_runner.py:1012)
    row(
        "apturing",
        r"^Capturing (?:the model for CUDA ?graphs|cudagraphs for decoding)",
        Enter("graph-capture", "target"),
    ),
    # `Capturing model for speculator...` (speculator.py:151, V2 runner)
    row("Capturing model for speculator", r"^Capturing model for speculator", Enter("graph-capture", "draft")),
    # `Graph capturing finished in 21 secs, took 0.93 GiB` (gpu_model_runner.py; NPU model_runner_v1.py the same)
    row("Graph capturing finished", r"Graph capturing finished in ([\d.]+) secs", make=_leave("graph-capture")),
    # `init engine (profile, create kv cache, warmup model) took 0.44 s` (core.py:402; older `... took 44.0 seconds`)
    row("init engine (", r"^init engine \(", Enter("warm-up")),
    # `Starting vLLM API server 0 on http://0.0.0.0:8000` (to 0.14) / `Starting vLLM server on http://127.0.0.1:18000`
    row("Starting vLLM", r"Starting vLLM (?:API )?server.* on https?://.*:(\d{1,5})\b", make=_port),
    # `Available routes are:` (launcher.py:186)
    row("Available routes are", r"^Available routes are", Enter("warm-up")),
    # `INFO:     Started server process [4051]` (uvicorn)
    row("Started server process", r"Started server process \[", Enter("warm-up")),
    # `INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)` (V0 and before the socket was bound
    # early)
    row(
        "Uvicorn running on",
        r"Uvicorn running on https?://.*:(\d{1,5})\b",
        make=lambda m: (HttpUp(int(m[1])), Facts(port=int(m[1]))),
    ),
    # `INFO:     Application startup complete.` (uvicorn; the server's last start-up word, all versions)
    row("Application startup complete", r"Application startup complete\.", Ready()),
    # `Waiting for 1 core engine proc(s) to start: {0}` (core_client.py:421, DEBUG)
    row("core engine proc", r"^Waiting for \d+ (?:local|remote|core).* to start", Heartbeat()),
    # `No available shared memory broadcast block found in 60 seconds. This typically happens when ...`
    # in shm_broadcast.py
    row(
        "shared memory broadcast block",
        r"^No available shared memory broadcast block found in \d+ seconds?|^No available block found in \d+ second",
        make=lambda m: (Heartbeat(), Warn("heartbeat-no-progress", m.string)),
    ),
)

STOP_ROWS: tuple[Row, ...] = (
    # `[shutdown] API server: shutdown triggered` (launcher.py:254, 0.32), `[shutdown] EngineCore: trigger received
    # signal=SIGTERM` (core.py:1454)
    row(
        "shutdown", r"^\[shutdown\] (?:API server: shutdown triggered|EngineCore: trigger received signal)", StopAsked()
    ),
    # `INFO:     Shutting down` (uvicorn) / `Shutting down FastAPI HTTP server.` (launcher.py, to 0.2x)
    row("Shutting down", r"^(?:INFO: +)?Shutting down(?: FastAPI HTTP server\.)?$", StopAsked()),
    # `Gracefully stopping http server` (launcher.py, V0)
    row("Gracefully stopping", r"Gracefully stopping http server", StopAsked()),
    # `INFO:     Application shutdown complete.` (uvicorn)
    row("Application shutdown complete", r"Application shutdown complete\.", Stopped()),
)

DIALECT = TableDialect(
    engine="vllm",
    steady=AccessLines(),
    rows=SERVING_ROWS + START_ROWS + STOP_ROWS,
    sure=(
        "vLLM API server version",
        "LLM engine (v",
        "non-default args:",
        "Starting vLLM",
        "Avg generation throughput:",
        "EngineCore",
        "vllm.v1.",
        "vllm.engine.",
        "/vllm/",
        "vllm: error:",
        "vllm serve",
        "init engine (profile",
        "VllmWorker",
        "RayWorkerVllm",
    ),
    tags=("Worker_", "EngineCore", "VllmWorker", "RayWorkerVllm", "APIServer", "ApiServer", "DPCoordinator"),
    hints=("VLLM_", "vllm", "vLLM", "Loading weights took", "torch.compile t", "KV cache size:"),
)
