"""What a start's durations depend on, from what was asked for and what the server said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.reading.history import StartKey
from specconsole.core.reading.model import ServerFacts

# Names of one setting in SGLang (server_args.py) and vLLM (arg_utils.py).
_TP = ("tp", "tp_size", "tensor_parallel_size")
_PP = ("pp", "pp_size", "pipeline_parallel_size")
_DP = ("dp", "dp_size", "data_parallel_size")
_GRAPHS = ("cuda_graph_bs", "cuda_graph_max_bs", "cuda_graph_sizes", "cudagraph_capture_sizes", "enforce_eager")


def start_key(spec: LaunchSpec, host: str, server: ServerFacts | None = None) -> StartKey:
    """`server` adds the version, and the model where the profile leaves it to a command of its own."""
    settings = {name.lstrip("-").replace("-", "_"): value for name, value in spec.settings.items()}
    model = spec.model or _text(settings, "model", "model_path") or (server.model if server is not None else None)
    key = StartKey(
        engine=spec.engine,
        model=_name(model),
        quantization=_text(settings, "quantization"),
        tp=_number(settings, _TP),
        pp=_number(settings, _PP),
        dp=_number(settings, _DP),
        draft=_speculation(spec, settings),
        graph_sizes=next((f"{name}={settings[name]}" for name in _GRAPHS if name in settings), None),
        host=host,
    )
    return replace(key, version=server.version) if server is not None else key


def _speculation(spec: LaunchSpec, settings: Mapping[str, Any]) -> str | None:
    config = settings.get("speculative_config")
    if isinstance(config, dict):
        return f"{config.get('method') or 'draft'}:{_name(str(config.get('model') or ''))}"
    algorithm = _text(settings, "speculative_algorithm", "spec_type")
    draft = spec.draft_model or _text(settings, "speculative_draft_model_path", "model_draft")
    if algorithm is None and draft is None:
        return None
    return f"{algorithm or 'draft'}:{_name(draft) or ''}"


def _name(path: str | None) -> str | None:
    """The last two parts of a path or a hub name: the same model in two people's homes is the same model."""
    return "/".join(PurePosixPath(path).parts[-2:]) if path else None


def _text(settings: Mapping[str, Any], *names: str) -> str | None:
    return next((str(settings[name]) for name in names if settings.get(name)), None)


def _number(settings: Mapping[str, Any], names: tuple[str, ...]) -> int:
    value = next((settings[name] for name in names if name in settings), 1)
    return value if isinstance(value, int) and not isinstance(value, bool) else 1
