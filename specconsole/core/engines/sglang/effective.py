"""SGLang's own account: `server_args` (line and /server_info), scheduler figures, start-up times.

/server_info from 0.5.6 on (`/get_server_info` before): all resolved arguments at the top, scheduler figures in
`internal_states[dp]`, `version`; from 0.5.19 on start-up times too (0.5.17 has them in `internal_states`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specconsole.core.launching.effective import Effective, Speculation, whole

SECRET_KEYS = ("api_key", "admin_api_key", "ssl_keyfile_password", "launch_command")
_PARTS_OF_NO_SETTING = ("internal_states", "version", "kv_events", "startup_time", "memory_usage")


def read_effective(
    *,
    args: Mapping[str, Any],
    info: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    version: str | None = None,
) -> Effective:
    """From the arguments line's settings and the body of /server_info (None: not asked or no answer)."""
    info = info or {}
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
        cap = whole(settings.get("max_running_requests"))
    memory = state.get("memory_usage")
    tokens = whole(info.get("max_total_num_tokens"))
    if tokens is None and isinstance(memory, Mapping):
        tokens = whole(memory.get("token_capacity"))
    disabled = settings.get("disable_cuda_graph")
    sources = [name for name, there in (("arguments line", bool(args)), ("/server_info", bool(info))) if there]
    build = {"version": str(info.get("version") or version)} if info.get("version") or version else {}
    return Effective(
        settings=settings,
        speculation=_speculation(settings, env or {}),
        attention_backend=_text(settings.get("attention_backend")),
        draft_attention_backend=_text(settings.get("speculative_draft_attention_backend")),
        cuda_graphs=None if disabled is None else not disabled,
        context=whole(settings.get("context_length")),
        kv_tokens=tokens,
        running_cap=cap,
        dp_size=dp,
        build=build,
        startup_s=_startup(state.get("startup_time") or info.get("startup_time")),
        sources=tuple(sources),
    )


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
