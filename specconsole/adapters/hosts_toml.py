"""The two files of hosts in the config folder.

`hosts.toml` is written by hand and only read here. What `hosts add` adds goes to `hosts.added.toml`, which the
console owns: it is replaced whole, under a lock, so that two consoles don't lose each other's hosts. A name in
both means what the hand-written file says.
"""

from __future__ import annotations

import fcntl
import glob
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specconsole.adapters.toml_files import read_toml, write_toml
from specconsole.core.hosts.listing import HostEntry, decode_hosts, encode_hosts
from specconsole.core.launching.toml_place import nearest
from specconsole.errors import BadInputError, NotFoundError, RefusedError

WRITTEN = "hosts.toml"
ADDED = "hosts.added.toml"


class HostsFiles:
    """Hosts by name, from both files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def written_path(self) -> Path:
        return self._folder / WRITTEN

    @property
    def added_path(self) -> Path:
        return self._folder / ADDED

    def read(self) -> dict[str, HostEntry]:
        """Every host. Raises BadInputError with file, line and key; absent files are empty ones."""
        return {**self._read(self.added_path), **self._read(self.written_path)}

    def add(self, entry: HostEntry) -> None:
        """Adds one, or changes one that was added. Raises RefusedError for a name of the hand-written file."""
        mine = self._read(self.written_path).get(entry.name)
        if mine is not None:
            raise RefusedError(f"{entry.name} is in your own file already", where=mine.place, try_="edit it there")
        with self._locked():
            self._write({**self._read(self.added_path), entry.name: entry})

    def remove(self, name: str) -> None:
        """Takes out one that was added. Raises NotFoundError, RefusedError for one of the hand-written file."""
        mine = self._read(self.written_path).get(name)
        if mine is not None:
            raise RefusedError(f"{name} is in your own file", where=mine.place, try_="remove it there")
        with self._locked():
            added = self._read(self.added_path)
            if name not in added:
                close = nearest(name, self.read())
                raise NotFoundError(
                    f"no host named {name}", try_=f"did you mean {close}?" if close else "specconsole hosts list"
                )
            del added[name]
            self._write(added)

    def _read(self, path: Path) -> dict[str, HostEntry]:
        try:
            data, text = read_toml(path)
        except NotFoundError:
            return {}
        return decode_hosts(data, text, str(path))

    def _write(self, entries: dict[str, HostEntry]) -> None:
        write_toml(self.added_path, encode_hosts(entries))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(self._folder / ".hosts.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BadInputError(error.strerror or "can't be written", where=str(self._folder)) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def ssh_aliases(config: str = "~/.ssh/config") -> list[str]:
    """Names of `Host` lines without patterns, in order: what a person may mean by a host's name.

    Included files are read as well, each once; what can't be read or parsed is left out.
    """
    names: dict[str, None] = {}
    _collect_aliases(Path(config).expanduser(), names, set())
    return list(names)


def _collect_aliases(path: Path, names: dict[str, None], seen: set[Path]) -> None:
    try:
        if path.resolve() in seen:
            return
        seen.add(path.resolve())
        text = path.read_text("utf-8", "replace")
    except (OSError, RuntimeError):
        return
    for line in text.splitlines():
        try:
            words = shlex.split(line.replace("=", " ", 1), comments=True)
        except ValueError:
            continue
        what = words[0].lower() if words else ""
        if what == "host":
            names.update((name, None) for name in words[1:] if name.isprintable() and not set(name) & set("*?! "))
        elif what == "include":
            for pattern in words[1:]:
                # Relative ones are meant from ~/.ssh, wherever the including file is (ssh_config(5)).
                for found in sorted(glob.glob(str(Path("~/.ssh").expanduser() / Path(pattern).expanduser()))):
                    _collect_aliases(Path(found), names, seen)
