"""What a person says about hosts in hosts.toml: strict reading, so that a typing error is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specconsole.core.hosts.names import LOCAL, parse_address
from specconsole.core.launching.toml_place import line_of, nearest
from specconsole.errors import BadInputError

_NAME = re.compile(r"[\w.@:\[\]+-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class HostEntry:
    """One `[hosts.NAME]` table."""

    name: str
    ssh: str = ""
    """An alias of ssh_config or `user@host[:port]`; "" is the name itself."""
    read_only: bool = False
    """Nothing is launched or stopped there from this console."""
    connect: bool = True
    """Whether a console connects when it starts; False: only when asked to."""
    note: str = ""
    place: str = ""
    """`FILE:LINE`; not part of the file."""

    @property
    def target(self) -> str:
        return self.ssh or self.name


_KINDS: Mapping[str, type] = {"ssh": str, "read_only": bool, "connect": bool, "note": str}


def decode_hosts(data: Mapping[str, Any], text: str, path: str) -> dict[str, HostEntry]:
    """Entries by name. Raises BadInputError with file, line, key and the nearest key."""
    for key in data:
        if key != "hosts":
            raise _unknown(key, ("hosts",), text, path, (key,))
    hosts = data.get("hosts", {})
    if not isinstance(hosts, Mapping):
        raise BadInputError("`hosts` is not a table", where=_place(text, path, ("hosts",)), try_="[hosts.NAME]")
    return {name: _entry(name, table, text, path) for name, table in hosts.items()}


def _entry(name: str, table: Any, text: str, path: str) -> HostEntry:
    here = ("hosts", name)
    where = _place(text, path, here)
    if not isinstance(table, Mapping):
        raise BadInputError(f"`hosts.{name}` is not a table", where=where, try_=f"[hosts.{name}]")
    if not _NAME.fullmatch(name):
        raise BadInputError(f"not a name for a host: {name!r}", where=where, try_="letters, digits, . _ - @ :")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KINDS:
            raise _unknown(key, tuple(_KINDS), text, path, (*here, key))
        if type(value) is not _KINDS[key]:
            kind = {str: "a text in quotes", bool: "true or false"}[_KINDS[key]]
            raise BadInputError(f"`{key}` must be {kind}", where=_place(text, path, (*here, key)))
        values[key] = value
    if any(not c.isprintable() for c in values.get("note", "")):
        # It is printed in lists: no byte of a file may drive a terminal or break a line.
        raise BadInputError("`note` must be one line of plain text", where=_place(text, path, (*here, "note")))
    entry = HostEntry(name, **values, place=where)
    if name == LOCAL and entry.ssh:
        raise BadInputError(f"`{LOCAL}` is this machine and has no `ssh`", where=_place(text, path, (*here, "ssh")))
    try:
        parse_address(entry.target)
    except BadInputError as error:
        key = "ssh" if entry.ssh else name
        raise BadInputError(error.what, where=_place(text, path, (*here, key)), try_=error.try_) from None
    return entry


def encode_hosts(entries: Mapping[str, HostEntry]) -> dict[str, Any]:
    """The tables to write; what is as usual is left out."""
    usual = HostEntry("")
    return {
        "hosts": {
            name: {key: getattr(entry, key) for key in _KINDS if getattr(entry, key) != getattr(usual, key)}
            for name, entry in sorted(entries.items())
        }
    }


def _place(text: str, path: str, keys: tuple[str, ...]) -> str:
    line = line_of(text, keys)
    return f"{path}:{line}" if line else path


def _unknown(key: str, known: tuple[str, ...], text: str, path: str, keys: tuple[str, ...]) -> BadInputError:
    close = nearest(key, known)
    hint = f"did you mean {close}?" if close else f"known: {', '.join(known)}"
    return BadInputError(f"unknown key `{key}`", where=_place(text, path, keys), try_=hint)
