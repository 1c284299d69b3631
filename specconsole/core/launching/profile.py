"""A profile: a saved launch configuration, and its strict decoding from what a TOML file holds.

Unknown keys and wrong types are errors that name file, line, key and the nearest known key: a mistyped setting
that is silently ignored costs a ten-minute start. Values are kept as written; flags are made in `command`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specconsole.core.launching.probe_pattern import MOST_PROBES, why_not
from specconsole.core.launching.toml_place import line_of, nearest
from specconsole.errors import BadInputError

ArgValue = str | int | float | bool | list[Any] | dict[str, Any]

SECRET_USE = re.compile(r"\$\{secret:([A-Za-z_][\w-]*)\}")
_ARG_NAME = re.compile(r"-{0,2}[A-Za-z0-9][\w.-]*", re.ASCII)
VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SECRET_NAME = re.compile(r"(?:^|_)(?:TOKEN|API_?KEY|SECRET|PASSWORD|SECRET_KEY|ACCESS_KEY)$", re.IGNORECASE)

KEY_ARGUMENTS = ("api_key", "admin_api_key")
"""Settings whose value is a secret, and which engines take as arguments."""

ENGINES = ("sglang", "vllm", "llamacpp", "other")


def looks_secret(name: str) -> bool:
    """Whether a variable of this name holds a secret, as far as its name tells."""
    return bool(_SECRET_NAME.search(name))


@dataclass(frozen=True, slots=True)
class Health:
    """How a server is asked whether it answers; None means the engine's own way."""

    path: str | None = None
    """Path of the health endpoint."""
    timeout_s: float | None = None
    prompt: str | None = None
    """Text of the request that proves the answer."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One launch configuration, `extends` already applied."""

    name: str
    engine: str
    description: str = ""
    tags: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """What is run, without the flags that `args`, `model`, `port` make; () means the engine's own command."""
    environment: str | None = None
    """A Python environment's folder on the host; its `bin` goes first on PATH."""
    args: Mapping[str, ArgValue] = field(default_factory=dict)
    """Settings by their Python name (`mem_fraction_static`) or as the flag without dashes; True is a bare flag."""
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Variable on the host -> where this console finds its value: `env:NAME` or `file:PATH`."""
    host: str | None = None
    """A host's name; None leaves it open."""
    bind: str = "127.0.0.1"
    """The address that the server listens on."""
    port: int | None = None
    """None: a free one is picked at launch."""
    working_dir: str | None = None
    model: str | None = None
    draft_model: str | None = None
    health: Health = field(default_factory=Health)
    grace_s: float = 20.0
    """Seconds between TERM and KILL when it is stopped."""
    engine_version: str | None = None
    """The engine's version that it was written for: what rules go by where the host's own is not known."""
    probes: Mapping[str, str] = field(default_factory=dict)
    """Names of numbers in the server's log -> the regular expressions that find them, each with one group."""
    allow_key_argument: bool = False
    """A person has agreed that a key goes as an argument, where everybody on the host sees it."""
    extends: tuple[str, ...] = ()
    """Names of the profiles that it builds on, nearest first."""
    by_host: Mapping[str, Profile] = field(default_factory=dict)
    """The same profile as it is on hosts that it has a part for."""
    source: str = ""
    """The file it came from, for error texts."""

    def on(self, host: str) -> Profile:
        """As it is on one host, that host's part applied."""
        return self.by_host.get(host, self)


