"""The values of a launch's secrets, from where the profile says: a variable, a file of mode 0600, a command."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from specconsole.errors import BadInputError

_COMMAND_LIMIT_S = 30.0


def secret_values(places: Mapping[str, str], source: str, *, commands: bool) -> dict[str, str]:
    """Variable -> value. May take as long as a command does; not for the loop.

    `commands` False: places that come from a host's record may name no command to run here. Raises BadInputError, which
    never shows a value.
    """
    return {name: _value(name, place, source, commands=commands) for name, place in places.items()}


def _value(name: str, place: str, source: str, *, commands: bool) -> str:
    kind, _, where = place.partition(":")
    if kind == "env":
        value = os.environ.get(where)
        if not value:
            raise BadInputError(
                f"the secret {name} comes from the variable {where}, which is not set here",
                where=source,
                try_=f"export {where}=...",
            )
        return value
    if kind == "file":
        return _from_file(name, where)
    if not commands:
        raise BadInputError(
            f"the secret {name} comes from a command, and a launch's record on a host runs no commands here",
            where=source,
            try_="launch its profile",
        )
    return _from_command(name, where, source)


def _from_file(name: str, where: str) -> str:
    path = Path(where).expanduser()
    try:
        mode = path.stat().st_mode
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        raise BadInputError(f"the secret {name} can't be read: {reason}", where=where) from None
    if mode & 0o077:
        raise BadInputError(
            f"the secret {name} is in a file that others may read (mode {mode & 0o777:04o})",
            where=where,
            try_=f"chmod 600 {shlex.quote(where)}",
        )
    return value


def _from_command(name: str, where: str, source: str) -> str:
    try:
        words = shlex.split(where)
        done = subprocess.run(
            [os.path.expanduser(words[0]), *words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_COMMAND_LIMIT_S,
            check=False,
        )
        value = done.stdout.decode("utf-8").strip()
    except (ValueError, IndexError):
        raise BadInputError(
            f"the command of the secret {name} can't be read as words, or gave no text", where=source
        ) from None
    except subprocess.TimeoutExpired:
        raise BadInputError(
            f"the command of the secret {name} took over {_COMMAND_LIMIT_S:.0f} s", where=source
        ) from None
    except OSError as error:
        raise BadInputError(f"the command of the secret {name} can't be run: {error.strerror}", where=source) from None
    if done.returncode != 0 or not value:
        raise BadInputError(
            f"the command of the secret {name} ended with {done.returncode} and {len(value)} characters",
            where=source,
            try_="run it by hand",
        )
    return value
