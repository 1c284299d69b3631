"""The key that a launched server asks of its clients."""

from __future__ import annotations

from collections.abc import Mapping

# What the servers read it from (vLLM envs.py, llama.cpp common/arg.cpp); SGLang has a flag only, whose value a
# profile's command takes from any variable of such a name.
_NAMES = ("VLLM_API_KEY", "LLAMA_API_KEY", "SGLANG_API_KEY", "API_KEY")
_OF_OTHERS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "EXA_API_KEY", "WANDB_API_KEY")


def server_key(secrets: Mapping[str, str]) -> str:
    """The value among a launch's secrets; "" when none is one, or when several could be."""
    for name in _NAMES:
        if secrets.get(name):
            return secrets[name]
    found = [value for name, value in secrets.items() if name.endswith("API_KEY") and name not in _OF_OTHERS]
    return found[0] if len(found) == 1 else ""