class _Decoder:
    """Takes typed values out of one parsed file; every error names file, line and key.

    `prefix` is where the table stands in the file (`hosts`, `gpu-a`), for line numbers.
    """

    def __init__(self, data: Mapping[str, Any], text: str, source: str, prefix: tuple[str, ...] = ()) -> None:
        self._data = data
        self._text = text
        self._source = source
        self._prefix = prefix

    def error(self, path: tuple[str, ...], what: str, try_: str = "") -> BadInputError:
        path = (*self._prefix, *path)
        line = line_of(self._text, path)
        where = f"{self._source}:{line}" if line is not None else self._source
        return BadInputError(f"`{'.'.join(path)}` {what}", where=where, try_=try_)

    def table(self, path: tuple[str, ...]) -> Mapping[str, Any]:
        node: Any = self._data
        for part in path:
            node = node.get(part, {})
            if not isinstance(node, Mapping):
                raise self.error(path, f"must be a table, not {_kind(node)}")
        table: Mapping[str, Any] = node
        return table

    def known_only(self, path: tuple[str, ...], known: tuple[str, ...]) -> None:
        for key in self.table(path):
            if key not in known:
                close = nearest(key, known)
                hint = f"did you mean `{close}`?" if close else f"known keys: {', '.join(known)}"
                raise self.error((*path, key), "is not a known key", hint)

    def text(self, *path: str) -> str | None:
        value: str | None = self._typed(path, str, "text")
        return value

    def integer(self, *path: str) -> int | None:
        value = self.table(path[:-1]).get(path[-1])
        if isinstance(value, bool):
            raise self.error(path, f"must be a whole number, not {_kind(value)}")
        number: int | None = self._typed(path, int, "a whole number")
        return number

    def seconds(self, *path: str) -> float | None:
        value = self.table(path[:-1]).get(path[-1])
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 86400:
            raise self.error(path, f"must be seconds from 0 to 86400, not {value!r}")
        return float(value)

    def switch(self, *path: str) -> bool:
        value = self.table(path[:-1]).get(path[-1], False)
        if not isinstance(value, bool):
            raise self.error(path, f"must be true or false, not {_kind(value)}")
        return value

    def texts(self, *path: str) -> tuple[str, ...]:
        value = self.table(path[:-1]).get(path[-1])
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(path, f"must be a list of texts, not {_kind(value)}")
        return tuple(value)

    def text_table(self, name: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for key, value in self.table((name,)).items():
            # A number or a switch in the environment is a text by nature; anything deeper is a mistake.
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise self.error((name, key), f"must be text or a number, not {_kind(value)}")
            found[key] = str(value)
        return found

    def _typed(self, path: tuple[str, ...], kind: type[Any], word: str) -> Any:
        value = self.table(path[:-1]).get(path[-1])
        if value is not None and not isinstance(value, kind):
            raise self.error(path, f"must be {word}, not {_kind(value)}")
        return value


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return f"the switch {str(value).lower()}"
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, list):
        return "a list"
    return "a table" if isinstance(value, Mapping) else type(value).__name__


KEYS = (
    "name", "engine", "description", "tags", "command", "binary", "environment", "args", "env", "secrets", "host",
    "bind", "port", "working_dir", "model", "draft_model", "health", "grace_s", "engine_version",
    "allow_key_argument", "probes",
)  # fmt: skip
HEALTH_KEYS = ("path", "timeout_s", "prompt")


SECRET_PLACES = ("env:", "file:", "command:")


