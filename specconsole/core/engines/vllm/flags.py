"""vLLM's flags: `vllm serve --help` names groups only, `--help=all` prints all flags (0.32.0)."""

from __future__ import annotations

from specconsole.core.engines.vllm.rules import ALIASES, RULES
from specconsole.core.launching.engine_flags import EngineFlags

FLAGS = EngineFlags(
    engine="vllm",
    help_words=("--help=all",),
    built_in="vllm-0.32.0",
    rules=RULES,
    aliases=ALIASES,
    model="model",
    draft=None,
    context="max_model_len",
    dotted=True,
)
