"""TensorRT-LLM: the C++ runtime's lines, `trtllm-serve` (PyTorch back end), Triton and NIM around it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specconsole.core.reading.events import Enter, Event, Facts, HttpUp, Leave, Ready, Started, StopAsked, Stopped
from specconsole.core.reading.generic_table import Row, TableDialect, number, row


def _ready(match: re.Match[str]) -> Sequence[Event]:
    port = int(match[1])
    return (HttpUp(port), Facts(port=port), Ready())


_ROWS: tuple[Row, ...] = (
    # `[TensorRT-LLM] TensorRT-LLM version: 0.21.0` (tensorrt_llm/__init__.py, printed by every rank)
    row(
        "TensorRT-LLM version:", r"TensorRT-LLM version: (\S+)", make=lambda m: (Enter("starting"), Facts(version=m[1]))
    ),
    # `I0224 10:20:14.110233 120 model_lifecycle.cc:472] "loading: tensorrt_llm:1"` (Triton)
    row("loading: ", r"^\"?loading: [\w.-]+:\d+\"?$", Enter("starting", stay=True)),
    # `Initializing MPI with thread mode 3` / `MPI size: 4, MPI local size: 4, rank: 2` (C++ runtime)
    row("Initializing MPI", r"^Initializing MPI with thread mode", Started(), Enter("distributed")),
    row("MPI size:", r"^MPI size: \d+.*rank: \d+", Enter("distributed", stay=True)),
    # `Rank 2 is using GPU 2`: the engine file is read from here on
    row("is using GPU", r"^Rank \d+ is using GPU \d+", Enter("weights", "target", stay=True)),
    # `Loaded engine size: 9120 MiB`
    row("Loaded engine size:", r"^Loaded engine size: \d+ MiB", Enter("weights", "target")),
    # `Prefetching 15.00GB checkpoint files.` / `Loading /models/x-00001-of-4.safetensors` (PyTorch back end,
    # weight_loader.py)
    row("Prefetching", r"^Prefetching [\d.]+ ?GB checkpoint files", Enter("weights", "target")),
    # `Use 14.97 GB for model weights.` / `Model init total -- 23.41s` (model_loader.py, py_executor_creator.py)
    row(
        "Model init total", r"^Model init total -- ([\d.]+)s", make=lambda m: (Leave("weights", seconds=number(m[1])),)
    ),
    # `Using default max_tokens ...` / `Estimated max memory in KV cache : 88.51 GiB` (resource_manager.py, _util.py)
    row("memory in KV cache", r"max memory in KV cache", Enter("kv-cache")),
    # `Max tokens in paged KV cache: 38144. Allocating 4999610368 bytes.` / `Allocated 4.66 GiB for max tokens in
    # paged KV cache (38144).`
    row("paged KV cache", r"(?:Max|max) tokens in paged KV cache", Enter("kv-cache")),
    # `[Autotuner] Autotuning process starts ...` / `Running autotuner warmup...` (model_engine.py)
    row("utotun", r"Autotuning process starts|autotun(?:ing|er) warmup", Enter("compile")),
    row("Autotuning process ends", r"Autotuning process ends", Leave("compile")),
    # `Creating CUDA graph instances for 11 batch sizes.` / `Run generation-only CUDA graph warmup for batch
    # size=64, draft_len=3`
    row(
        "CUDA graph",
        r"Creating CUDA graph instances|CUDA graph warmup for batch size",
        Enter("graph-capture", "target"),
    ),
    # `Started GRPCInferenceService at 0.0.0.0:8001`, `Started HTTPService at 0.0.0.0:8000` (Triton, after every
    # model is loaded)
    row("Started HTTPService", r"Started HTTPService at .*:(\d{1,5})\b", make=_ready),
    # `INFO:     Started server process [1]` (uvicorn under trtllm-serve)
    row("Started server process", r"Started server process \[", Enter("warm-up")),
    # `INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)`: trtllm-serve and NIM bind when all
    # is loaded
    row("Uvicorn running on", r"Uvicorn running on https?://.*?:(\d{1,5})\b", make=_ready),
    row("Application startup complete", r"Application startup complete\.", Ready()),
    row("Shutting down", r"^(?:INFO: +)?Shutting down$", StopAsked()),
    row("Application shutdown complete", r"Application shutdown complete\.", Stopped()),
)

DIALECT = TableDialect(
    engine="tensorrt-llm",
    rows=_ROWS,
    sure=(
        "[TensorRT-LLM]",
        "[TRT-LLM]",
        "TensorRT-LLM version:",
        "tensorrt_llm/",
        "tensorrt_llm.",
        "trtllm-serve",
        "TRITONBACKEND_Initialize: tensorrtllm",
        "loading: tensorrt_llm",
    ),
    hints=("TensorRT-LLM", "Loaded engine size:", "paged KV cache", "MPI_ABORT was invoked"),
)
