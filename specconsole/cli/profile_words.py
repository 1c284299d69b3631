"""What `specconsole profiles` prints and writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from specconsole.core.launching.command import build_argv, show
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.profile_table import Difference, escaped, profile_table
from specconsole.errors import BadInputError, RefusedError


def profile_json(profile: Profile) -> dict[str, Any]:
    """A resolved profile: its table, where it came from, and its command line with secrets masked."""
    return {
        **profile_table(profile),
        "source": profile.source,
        "extends": list(profile.extends),
        "hosts": sorted(profile.by_host),
        "command_line": command_line(profile),
    }


def command_line(profile: Profile) -> str:
    """The command with `PORT` where a free one is picked at launch."""
    # Only shown, with the key masked.
    argv = build_argv(replace(profile, allow_key_argument=True), profile.port or 65536)
    return show(["PORT" if word == "65536" else word.replace("65536", "PORT") for word in argv])


def profile_toml(profile: Profile) -> str:
    """The resolved profile as a file that could be launched, with its origin and command as comments."""
    import tomli_w

    chain = "".join(f"\n# extends {name}" for name in profile.extends)
    hosts = f"\n# differs on {', '.join(sorted(profile.by_host))}" if profile.by_host else ""
    table = tomli_w.dumps(escaped(profile_table(profile)))
    # Line ends in an argument would end the comment.
    command = "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in command_line(profile))
    return f"# {profile.source}{chain}{hosts}\n# {command}\n\n{table}"


def difference_line(one: Difference) -> str:
    return f"{one.key}: {_value(one.left)} -> {_value(one.right)}"


def _value(value: Any) -> str:
    return "(not set)" if value is None else json.dumps(value, ensure_ascii=False)


def new_file(name: str) -> Path:
    """Where a profile of this name is written. Raises RefusedError where there is one, BadInputError for a bad name."""
    import re

    from specconsole.wiring import config_folder

    if not re.fullmatch(r"[\w.@+-]+", name, re.ASCII) or name.endswith(".toml") or name.startswith("."):
        raise BadInputError(f"`{name}` can't be a profile's name", try_="letters, digits, . _ @ + -")
    path = config_folder() / "profiles" / f"{name}.toml"
    if path.exists():
        raise RefusedError(
            "there is such a profile, and files are not overwritten", where=str(path), try_="another name"
        )
    return path


def write_new(path: Path, table: Mapping[str, Any]) -> Path:
    """Writes a profile of our own, after reading it as one. Raises BadInputError."""
    import tomli_w

    from specconsole.adapters.toml_files import write_toml
    from specconsole.core.launching.inherit import Layer, resolve

    if "extends" not in table:
        resolve([Layer(path.stem, table, tomli_w.dumps(table), str(path))])
    write_toml(path, table)
    return path
