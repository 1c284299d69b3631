"""Profiles that the form writes, each a file of its own in the configuration folder.

A file of the form carries the digest of its own text in its first line. As long as that holds, the form may write it
anew; edited by hand it no longer holds, and the file is then a person's like any other: never rewritten.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from specconsole.adapters.local import write_atomically
from specconsole.adapters.toml_files import ProfileFiles, read_toml
from specconsole.core.launching.inherit import Layer, resolve
from specconsole.core.launching.profile_table import profile_table
from specconsole.errors import BadInputError, NotFoundError, RefusedError, SpecconsoleError

_NAME = re.compile(r"[A-Za-z0-9_@+-][\w.@+-]*", re.ASCII)
_HEAD = "# Written by specconsole's form, which may rewrite it until a person edits it. sha256 "


@dataclass(frozen=True, slots=True)
class FormFiles:
    """Reads every profile, writes those of the form into `folder`. Calls read and write files: not for the loop."""

    files: ProfileFiles
    folder: Path

    def layers(self, name: str) -> list[Layer]:
        """The files that a profile is made of, itself first. Raises NotFoundError, BadInputError."""
        return self.files.layers(name)

    def is_forms(self, source: str) -> bool:
        """Whether a file was written by the form and not touched since."""
        try:
            head, _, body = Path(source).read_text("utf-8").partition("\n")
        except (OSError, UnicodeDecodeError):
            return False
        return head == _HEAD + _digest(body)

    def why_not(self, name: str) -> str:
        """Why a profile can't be saved under this name; "" when it can, "replace" when that rewrites one of ours."""
        if not _NAME.fullmatch(name) or name.endswith(".toml"):
            return "a name is letters, digits and . _ @ + -"
        known = self.files.paths().get(name)
        if known is not None and not self.is_forms(str(known)):
            return f"there is a profile {name} that the form did not write ({known}): another name"
        path = self.folder / f"{name}.toml"
        if known is None and path.exists():
            return f"{path} is there already: another name"
        return "replace" if known is not None else ""

    def free_name(self, name: str) -> str:
        """`NAME-2`, or the first number that is free."""
        stem = re.sub(r"-\d+$", "", name) or "profile"
        known = self.files.paths()
        return next(one for number in range(2, 10_000) if (one := f"{stem}-{number}") not in known)

    def save(self, name: str, own: Mapping[str, Any], host: str, wanted: Mapping[str, Any]) -> Path:
        """Writes the layer, after proving that the file resolves on `host` to `wanted` (a profile's table).

        Raises RefusedError where the name is taken, BadInputError where the file would say something else.
        """
        why = self.why_not(name)
        if why not in ("", "replace"):
            raise RefusedError(why, where=name, try_=self.free_name(name) if _NAME.fullmatch(name) else "")
        path = self.folder / f"{name}.toml"
        table = {key: value for key, value in own.items() if key != "name"}
        text = tomli_w.dumps(table)
        self._prove(Layer(name, table, text, str(path)), host, wanted)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, f"{_HEAD}{_digest(text)}\n{text}".encode(), mode=0o600)
        except OSError as error:
            raise BadInputError(error.strerror or "can't be written", where=str(path)) from None
        return path

    def _prove(self, layer: Layer, host: str, wanted: Mapping[str, Any]) -> None:
        parent = layer.parent
        try:
            found = profile_table(resolve([layer, *(self.layers(parent) if parent else ())]).on(host))
        except SpecconsoleError as error:
            raise BadInputError(error.what, where=error.where or layer.source, try_=error.try_) from None
        differing = [key for key in {*found, *wanted} - {"name"} if found.get(key) != wanted.get(key)]
        if differing:
            raise BadInputError(
                f"saved like this, {', '.join(sorted(differing))} would not be what the form shows",
                where=layer.source,
                try_="e edits the text of the profile itself",
            )

    def text_of(self, own: Mapping[str, Any]) -> str:
        """The layer as TOML, to be edited."""
        return tomli_w.dumps(own)

    def read_edited(self, path: Path) -> tuple[dict[str, Any], str]:
        """An edited text, parsed, and itself. Raises BadInputError that names the line."""
        try:
            return read_toml(path)
        except NotFoundError:
            raise BadInputError("the editor left no file", where=path.name) from None

    def parents_of(self, own: Mapping[str, Any], text: str) -> Sequence[Layer]:
        """The files that a layer builds on. Raises BadInputError with the line of `extends`."""
        layer = Layer("edited", own, text, "edited.toml")
        parent = layer.parent
        if parent is None:
            return ()
        try:
            return self.layers(parent)
        except NotFoundError as error:
            raise BadInputError(error.what, where=layer.place(("extends",)), try_=error.try_) from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
