"""Profiles that build on others: `extends`, `unset`, `[variables]`, `[hosts.NAME]`, `${secret:NAME}`.

Pure: the files come in as parsed layers, the profile itself first. Tables (`args`, `env`, `secrets`, `health`,
`variables`) are merged key by key, everything else is replaced by the nearer layer; a host's parts come on top of
all of them. Each layer is checked by itself first, so that an error names the file that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specconsole.core.launching.profile import KEY_ARGUMENTS, KEYS, SECRET_USE, Profile, decode_profile
from specconsole.core.launching.toml_place import line_of, nearest
from specconsole.errors import BadInputError

OWN_KEYS = ("extends", "unset", "variables", "hosts")
_TABLES = ("args", "env", "secrets", "health", "variables", "probes")
# `${model_dir}`, `${secret:NAME}`; `$${` stands for `${` itself. What a shell would do more (`${x:-y}`) is left alone.
_USE = re.compile(r"\$(?P<escaped>\$\{)|\$\{(?P<secret>secret:)?(?P<name>[A-Za-z_][\w-]*)\}")

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """One profile file as parsed."""

    name: str
    data: Mapping[str, Any]
    text: str
    source: str
    """Its path, for error texts."""

    def place(self, path: Path) -> str:
        """`file:line` of a key."""
        line = line_of(self.text, path)
        return self.source if line is None else f"{self.source}:{line}"

    def has(self, path: Path) -> bool:
        node: Any = self.data
        for part in path:
            if not isinstance(node, Mapping) or part not in node:
                return False
            node = node[part]
        return True

    @property
    def parent(self) -> str | None:
        """The name or path that it extends. Raises BadInputError when that is no text."""
        value = self.data.get("extends")
        if value is None or (isinstance(value, str) and value):
            return value
        raise BadInputError("`extends` must be a profile's name", where=self.place(("extends",)))


def resolve(layers: Sequence[Layer]) -> Profile:
    """The profile that the layers make, the nearest first, with its variants by host. Raises BadInputError."""
    for layer in layers:
        _check(layer)
        _ = layer.parent  # raises where it is no name
    plain = _on_host(layers, None)
    names = dict.fromkeys(name for layer in layers for name in layer.data.get("hosts", {}))
    return replace(plain, by_host={name: _on_host(layers, name) for name in names})


def _on_host(layers: Sequence[Layer], host: str | None) -> Profile:
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        _merge(merged, layer.data, layer.place(("unset",)))
    if host is not None:
        for layer in reversed(layers):
            _merge(merged, layer.data.get("hosts", {}).get(host, {}), layer.place(("hosts", host, "unset")))
    merged.pop("extends", None)
    merged.pop("hosts", None)
    merged["name"] = layers[0].data.get("name", layers[0].name)
    found = _Places(layers, host)
    variables = _Variables(merged.pop("variables", {}), found)
    data = {key: variables.filled(value, (key,)) for key, value in merged.items()}
    _take_secrets(data, found)
    nearest_layer = layers[0]
    profile = decode_profile(data, nearest_layer.text, nearest_layer.source, name=nearest_layer.name)
    return replace(profile, extends=tuple(layer.name for layer in layers[1:]))


def _check(layer: Layer) -> None:
    """One layer by itself: unknown keys and wrong types."""
    known = (*OWN_KEYS, *KEYS)
    for key in layer.data:
        if key not in known:
            close = nearest(key, known)
            hint = f"did you mean `{close}`?" if close else f"known keys: {', '.join(known)}"
            raise BadInputError(f"`{key}` is not a known key", where=layer.place((key,)), try_=hint)
    _check_part(layer, layer.data, ())
    hosts = layer.data.get("hosts", {})
    if not isinstance(hosts, Mapping) or not all(isinstance(part, Mapping) for part in hosts.values()):
        raise BadInputError(
            "`hosts` must be a table for each host", where=layer.place(("hosts",)), try_='[hosts."gpu-a"]'
        )
    for host, part in hosts.items():
        _check_part(layer, part, ("hosts", host))
        for key in ("extends", "hosts", "name", "engine", "host"):
            if key in part:
                path = ("hosts", host, key)
                raise BadInputError(f"`{'.'.join(path)}` can't differ by host", where=layer.place(path))


def _check_part(layer: Layer, part: Mapping[str, Any], prefix: Path) -> None:
    data = {key: value for key, value in part.items() if key not in OWN_KEYS}
    decode_profile(data, layer.text, layer.source, name=layer.name, part=True, prefix=prefix)
    unset = part.get("unset", [])
    if not isinstance(unset, list) or not all(isinstance(item, str) for item in unset):
        raise BadInputError(
            "`unset` must be a list of keys", where=layer.place((*prefix, "unset")), try_='unset = ["args.page_size"]'
        )
    variables = part.get("variables", {})
    if not isinstance(variables, Mapping):
        raise BadInputError("`variables` must be a table", where=layer.place((*prefix, "variables")))
    for name, value in variables.items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            path = (*prefix, "variables", name)
            raise BadInputError(f"`{'.'.join(path)}` must be text or a number", where=layer.place(path))


def _merge(into: dict[str, Any], data: Mapping[str, Any], place: str) -> None:
    for item in data.get("unset", []):
        _unset(into, item, place)
    for key, value in data.items():
        if key in _TABLES and isinstance(value, Mapping):
            table = dict(into.get(key, {}))
            for name, inner in value.items():
                # `mem-fraction-static` and `mem_fraction_static` are one setting.
                table[_same(table, name) if key == "args" else name] = inner
            into[key] = table
        elif key not in ("unset", "hosts"):
            into[key] = value
            # One of the two says what runs: the nearer layer's.
            if key in ("command", "binary"):
                into.pop("binary" if key == "command" else "command", None)


def _unset(into: dict[str, Any], item: str, place: str) -> None:
    table, dot, name = item.partition(".")
    if dot and table in _TABLES:
        inner = dict(into.get(table, {}))
        name = _same(inner, name) if table == "args" else name
        if name in inner:
            del inner[name]
            into[table] = inner
            return
        close = nearest(name, inner)
        raise BadInputError(
            f"`unset` names {item}, which no parent sets",
            where=place,
            try_=f"did you mean {table}.{close}?" if close else "take it out",
        )
    if item not in into:
        raise BadInputError(f"`unset` names {item}, which no parent sets", where=place, try_="take it out")
    del into[item]


def _same(table: Mapping[str, Any], name: str) -> str:
    plain = name.lstrip("-").replace("-", "_")
    return next((known for known in table if known.lstrip("-").replace("-", "_") == plain), name)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a merged value came from."""

    layers: Sequence[Layer]
    host: str | None

    def of(self, path: Path) -> str:
        if self.host is not None:
            for layer in self.layers:
                if layer.has(("hosts", self.host, *path)):
                    return layer.place(("hosts", self.host, *path))
        for layer in self.layers:
            if layer.has(path):
                return layer.place(path)
        return self.layers[0].source


