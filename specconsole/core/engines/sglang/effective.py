"""SGLang's own account: `server_args` (line and /server_info), scheduler figures, start-up times.

/server_info from 0.5.6 on (`/get_server_info` before): all resolved arguments at the top, scheduler figures in
`internal_states[dp]`, `version`; from 0.5.19 on start-up times too (0.5.17 has them in `internal_states`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from specconsole.core.launching.effective import Effective, Said, Speculation, Vocabulary, whole

SECRET_KEYS = ("api_key", "admin_api_key", "ssl_keyfile_password", "launch_command")
VOCABULARY = Vocabulary(
    log_words=("max_total_num_tokens=", "Engine startup timings (s):", "is nccl==", "using nccl=="),
    aliases={
        "model": ("model_path",),
        "tp": ("tp_size",),
        "tensor_parallel_size": ("tp_size",),
        "dp": ("dp_size",),
        "data_parallel_size": ("dp_size",),
        "pp": ("pp_size",),
        "pipeline_parallel_size": ("pp_size",),
        "ep": ("ep_size",),
        "expert_parallel_size": ("ep_size",),
        "speculative_draft_model": ("speculative_draft_model_path",),
        # Renamed in 0.5.15; the old names stayed until 0.5.19 (srt/server_args.py).
        "cuda_graph_max_bs": ("cuda_graph_max_bs", "cuda_graph_max_bs_decode"),
        "cuda_graph_bs": ("cuda_graph_bs", "cuda_graph_bs_decode"),
    },
    worth_telling=(
        "attention_backend", "sampling_backend", "mem_fraction_static", "chunked_prefill_size",
        "max_running_requests", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
        "speculative_draft_attention_backend", "cuda_graph_max_bs", "cuda_graph_max_bs_decode", "disable_cuda_graph",
        "disable_overlap_schedule", "page_size", "kv_cache_dtype", "quantization", "random_seed",
    ),
    complete=True,
)  # fmt: skip
# [2026-11-29 14:13:00] max_total_num_tokens=1837968, chunked_prefill_size=8192, max_prefill_tokens=16384,
# max_running_requests=48, context_len=4096, available_gpu_mem=10.09 GB   (managers/scheduler.py, 0.4.10 to 0.5.23)
_FIGURE = re.compile(r"\b(max_total_num_tokens|max_running_requests|context_len)=(\d+)")
# Engine startup timings (s): load_weight=1.33, cuda_graph={prefill=5.05, decode=0.00}, tokenizer_e2e=38.84  (0.5.17)
_TIMING = re.compile(r"(?:(\w+)=\{([^}]*)\}|(\w+)=([\d.]+))")
# sglang is using nccl==2.27.5  (pynccl, 0.4.6 to 0.5.23)
_NCCL = re.compile(r"nccl==([\d.]+)")
_PARTS_OF_NO_SETTING = ("internal_states", "version", "kv_events", "startup_time", "memory_usage")


def read_effective(
    *,
    args: Mapping[str, Any],
    info: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    version: str | None = None,
    lines: Sequence[str] = (),
) -> Effective:
    """From the arguments line's settings, the body of /server_info (None: not asked or no answer) and lines of the log
    (those with one of `VOCABULARY.log_words`)."""
    info = info or {}
    figures, startup, nccl = _read_lines(lines)
    settings = {k: v for k, v in args.items() if v is not None}
    settings.update({k: v for k, v in info.items() if k not in _PARTS_OF_NO_SETTING and not k.startswith("_")})
    for key in SECRET_KEYS:
        if settings.get(key):
            settings[key] = "***"
    states = info.get("internal_states")
    state: Mapping[str, Any] = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
    dp = whole(settings.get("dp_size"))
    cap = whole(state.get("effective_max_running_requests_per_dp"))
    if cap is None:
        cap = figures.get("max_running_requests") or whole(settings.get("max_running_requests"))
        if cap is not None and dp and settings.get("enable_dp_attention"):
            # Each rank takes its share (managers/tp_worker.py: max_running_requests // dp_size).
            cap //= dp
    memory = state.get("memory_usage")
    tokens = whole(info.get("max_total_num_tokens"))
    if tokens is None and isinstance(memory, Mapping):
        tokens = whole(memory.get("token_capacity"))
    if tokens is None:
        tokens = figures.get("max_total_num_tokens")
    disabled = settings.get("disable_cuda_graph")
    sources = [name for name, there in (("arguments line", bool(args)), ("/server_info", bool(info))) if there]
    if lines:
        sources.append("log")
    build = {"version": str(info.get("version") or version)} if info.get("version") or version else {}
    if nccl:
        build["nccl"] = nccl
    return Effective(
        settings=settings,
        speculation=_speculation(settings, env or {}),
        attention_backend=_text(settings.get("attention_backend")),
        draft_attention_backend=_text(settings.get("speculative_draft_attention_backend")),
        cuda_graphs=None if disabled is None else not disabled,
        context=whole(settings.get("context_length")) or figures.get("context_len"),
        kv_tokens=tokens,
        running_cap=cap,
        dp_size=dp,
        build=build,
        startup_s=_startup(state.get("startup_time") or info.get("startup_time")) or startup,
        sources=tuple(sources),
    )


def from_said(said: Said, info: Mapping[str, Any] | None) -> Effective:
    """The same from what is known of a launch, and /server_info."""
    return read_effective(args=said.args, info=info, env=said.env, version=said.version, lines=said.lines)


def _read_lines(lines: Sequence[str]) -> tuple[dict[str, int], dict[str, float], str]:
    figures: dict[str, int] = {}
    startup: dict[str, float] = {}
    nccl = ""
    for line in lines:
        if "max_total_num_tokens=" in line:
            figures.update({key: int(value) for key, value in _FIGURE.findall(line)})
        elif "Engine startup timings (s):" in line:
            for group, inner, name, value in _TIMING.findall(line.partition("(s):")[2]):
                parts = re.findall(r"(\w+)=([\d.]+)", inner) if group else [(name, value)]
                startup.update({f"{group}.{key}" if group else key: float(s) for key, s in parts if s != "."})
        elif match := _NCCL.search(line):
            nccl = match[1]
    return figures, startup, nccl


def _speculation(settings: Mapping[str, Any], env: Mapping[str, str]) -> Speculation:
    if not settings:
        return Speculation(None)
    algorithm = settings.get("speculative_algorithm")
    simulated = env.get("SGLANG_SIMULATE_ACC_LEN", "")
    try:
        made_up = float(simulated) > 0
    except ValueError:
        made_up = False
    return Speculation(
        on=bool(algorithm) and str(algorithm).upper() != "NONE",
        algorithm=_text(algorithm),
        num_steps=whole(settings.get("speculative_num_steps")),
        topk=whole(settings.get("speculative_eagle_topk")),
        draft_tokens=whole(settings.get("speculative_num_draft_tokens")),
        draft_model=_text(settings.get("speculative_draft_model_path")),
        simulated=f"SGLANG_SIMULATE_ACC_LEN={simulated}" if made_up else "",
        source="resolved arguments",
    )


def _startup(value: Any) -> dict[str, float]:
    """`{"load_weight": 1.3, "cuda_graph": {"prefill": 5.0}}` -> flat, seconds."""
    found: dict[str, float] = {}
    if isinstance(value, Mapping):
        for key, part in value.items():
            if isinstance(part, Mapping):
                found.update({f"{key}.{name}": float(s) for name, s in part.items() if isinstance(s, int | float)})
            elif isinstance(part, int | float) and not isinstance(part, bool):
                found[str(key)] = float(part)
    return found


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") else None
