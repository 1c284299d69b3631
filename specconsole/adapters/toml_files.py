"""Profiles and other TOML files on this machine: read strictly, written only where the console owns the file.

A hand-written profile is never rewritten.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from specconsole.adapters.local import write_atomically
from specconsole.core.launching.profile import Profile, decode_profile
from specconsole.core.launching.toml_place import nearest
from specconsole.errors import BadInputError, NotFoundError

_NAME = re.compile(r"[\w.@+-]+", re.ASCII)


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """The parsed file and its text. Raises NotFoundError or BadInputError with file and line."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError("no such file", where=str(path)) from None
    except OSError as error:
        raise BadInputError(error.strerror or "can't be read", where=str(path)) from None
    try:
        # Files made on Windows begin with a byte order mark, which TOML does not know.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInputError("is not UTF-8 text", where=f"{path}:{line}") from None
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        what, place, position = str(error).rpartition("(at line ")
        where = f"{path}:{position.split(',')[0]}" if place else str(path)
        raise BadInputError((what or str(error)).strip(), where=where, try_="see https://toml.io") from None


def write_toml(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a file that the console owns, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_atomically(path, tomli_w.dumps(data).encode(), mode=0o600)
    except OSError as error:
        raise BadInputError(error.strerror or "can't be written", where=str(path)) from None


class ProfileFiles:
    """Profiles by name, from several folders: a user's own hides a shipped one of the same name."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def paths(self) -> dict[str, Path]:
        """Every profile by name."""
        found: dict[str, Path] = {}
        for folder in self._folders:
            for path in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
                found.setdefault(path.stem, path)
        return found

    def read(self, name_or_path: str) -> Profile:
        """A profile by name, or from a file when the text is a path. Raises NotFoundError, BadInputError."""
        if "/" in name_or_path or name_or_path.endswith(".toml"):
            path = Path(name_or_path).expanduser()
        else:
            known = self.paths()
            if name_or_path not in known:
                close = nearest(name_or_path, known)
                have = ", ".join(sorted(known)) or "none yet"
                hint = f"did you mean {close}?" if close else f"profiles: {have}; or give a file"
                raise NotFoundError(f"no profile named {name_or_path}", try_=hint)
            path = known[name_or_path]
        data, text = read_toml(path)
        if not _NAME.fullmatch(path.stem) and "name" not in data:
            raise BadInputError("`name` is missing, and the file's name can't serve", where=str(path))
        return decode_profile(data, text, str(path), name=path.stem)
