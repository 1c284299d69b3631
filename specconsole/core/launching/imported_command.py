"""What a launch command says, in a profile's words: its engine, model, settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from specconsole.core.launching.flag_pairs import pair_up, typed

_MODULES = {
    "sglang.launch_server": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "specconsole.demo.llama_server": "llamacpp",
}
_FLAG_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_LLAMA = re.compile(r"(?:^|/)(?:llama-server(?:-[a-z]+)?|server)$")


@dataclass(slots=True)
class ImportedCommand:
    """What a pasted command says, in a profile's words."""

    engine: str = "other"
    argv: tuple[str, ...] = ()
    """The server's own argument list, as the shell would hand it over."""
    command: tuple[str, ...] = ()
    """What is run, before the flags."""
    args: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    """Variables whose name says that they are secret: taken from the console's own environment, never copied."""
    model: str | None = None
    draft_model: str | None = None
    port: int | None = None
    bind: str | None = None
    host: str | None = None
    environment: str | None = None
    working_dir: str | None = None
    log_path: str | None = None
    image: str | None = None
    notes: list[str] = field(default_factory=list)


def engine_of(argv: Sequence[str]) -> str:
    """The engine that an argument list starts; `other` when it is none that is known."""
    if not argv:
        return "other"
    name = argv[0].rsplit("/", 1)[-1]
    if name == "vllm" or (name == "sglang" and argv[1:2] == ["serve"]):
        return name
    if name in ("sglang",):
        return "sglang"
    if _LLAMA.search(argv[0]):
        return "llamacpp"
    if re.fullmatch(r"python[0-9.]*", name):
        for index, word in enumerate(argv[1:], 1):
            if word == "-m" and index + 1 < len(argv):
                return _MODULES.get(argv[index + 1], "other")
            if not word.startswith("-"):
                break
    return "other"


def _command_length(argv: Sequence[str], engine: str) -> int:
    """How many words come before the flags."""
    for index, word in enumerate(argv):
        if word == "-m":
            return index + 2
    if engine in ("vllm", "sglang"):
        return 2 if len(argv) > 1 and argv[1] == "serve" else 1
    return 1


_MODEL_FLAGS = {"sglang": ("model", "model-path"), "vllm": ("model",), "llamacpp": ("m", "model")}
_DRAFT_FLAGS = {
    "sglang": ("speculative-draft-model-path", "speculative-draft-model"),
    "llamacpp": ("md", "model-draft", "spec-draft-model"),
}


def name_settings(found: ImportedCommand) -> None:
    """Splits the argument list into the profile's fields; what is repeated or positional is kept in order."""
    found.engine = engine_of(found.argv)
    length = _command_length(found.argv, found.engine)
    found.command = found.argv[:length]
    rest = list(found.argv[length:])
    if found.engine == "vllm" and rest and not rest[0].startswith("-"):
        found.model = rest.pop(0)
    for name, values in pair_up(rest):
        if not _FLAG_NAME.fullmatch(name):
            found.notes.append(f"`--{name}` can't be a setting: it is left out")
            continue
        value: Any = True if not values else values[0] if len(values) == 1 else list(values)
        value = typed(value)
        if name in _MODEL_FLAGS.get(found.engine, ()) and isinstance(value, str):
            found.model = value
        elif name in _DRAFT_FLAGS.get(found.engine, ()) and isinstance(value, str):
            found.draft_model = value
        elif name in ("port",) and isinstance(value, int):
            found.port = value
        elif name == "host" and isinstance(value, str):
            found.bind = value
        elif name in ("api-key", "admin-api-key"):
            found.notes.append(f"--{name} would show in `ps`: not copied; give it under [secrets]")
        else:
            key = name.replace("-", "_") if len(name) > 1 else name
            if key in found.args:
                old = found.args[key]
                value = [*(old if isinstance(old, list) else [old]), *(value if isinstance(value, list) else [value])]
            found.args[key] = value
