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
from specconsole.core.launching.inherit import Layer, resolve
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.toml_place import nearest
from specconsole.errors import BadInputError, NotFoundError

_MOST_BYTES = 1024 * 1024
_NAMED = 12
"""Names of profiles that one error lists."""
_NAME = re.compile(r"[\w.@+-]+", re.ASCII)


def read_toml(path: Path) -> tuple[dict[str, Any], str]:
    """The parsed file and its text. Raises NotFoundError or BadInputError with file and line."""
    data = _bytes_of(path)
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
    except RecursionError:
        raise BadInputError("brackets in brackets without end", where=str(path)) from None


def _bytes_of(path: Path) -> bytes:
    try:
        # A pipe would wait for ever, a device has no end.
        if path.exists() and not path.is_file() and not path.is_dir():
            raise BadInputError("is no file", where=str(path))
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise BadInputError(f"is larger than {_MOST_BYTES // 1024} KiB: no such file is", where=str(path))
        return path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError("no such file", where=str(path)) from None
    except (OSError, ValueError) as error:
        raise BadInputError(getattr(error, "strerror", None) or "can't be read", where=str(path)) from None


def write_toml(path: Path, data: Mapping[str, Any]) -> None:
    """Writes a file that the console owns, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_atomically(path, tomli_w.dumps(data).encode(), mode=0o600)
    except OSError as error:
        raise BadInputError(error.strerror or "can't be written", where=str(path)) from None


def project_folder(start: Path) -> Path | None:
    """The nearest `.specconsole/profiles` of a folder or those above it; None without one."""
    for folder in (start, *start.parents):
        if (found := folder / ".specconsole" / "profiles").is_dir():
            return found
    return None


def named_files(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """TOML files by name, in the order of the folders: the first of a name hides the others."""
    found: dict[str, list[Path]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
            found.setdefault(path.stem, []).append(path)
    return found


class ProfileFiles:
    """Profiles by name, from several folders: the project's hide the user's own, those hide the shipped ones."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)

    def paths(self) -> dict[str, Path]:
        """Every profile by name."""
        return {name: found[0] for name, found in named_files(self._folders).items()}

    def read(self, name_or_path: str) -> Profile:
        """A profile by name, or from a file when the text is a path, with what it extends.

        Raises NotFoundError, BadInputError with file, line and key.
        """
        return resolve(self.layers(name_or_path))

    def layers(self, name_or_path: str) -> list[Layer]:
        """The files that a profile is made of, itself first. Raises NotFoundError, BadInputError."""
        known = named_files(self._folders)
        path = self._find(name_or_path, known)
        layers: list[Layer] = []
        seen: list[Path] = []
        while True:
            layer = _layer(path)
            layers.append(layer)
            seen.append(path.resolve())
            parent = layer.parent
            if parent is None:
                return layers
            path = self._parent(layer, parent, path, seen, known)
            if path.resolve() in seen:
                chain = [one.name for one in layers]
                circle = " -> ".join((*chain[seen.index(path.resolve()) :], path.stem))
                raise BadInputError(
                    f"profiles extend each other in a circle: {circle}", where=layer.place(("extends",))
                )

    def _find(self, name_or_path: str, known: Mapping[str, Sequence[Path]]) -> Path:
        if _is_path(name_or_path):
            try:
                return Path(name_or_path).expanduser()
            except RuntimeError:
                raise NotFoundError("no such home folder", where=name_or_path) from None
        if name_or_path not in known:
            close = nearest(name_or_path, known)
            some = sorted(known)
            have = ", ".join(some[:_NAMED]) or "none yet"
            have += f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
            hint = f"did you mean {close}?" if close else f"profiles: {have}; or give a file"
            raise NotFoundError(f"no profile named {name_or_path}", try_=hint)
        return known[name_or_path][0]

    @staticmethod
    def _parent(
        layer: Layer, parent: str, child: Path, seen: Sequence[Path], known: Mapping[str, Sequence[Path]]
    ) -> Path:
        if _is_path(parent):
            path = child.parent / Path(parent).expanduser()
            if not path.is_file():
                raise BadInputError(f"`extends` names {parent}, which is no file", where=layer.place(("extends",)))
            return path
        found = known.get(parent, ())
        if not found:
            close = nearest(parent, known)
            raise BadInputError(
                f"`extends` names {parent}, and there is no such profile",
                where=layer.place(("extends",)),
                try_=f"did you mean {close}?" if close else "specconsole profiles list",
            )
        # A profile may extend the one of the same name that it hides.
        return next((path for path in found if path.resolve() not in seen), found[0])


def _is_path(name_or_path: str) -> bool:
    return "/" in name_or_path or name_or_path.endswith(".toml")


def _layer(path: Path) -> Layer:
    data, text = read_toml(path)
    if not _NAME.fullmatch(path.stem) and "name" not in data:
        raise BadInputError("`name` is missing, and the file's name can't serve", where=str(path))
    return Layer(path.stem, data, text, str(path))