def decode_profile(
    data: Mapping[str, Any], text: str, source: str, *, name: str, part: bool = False, prefix: tuple[str, ...] = ()
) -> Profile:
    """A profile from a parsed TOML file.

    Args: `data` as parsed, `text` of the file (for line numbers), `source` its path, `name` when the file gives none.
    `part`: one layer of a profile, which may leave out what the others give; `prefix` is its place in the file.
    Raises BadInputError with file, line, key and what to try.
    """
    take = _Decoder(data, text, source, prefix)
    take.known_only((), KEYS)
    take.known_only(("health",), HEALTH_KEYS)
    command = take.texts("command")
    binary = take.text("binary")
    if (command and not command[0].strip()) or binary == "":
        raise take.error(("command",) if command else ("binary",), "names no program")
    if binary is not None and command:
        raise take.error(("binary",), "and `command` can't both be given", "keep one of them")
    port = take.integer("port")
    if port is not None and not 0 <= port <= 65535:
        raise take.error(("port",), f"must be from 0 to 65535, not {port}")
    grace_s = take.seconds("grace_s")
    return Profile(
        name=take.text("name") or name,
        engine=_engine(take, source, part=part, runs=bool(command or binary)),
        description=take.text("description") or "",
        tags=take.texts("tags"),
        command=(binary,) if binary is not None else command,
        environment=take.text("environment"),
        args=_args(take),
        env=_env(take),
        secrets=_secrets(take),
        host=take.text("host"),
        bind=take.text("bind") or "127.0.0.1",
        port=port or None,
        working_dir=take.text("working_dir"),
        model=take.text("model"),
        draft_model=take.text("draft_model"),
        health=Health(take.text("health", "path"), take.seconds("health", "timeout_s"), take.text("health", "prompt")),
        grace_s=20.0 if grace_s is None else grace_s,
        engine_version=take.text("engine_version"),
        allow_key_argument=take.switch("allow_key_argument"),
        probes=_probes(take),
        source=source,
    )


def _engine(take: _Decoder, source: str, *, part: bool, runs: bool) -> str:
    engine = take.text("engine")
    if engine is None:
        if part:
            return ""
        raise BadInputError(
            "`engine` is missing", where=source, try_=f'engine = "{ENGINES[0]}" (or {", ".join(ENGINES[1:])})'
        )
    if engine not in ENGINES:
        close = nearest(engine, ENGINES)
        raise take.error(
            ("engine",), f'is "{engine}"', f"did you mean {close}?" if close else f"one of {', '.join(ENGINES)}"
        )
    if engine == "other" and not runs and not part:
        raise BadInputError(
            '`command` is missing (engine "other" has none of its own)', where=source, try_='command = ["my-server"]'
        )
    return engine


def _args(take: _Decoder) -> dict[str, ArgValue]:
    args = dict(take.table(("args",)))
    for key, value in args.items():
        if not _ARG_NAME.fullmatch(key):
            raise take.error(("args", key), "can't be a flag's name", "letters, digits, . _ -")
        if isinstance(value, float) and not math.isfinite(value):
            raise take.error(("args", key), f"must be a number, not {value}")
        if not isinstance(value, str | int | float | bool | list | dict):
            raise take.error(("args", key), f"must be text, number, switch, list or table, not {_kind(value)}")
    return args


def _env(take: _Decoder) -> dict[str, str]:
    env = take.text_table("env")
    for key, value in env.items():
        if not VARIABLE.fullmatch(key):
            raise take.error(("env", key), "can't be a variable's name", "letters, digits and _")
        if looks_secret(key) and value and not SECRET_USE.fullmatch(value):
            raise take.error(
                ("env", key), "looks like a secret, and [env] is shown and kept", f'[secrets] {key} = "env:{key}"'
            )
    return env


def _probes(take: _Decoder) -> dict[str, str]:
    table = take.table(("probes",))
    if len(table) > MOST_PROBES:
        raise take.error(("probes",), f"has {len(table)} probes; at most {MOST_PROBES} are read")
    for name, pattern in table.items():
        if not isinstance(pattern, str):
            raise take.error(("probes", name), f"must be a regular expression in quotes, not {_kind(pattern)}")
        if problem := why_not(name, pattern):
            raise take.error(("probes", name), problem, r"draft_ms = 'draft took (\d+\.\d+) ms'")
    return dict(table)


def _secrets(take: _Decoder) -> dict[str, str]:
    secrets = take.text_table("secrets")
    for key, value in secrets.items():
        if not value.startswith(SECRET_PLACES):
            # The value itself is not repeated: it may be the secret.
            raise take.error(
                ("secrets", key), "must say where the value is found, not the value", f'{key} = "env:{key}"'
            )
    return secrets
