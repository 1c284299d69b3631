"""A profile as the TOML table that a person would write, and the differences of two profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specconsole.core.launching.imported_command import ImportedCommand
from specconsole.core.launching.profile import Profile

_TEXTS = (
    "name",
    "engine",
    "engine_version",
    "description",
    "environment",
    "working_dir",
    "host",
    "model",
    "draft_model",
)


def profile_table(profile: Profile) -> dict[str, Any]:
    """The resolved profile, without what is at its default. Secrets are in it by the place of their value only."""
    table: dict[str, Any] = {key: value for key in _TEXTS if (value := getattr(profile, key))}
    if profile.tags:
        table["tags"] = list(profile.tags)
    if profile.command:
        table["command"] = list(profile.command)
    if profile.bind != "127.0.0.1":
        table["bind"] = profile.bind
    if profile.port is not None:
        table["port"] = profile.port
    if profile.allow_key_argument:
        table["allow_key_argument"] = True
    if profile.grace_s != 20.0:
        table["grace_s"] = profile.grace_s
    health = {
        key: value for key in ("path", "timeout_s", "prompt") if (value := getattr(profile.health, key)) is not None
    }
    for key, inner in (
        ("args", profile.args),
        ("env", profile.env),
        ("secrets", profile.secrets),
        ("health", health),
        ("probes", profile.probes),
    ):
        if inner:
            table[key] = dict(inner)
    return table


def imported_table(found: ImportedCommand, name: str) -> dict[str, Any]:
    """A pasted command as a profile."""
    table: dict[str, Any] = {"name": name, "engine": found.engine}
    for key in ("host", "environment", "working_dir", "model", "draft_model", "bind", "port"):
        value = getattr(found, key)
        if value is not None:
            table[key] = value
    table["command"] = list(found.command)
    for key, inner in (("args", found.args), ("env", found.env), ("secrets", found.secrets)):
        if inner:
            table[key] = dict(inner)
    shape: dict[str, Any] = escaped(table)
    return shape


def escaped(value: Any) -> Any:
    """The variables of a profile begin with `${`; what is to stand there as it is begins with `$${`."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [escaped(item) for item in value]
    if isinstance(value, Mapping):
        return {key: escaped(item) for key, item in value.items()}
    return value


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that two profiles do not share; None: not set there."""

    key: str
    left: Any
    right: Any


def differences(left: Profile, right: Profile) -> tuple[Difference, ...]:
    """Everything that differs but name, description and tags, tables key by key."""
    a, b = (_flat(profile_table(profile)) for profile in (left, right))
    return tuple(Difference(key, a.get(key), b.get(key)) for key in dict.fromkeys([*a, *b]) if a.get(key) != b.get(key))


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key in ("name", "description", "tags"):
            continue
        if key in ("args", "env", "secrets", "health", "probes"):
            for inner, deep in value.items():
                plain = inner.lstrip("-").replace("-", "_") if key == "args" else inner
                found[f"{key}.{plain}"] = deep
        else:
            found[key] = value
    return found
