"""The key that a launched server asks of its clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specconsole.core.launching.profile import SECRET_USE

# What the servers read it from (vLLM envs.py, llama.cpp common/arg.cpp); SGLang has a flag only, whose value a
# profile's command takes from any variable of such a name.
_NAMES = ("VLLM_API_KEY", "LLAMA_API_KEY", "SGLANG_API_KEY", "API_KEY")
_OF_OTHERS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "EXA_API_KEY", "WANDB_API_KEY")


def server_key(secrets: Mapping[str, str], settings: Mapping[str, Any] | None = None) -> str:
    """The value among a launch's secrets; "" when none is one, or when several could be. A key that goes as an argument
    is named in the `settings`."""
    asked = (settings or {}).get("api_key", (settings or {}).get("api-key"))
    if isinstance(asked, str) and (match := SECRET_USE.fullmatch(asked)) and secrets.get(match[1]):
        return secrets[match[1]]
    for name in _NAMES:
        if secrets.get(name):
            return secrets[name]
    found = [value for name, value in secrets.items() if name.endswith("API_KEY") and name not in _OF_OTHERS]
    return found[0] if len(found) == 1 else ""
