"""vLLM's own account: its configuration lines and metrics; there is no information endpoint in production.

`non-default args: {...}` and `Initializing a V1 LLM engine (vX) with config: ...` (0.10 to 0.33), `/version`,
`/v1/models` (`max_model_len`), speculation counters on /metrics (absent without speculation).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from specconsole.core.launching.effective import Effective, Speculation, whole

# speculative_config=SpeculativeConfig(method='eagle3', model='/m/draft', num_spec_tokens=3)  (0.32 core.py:133)
_SPECULATIVE = re.compile(
    r"SpeculativeConfig\(method='?(?P<method>[^',)]*)'?, model='?(?P<model>[^',)]*)'?"
    r"(?:, num_spec_tokens=(?P<tokens>\d+))?"
)
# `key=value` pairs of the same line that are plain words or numbers.
_PAIR = re.compile(r"\b([a-z_]+)=('[^']*'|[\w.\-/]+)(?=[,)])")
_CONFIG_KEYS = (
    "dtype", "max_seq_len", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "quantization",
    "enforce_eager", "kv_cache_dtype", "enable_prefix_caching", "enable_chunked_prefill", "seed",
)  # fmt: skip


def read_config_line(line: str) -> dict[str, Any]:
    """Settings out of the `Initializing a V1 LLM engine` line; {} for another line."""
    if " with config: " not in line:
        return {}
    found: dict[str, Any] = {}
    for key, raw in _PAIR.findall(line):
        if key in _CONFIG_KEYS and key not in found:
            found[key] = _value(raw)
    match = _SPECULATIVE.search(line)
    if match:
        found["speculative_config"] = {
            "method": match["method"],
            "model": match["model"] if match["model"] != "None" else None,
            "num_speculative_tokens": int(match["tokens"]) if match["tokens"] else None,
        }
    elif "speculative_config=None" in line:
        found["speculative_config"] = None
    return found


def read_effective(
    *,
    args: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    version: str | None = None,
    model_len: int | None = None,
    kv_tokens: int | None = None,
    spec_counters_there: bool | None = None,
    attention_backend: str | None = None,
) -> Effective:
    """From the arguments line's settings, the configuration line, and what the endpoints and metrics said."""
    settings = {**args, **(config or {})}
    if model_len is not None:
        settings["max_model_len"] = model_len
    if settings.get("api_key"):
        settings["api_key"] = "***"
    table = settings.get("speculative_config")
    asked: Mapping[str, Any] = table if isinstance(table, Mapping) else {}
    on: bool | None = bool(asked) if settings else None
    if spec_counters_there is not None:
        # The metrics are the better witness: they exist only where a drafter was really built.
        on = spec_counters_there
    tokens = whole(asked.get("num_speculative_tokens"))
    eager = settings.get("enforce_eager")
    sources = (
        ("arguments line", bool(args)),
        ("configuration line", bool(config)),
        ("/v1/models", model_len is not None),
        ("/metrics", spec_counters_there is not None),
    )
    made_up = asked.get("rejection_sample_method") == "synthetic"
    return Effective(
        settings=settings,
        speculation=Speculation(
            on=on,
            algorithm=str(asked["method"]) if on and asked.get("method") else None,
            num_steps=tokens if on else None,
            topk=1 if on else None,
            draft_tokens=tokens if on else None,
            draft_model=str(asked["model"]) if on and asked.get("model") else None,
            simulated="rejection_sample_method=synthetic" if made_up else "",
            source="/metrics" if spec_counters_there is not None else "configuration line",
        ),
        attention_backend=attention_backend,
        cuda_graphs=None if eager is None else not eager,
        context=model_len if model_len is not None else whole(settings.get("max_seq_len")),
        kv_tokens=kv_tokens,
        running_cap=whole(settings.get("max_num_seqs")),
        dp_size=whole(settings.get("data_parallel_size")),
        build={"version": version} if version else {},
        sources=tuple(name for name, there in sources if there),
    )


def _value(raw: str) -> Any:
    if raw.startswith("'"):
        return raw.strip("'")
    if raw in ("True", "False"):
        return raw == "True"
    if raw == "None":
        return None
    return int(raw) if raw.isdigit() else raw
