"""vLLM's own account: its configuration lines and metrics; there is no information endpoint in production.

`non-default args: {...}` and `Initializing a V1 LLM engine (vX) with config: ...` (0.10 to 0.33), `/version`,
`/v1/models` (`max_model_len`), speculation counters on /metrics (absent without speculation).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specconsole.core.launching.effective import Effective, Said, Speculation, Vocabulary, whole

VOCABULARY = Vocabulary(
    log_words=(" with config: ", "KV cache size:", " attention backend", "vLLM is using nccl==", "max_num_seqs"),
    aliases={
        "tp": ("tensor_parallel_size",),
        "pp": ("pipeline_parallel_size",),
        "dp": ("data_parallel_size",),
        "sc": ("speculative_config",),
        "seed": ("seed",),
    },
    worth_telling=(
        "dtype", "max_model_len", "max_seq_len", "quantization", "kv_cache_dtype", "enable_prefix_caching",
        "enable_chunked_prefill", "tensor_parallel_size", "enforce_eager",
    ),
    complete=False,
)  # fmt: skip
# CPU KV cache size: 116,480 tokens, Maximum concurrency for 2,048 tokens per request: 56.88x
# (0.32 v1/core/kv_cache_utils.py:2327; 0.10 to 0.27: `GPU KV cache size: 412,345 tokens`)
_KV_TOKENS = re.compile(r"KV cache size: ([\d,]+) tokens")
# Using FLASH_ATTN attention backend out of potential backends: [...]  (0.14 to 0.33 platforms/cuda.py);
# Using Flash Attention backend on V1 engine.  (0.10)
_ATTENTION = re.compile(r"Using (?:AttentionBackendEnum\.)?(\w+(?: Attention)?) (?:attention )?backend")
_NCCL = re.compile(r"vLLM is using nccl==([\d.]+)")

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
    nccl: str | None = None,
) -> Effective:
    """From the arguments line's settings, the configuration line, and what the endpoints and metrics said."""
    settings = {**args, **(config or {})}
    both = [table.get("speculative_config") for table in (args, config or {})]
    if isinstance(both[0], Mapping) and isinstance(both[1], Mapping):
        # The configuration line names three of its keys; what it names counts.
        settings["speculative_config"] = {**both[0], **{k: v for k, v in both[1].items() if v is not None}}
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
        build={key: value for key, value in (("version", version), ("nccl", nccl)) if value},
        sources=tuple(name for name, there in sources if there),
    )


@dataclass(frozen=True, slots=True)
class LogAccount:
    """What lines of the log say."""

    config: dict[str, Any]
    kv_tokens: int | None
    attention_backend: str | None
    nccl: str | None


def read_lines(lines: Sequence[str]) -> LogAccount:
    """The account out of lines with one of `VOCABULARY.log_words`; of several starts the last."""
    config: dict[str, Any] = {}
    tokens: int | None = None
    attention: str | None = None
    nccl: str | None = None
    for line in lines:
        if " with config: " in line:
            config = read_config_line(line)
        elif match := _KV_TOKENS.search(line):
            tokens = int(match[1].replace(",", ""))
        elif match := _NCCL.search(line):
            nccl = match[1]
        elif (match := _ATTENTION.search(line)) and attention is None:
            attention = match[1]
    return LogAccount(config, tokens, attention, nccl)


def from_said(
    said: Said, *, version: str | None = None, model_len: int | None = None, spec_counters_there: bool | None = None
) -> Effective:
    """The same from what is known of a launch and what the endpoints said."""
    log = read_lines(said.lines)
    return read_effective(
        args=said.args,
        config=log.config,
        version=version or said.version,
        model_len=model_len,
        kv_tokens=log.kv_tokens,
        spec_counters_there=spec_counters_there,
        attention_backend=log.attention_backend,
        nccl=log.nccl,
    )


def _value(raw: str) -> Any:
    if raw.startswith("'"):
        return raw.strip("'")
    if raw in ("True", "False"):
        return raw == "True"
    if raw == "None":
        return None
    return int(raw) if raw.isdigit() else raw
