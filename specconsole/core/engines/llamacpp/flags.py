"""llama.cpp's flags: `llama-server --help` (b10434); it takes no abbreviations (common/arg.cpp)."""

from __future__ import annotations

from specconsole.core.engines.llamacpp.rules import ALIASES, RULES
from specconsole.core.launching.engine_flags import EngineFlags

FLAGS = EngineFlags(
    engine="llamacpp",
    help_words=("--help",),
    built_in="llamacpp-b10434",
    rules=RULES,
    aliases=ALIASES,
    model="model",
    draft="spec_draft_model",
    context="ctx_size",
    abbreviates=False,
)
