"""SGLang's flags: `python -m sglang.launch_server --help` prints all of them (0.4.6 to 0.5.23)."""

from __future__ import annotations

from specconsole.core.engines.sglang.rules import ALIASES, RULES
from specconsole.core.launching.engine_flags import EngineFlags

FLAGS = EngineFlags(
    engine="sglang",
    help_words=("--help",),
    built_in="sglang-0.5.17",
    rules=RULES,
    aliases=ALIASES,
    model="model_path",
    draft="speculative_draft_model_path",
    context="context_length",
)
