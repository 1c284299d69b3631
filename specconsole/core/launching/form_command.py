"""The command line of the form's profile, flag by flag, with what differs from its parent and from its last launch."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from specconsole.core.launching.command import build_argv, command_words, show
from specconsole.core.launching.form_values import value_text
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.profile_table import differences
from specconsole.errors import BadInputError

Mark = Literal["same", "new", "changed"]

NO_PORT = 65536
"""Stands where a free port is picked at launch: no real one is that high."""
PORT_WORD = "PORT"


@dataclass(frozen=True, slots=True)
class Unit:
    """What belongs together on the command line: a flag with its values, a variable, the command itself."""

    text: str
    """Quoted for a shell, secrets masked."""
    name: str
    """The setting's name, `env.NAME`, or "" for the command."""
    against_parent: Mark = "same"
    against_last: Mark = "same"


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that two profiles do not share, as texts; "" where it is not set."""

    key: str
    before: str
    after: str


def command_units(
    profile: Profile, parent: Profile | None, last: Profile | None, python: str | None
) -> tuple[Unit, ...]:
    """`parent`, `last` None: there is none to compare with. Raises BadInputError as `build_argv` does."""
    mine = dict(_units(profile, python))
    theirs = dict(_units_or_none(parent, python))
    before = dict(_units_or_none(last, python))
    return tuple(
        Unit(text, name, _mark(text, theirs.get(name), parent), _mark(text, before.get(name), last))
        for name, text in mine.items()
    )


def _mark(text: str, other: str | None, reference: Profile | None) -> Mark:
    if reference is None or other == text:
        return "same"
    return "new" if other is None else "changed"


def _units_or_none(profile: Profile | None, python: str | None) -> Iterator[tuple[str, str]]:
    if profile is None:
        return
    try:
        yield from _units(profile, python)
    except BadInputError:
        return  # what can't be a command line is not compared with


def _units(profile: Profile, python: str | None) -> Iterator[tuple[str, str]]:
    for name in profile.secrets:
        yield f"env.{name}", f"{name}=***"
    for name, value in profile.env.items():
        yield f"env.{name}", f"{name}={shlex.quote(value)}"
    # Only shown, with the key masked; whether it may go so is asked at the start.
    argv = list(build_argv(replace(profile, allow_key_argument=True), profile.port or NO_PORT))
    if python is not None:
        argv = [word.replace("{python}", python) for word in argv]
    start = len(command_words(profile))
    yield "", _shown(argv[:start])
    flag: list[str] = []
    for word in argv[start:]:
        if _is_flag(word) and flag:
            yield _name(flag), _shown(flag)
            flag = []
        flag.append(word)
    if flag:
        yield _name(flag), _shown(flag)


def _is_flag(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not word[1].isdigit() and word[1] != "."


def _name(flag: list[str]) -> str:
    return flag[0].lstrip("-").replace("-", "_")


def _shown(words: list[str]) -> str:
    text = str(NO_PORT)
    return show([PORT_WORD if word == text else word.replace(text, PORT_WORD) for word in words])


def changes(before: Profile | None, after: Profile, *, without: tuple[str, ...] = ()) -> tuple[Change, ...]:
    """Every setting that differs but those in `without`; () where there is nothing to compare with."""
    if before is None:
        return ()
    found: list[Change] = []
    for one in differences(before, after):
        if one.key not in without:
            found += _changes_in(one.key.removeprefix("args."), one.left, one.right)
    return tuple(found)


def _changes_in(key: str, before: Any, after: Any) -> Iterator[Change]:
    """Of two tables, the keys that differ: whole, they would not fit a line."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for inner in dict.fromkeys([*before, *after]):
            if before.get(inner) != after.get(inner):
                yield Change(f"{key}.{inner}", value_text(before.get(inner)), value_text(after.get(inner)))
    else:
        yield Change(key, value_text(before), value_text(after))


def plain_command(units: tuple[Unit, ...]) -> str:
    """The command line to copy."""
    return " ".join(unit.text for unit in units)