class _Variables:
    """`${name}` -> its value; a variable's value may use others."""

    def __init__(self, values: Mapping[str, Any], places: _Places) -> None:
        self._values = values
        self._places = places

    def filled(self, value: Any, path: Path) -> Any:
        """The value with every variable in it replaced, however deep it is."""
        if isinstance(value, str):
            return self._text(value, path, ())
        if isinstance(value, list):
            return [self.filled(item, path) for item in value]
        if isinstance(value, Mapping):
            return {key: self.filled(item, (*path, key)) for key, item in value.items()}
        return value

    def _text(self, text: str, path: Path, inside: tuple[str, ...]) -> str:
        def replaced(match: re.Match[str]) -> str:
            if match["escaped"]:
                # Kept until secrets are taken out, so that `$${secret:X}` stays a text.
                return match[0]
            if match["secret"]:
                return match[0]
            return self._value(match["name"], path, inside)

        return _USE.sub(replaced, text)

    def _value(self, name: str, path: Path, inside: tuple[str, ...]) -> str:
        if name in inside:
            chain = " -> ".join((*inside[inside.index(name) :], name))
            raise BadInputError(f"variables go in a circle: {chain}", where=self._places.of(("variables", name)))
        if name not in self._values:
            close = nearest(name, self._values)
            hint = (
                f"did you mean ${{{close}}}?" if close else f'[variables] {name} = "..." (or $${{ for the text itself)'
            )
            raise BadInputError(
                f"`{'.'.join(path)}` uses ${{{name}}}, which is not defined", where=self._places.of(path), try_=hint
            )
        return self._text(str(self._values[name]), ("variables", name), (*inside, name))


def _take_secrets(data: dict[str, Any], places: _Places) -> None:
    """`env.X = "${secret:NAME}"` -> the secret NAME in the variable X; anywhere else a secret would be seen.

    A secret that is used so goes under the variables that use it, and not under its own name as well.
    """
    declared: Mapping[str, str] = data.get("secrets", {})
    used = {
        variable: match[1]
        for variable, value in data.get("env", {}).items()
        if isinstance(value, str) and (match := SECRET_USE.fullmatch(value))
    }
    args = data.get("args", {})
    by_argument = {
        match[1]
        for name, value in args.items()
        if is_key_argument(name) and isinstance(value, str) and (match := SECRET_USE.fullmatch(value))
    }
    if by_argument:
        declared = {**{name: f"env:{name}" for name in by_argument}, **declared}
        data["secrets"] = dict(declared)
    if used:
        data["env"] = {key: value for key, value in data["env"].items() if key not in used}
        kept = {name: place for name, place in declared.items() if name not in used.values() or name in by_argument}
        data["secrets"] = {**kept, **{variable: declared.get(name, f"env:{name}") for variable, name in used.items()}}
    for key, value in data.items():
        data[key] = _plain(value, (key,), places)


def is_key_argument(name: str) -> bool:
    """Whether a setting is a key that the server takes as an argument."""
    return name.lstrip("-").replace("-", "_") in KEY_ARGUMENTS


def _plain(value: Any, path: Path, places: _Places) -> Any:
    """Escapes undone; refuses a secret that is not the whole value of a variable."""
    if isinstance(value, list):
        return [_plain(item, path, places) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item, (*path, key), places) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    if path[0] == "args" and is_key_argument(path[-1]) and SECRET_USE.fullmatch(value):
        return value  # `command.build_argv` asks for consent

    def undone(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "${"
        why = "would show in `ps` on the host" if path[0] in ("args", "command") else "is no place for a secret"
        raise BadInputError(
            f"`{'.'.join(path)}` {why}",
            where=places.of(path),
            try_=f'[env] VARIABLE = "${{secret:{match["name"]}}}", the whole value',
        )

    return _USE.sub(undone, value)
