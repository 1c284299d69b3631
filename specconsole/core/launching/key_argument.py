"""Keys that an engine takes as an argument: refused until a person agrees, since everybody on the host sees them. Pure.

vLLM reads VLLM_API_KEY (envs.py), llama.cpp LLAMA_API_KEY and `--api-key-file` (common/arg.cpp): there the argument is
never needed. SGLang has `--api-key` and `--admin-api-key` alone (0.4.6 to 0.5.23 server_args.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import KEY_ARGUMENTS, SECRET_USE, Profile
from specconsole.errors import BadInputError, ConsentNeededError

_BETTER = {
    "vllm": "leave it out and give the key as a variable: [secrets] VLLM_API_KEY",
    "llamacpp": "leave it out and give the key as a variable: [secrets] LLAMA_API_KEY, or as args.api_key_file",
}
_AGREE = "--allow-key-argument, or allow_key_argument = true in the profile, when that may be"


def check_key_argument(profile: Profile, name: str, value: Any) -> None:
    """Raises ConsentNeededError without consent, BadInputError for a key that stands in the profile itself."""
    plain = name.lstrip("-").replace("-", "_")
    better = _BETTER.get(profile.engine, "")
    secret = SECRET_USE.fullmatch(value) if isinstance(value, str) else None
    if secret is not None and secret[1] not in profile.secrets:
        raise BadInputError(
            f"the secret {secret[1]} is not known", where=profile.source, try_=f"[secrets] {secret[1]} = ..."
        )
    if plain not in KEY_ARGUMENTS or secret is None:
        hint = better or f'[secrets] KEY = "file:PATH", and args.{name} = "${{secret:KEY}}"'
        if plain not in KEY_ARGUMENTS:
            hint = "pass it under [secrets] as an environment variable"
        # The value itself is not repeated: it may be the secret.
        raise BadInputError(
            f"`args.{name}` would show in `ps` on the host, and is written out here", where=profile.source, try_=hint
        )
    if profile.allow_key_argument:
        return
    why = "takes it no other way" if profile.engine == "sglang" else "would get it as an argument"
    raise ConsentNeededError(
        f"`args.{name}`: {profile.engine} {why}, and every user of the host sees arguments (`ps`, /proc/PID/cmdline) "
        "as long as the server runs",
        subject=profile.name,
        where=profile.source,
        try_=f"{better}; or {_AGREE}" if better else _AGREE,
    )


def consented(finding: Finding, profile: Profile) -> Finding:
    """What a rule has against a key as an argument is a warning once a person has agreed."""
    if finding.name != "api-key-argument" or not profile.allow_key_argument or finding.severity != "stop":
        return finding
    return replace(finding, severity="warning", text=f"{finding.text} (allowed)", try_="", fix=None)
