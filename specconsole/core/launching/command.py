"""Profile -> argv and environment: never a shell string.

The rules here are the generic ones (`mem_fraction_static = 0.8` -> `--mem-fraction-static 0.8`); what an engine's
version renames or forbids belongs to the engine's own folder.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specconsole.core.launching.key_argument import check_key_argument
from specconsole.core.launching.profile import VARIABLE, ArgValue, Health, Profile
from specconsole.core.launching.spec import LaunchSpec
from specconsole.errors import BadInputError


@dataclass(frozen=True, slots=True)
class _EngineWords:
    command: tuple[str, ...]
    model: str | None
    draft: str | None
    bind: str | None
    port: str | None


# SGLang 0.4.6-0.5.23 server_args.py; vLLM 0.10-0.33 `vllm serve` (model also as --model); llama.cpp common/arg.cpp.
_WORDS: Mapping[str, _EngineWords] = {
    "sglang": _EngineWords(
        ("python3", "-m", "sglang.launch_server"), "--model-path", "--speculative-draft-model-path", "--host", "--port"
    ),
    "vllm": _EngineWords(("vllm", "serve"), "--model", None, "--host", "--port"),
    "llamacpp": _EngineWords(("llama-server",), "-m", "-md", "--host", "--port"),
    "other": _EngineWords((), None, None, None, None),
}

_OWN_ENV: Mapping[str, str] = {
    # Lines must reach the log when they are written, not when 8 KiB are full.
    "PYTHONUNBUFFERED": "1",
    # setproctitle (SGLang, vLLM) writes titles over the environment that /proc shows, and with it over the mark by
    # which a process of a launch is recognised, unless this is set (its README, "Environment variables").
    "SPT_NOENV": "1",
}
_SECRET_WORDS = ("api_key", "admin_api_key", "token", "password", "secret", "hf_token")


def flag_of(name: str) -> str:
    """`mem_fraction_static` -> `--mem-fraction-static`, `c` -> `-c`; a name with dashes in front stays."""
    if name.startswith("-"):
        return name
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def flag_words(name: str, value: ArgValue) -> list[str]:
    """The words of one setting: True is a bare flag, False nothing, a table JSON, a list several values."""
    if value is True:
        return [flag_of(name)]
    if value is False:
        return []
    if isinstance(value, dict):
        return [flag_of(name), json.dumps(value, separators=(",", ":"))]
    if isinstance(value, list):
        return [flag_of(name), *(str(item) for item in value)] if value else []
    return [flag_of(name), str(value)]


def command_words(profile: Profile) -> tuple[str, ...]:
    """What is run, before any flag."""
    return profile.command or _WORDS[profile.engine].command


def build_argv(profile: Profile, port: int | None) -> tuple[str, ...]:
    """The command line of a profile; a key that goes as an argument stands in it as `${secret:NAME}`.

    Raises ConsentNeededError for a key that `ps` would show without consent, BadInputError for one that is written out.
    """
    words = _WORDS[profile.engine]
    argv = list(command_words(profile))
    for path, flag in ((profile.model, words.model), (profile.draft_model, words.draft)):
        if path is not None and flag is not None:
            argv += [flag, path]
    for name, value in profile.args.items():
        plain = name.lstrip("-").replace("-", "_")
        if plain in _SECRET_WORDS and value not in ("", False):
            check_key_argument(profile, name, value)
        argv += flag_words(name, value)
    given = {name.lstrip("-").replace("_", "-") for name in profile.args}
    if words.bind is not None and "host" not in given:
        argv += [words.bind, profile.bind]
    if port is not None:
        if words.port is not None and "port" not in given:
            argv += [words.port, str(port)]
        argv = [word.replace("{port}", str(port)) for word in argv]
    for word in argv:
        if "\0" in word:
            raise BadInputError("an argument contains a NUL byte", where=profile.source)
    return tuple(argv)


def build_env(profile: Profile) -> dict[str, str]:
    """Variables for the server, without the secrets. PATH is set by the run script, where the host's is known."""
    return {**_OWN_ENV, **profile.env}


def override(profile: Profile, changes: Mapping[str, Any]) -> Profile:
    """The profile with settings changed: `port`, `model`, `env.NAME`, anything else is a setting of `args`.

    A value of None removes a setting. Raises BadInputError for a value of the wrong type.
    """
    args = dict(profile.args)
    env = dict(profile.env)
    direct: dict[str, Any] = {}
    for key, value in changes.items():
        if key in ("port", "bind", "model", "draft_model", "working_dir", "environment", "grace_s", "host"):
            wanted: tuple[type[Any], ...] = {"port": (int,), "grace_s": (int, float)}.get(key, (str,))
            if value is not None and (isinstance(value, bool) or not isinstance(value, wanted)):
                raise BadInputError(f"`{key}` can't be {value!r}", where="--set")
            if key == "port" and value is not None and not 0 <= value <= 65535:
                raise BadInputError(f"`port` must be from 0 to 65535, not {value}", where="--set")
            direct[key] = value
        elif key.startswith("env."):
            if not VARIABLE.fullmatch(key[4:]):
                raise BadInputError(f"`{key[4:]}` can't be a variable's name", where="--set",
                                    try_="letters, digits and _")  # fmt: skip
            _put(env, key[4:], None if value is None else str(value))
        else:
            _put(args, key.removeprefix("args."), value)
    if direct.get("bind", "") is None:
        direct["bind"] = "127.0.0.1"
    if direct.get("grace_s", 0) is None:
        direct["grace_s"] = 20.0
    if direct.get("port") == 0:
        direct["port"] = None
    return replace(profile, args=args, env=env, **direct)


def _put(target: dict[str, Any], key: str, value: Any) -> None:
    # `mem-fraction-static` and `mem_fraction_static` are one setting.
    same = next((known for known in target if known.replace("-", "_") == key.replace("-", "_")), key)
    if value is None:
        target.pop(same, None)
    else:
        target[same] = value


def build_spec(
    profile: Profile,
    *,
    launch_id: str,
    port: int | None,
    owner: str,
    client_id: str,
    now_s: float,
    version: str,
    python: str | None,
) -> LaunchSpec:
    """A launch of a profile. `python` replaces `{python}`; None where the console's own interpreter means nothing.

    Raises BadInputError for an argument that can't be passed.
    """
    argv = build_argv(profile, port)
    if any("{python}" in word for word in argv):
        if python is None:
            raise BadInputError(
                "`{python}` is this console's own interpreter, and the launch is on another host",
                where=profile.source,
                try_='`environment` or command = ["python3", ...]',
            )
        argv = tuple(word.replace("{python}", python) for word in argv)
    return LaunchSpec(
        launch_id=launch_id,
        profile=profile.name,
        engine=profile.engine,
        argv=argv,
        env=build_env(profile),
        secret_places=dict(profile.secrets),
        command=profile.command,
        description=profile.description,
        environment=profile.environment,
        working_dir=profile.working_dir,
        bind=profile.bind,
        port=port,
        model=profile.model,
        draft_model=profile.draft_model,
        health_path=profile.health.path,
        health_timeout_s=profile.health.timeout_s,
        health_prompt=profile.health.prompt,
        grace_s=profile.grace_s,
        tags=profile.tags,
        settings=dict(profile.args),
        owner=owner,
        client_id=client_id,
        requested_at_s=now_s,
        console_version=version,
        key_argument_allowed=profile.allow_key_argument,
        probes=dict(profile.probes),
    )


def profile_of(spec: LaunchSpec) -> Profile:
    """The profile that a launch was made from, as it was then: what a relaunch starts from."""
    own_env = {name: value for name, value in spec.env.items() if name not in _OWN_ENV}
    return Profile(
        name=spec.profile,
        engine=spec.engine,
        description=spec.description,
        tags=spec.tags,
        command=spec.command,
        environment=spec.environment,
        args=dict(spec.settings),
        env=own_env,
        secrets=dict(spec.secret_places),
        bind=spec.bind,
        port=spec.port,
        working_dir=spec.working_dir,
        model=spec.model,
        draft_model=spec.draft_model,
        health=Health(spec.health_path, spec.health_timeout_s, spec.health_prompt),
        grace_s=spec.grace_s,
        allow_key_argument=spec.key_argument_allowed,
        probes=dict(spec.probes),
        source=f"launch {spec.launch_id}",
    )


def show(argv: Sequence[str], hidden: Sequence[str] = ()) -> str:
    """The command line for a person, quoted for a shell, with `hidden` values and secret settings masked."""
    shown: list[str] = []
    mask_next = False
    for word in argv:
        name, eq, _value = word.partition("=")
        secret_name = name.lstrip("-").replace("-", "_") in _SECRET_WORDS and name.startswith("-")
        if mask_next:
            word = "***"
        elif secret_name and eq:
            word = f"{name}=***"
        for value in hidden:
            if value:
                word = word.replace(value, "***")
        mask_next = secret_name and not eq
        shown.append(shlex.quote(word))
    return " ".join(shown)
