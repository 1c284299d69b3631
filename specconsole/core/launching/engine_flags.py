"""How one engine is asked for its flags, and how its settings are spelled.

There is one `FLAGS` in each `core/engines/NAME/flags.py`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from specconsole.core.launching.command import flag_of
from specconsole.core.launching.help_text import FlagCatalogue, FlagProblem, check_words
from specconsole.core.launching.rules import Rule
from specconsole.core.launching.versions import Version, parse_version

_SURELY_MEANT, _SURELY_MEANT_ALTHOUGH_SET = 0.85, 0.9
"""How alike two names must be for one to be put in the other's place by a key: `n_min` is not `n_max`."""


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """What is engine's own about flags."""

    engine: str
    help_words: tuple[str, ...]
    """Words behind the command that make the server print all its flags and end."""
    built_in: str
    """Name of the catalogue that ships with the console: ENGINE-VERSION."""
    rules: tuple[Rule, ...]
    aliases: Mapping[str, str]
    """Other names of settings -> the engine's own."""
    model: str
    """The settings' names that the profile's `model`, `draft_model` and the context length stand for."""
    draft: str | None
    context: str
    abbreviates: bool = True
    """argparse takes the start of a long flag for the flag."""
    dotted: bool = False
    """`--speculative-config.method eagle3` is a key inside a setting."""

    @property
    def built_in_version(self) -> Version | None:
        return parse_version(self.built_in.partition("-")[2])


def check_flags(
    engine: EngineFlags, catalogue: FlagCatalogue, args: Mapping[str, object], *, certain: bool
) -> tuple[FlagProblem, ...]:
    """A profile's settings against a server's flags, as they will be spelled on the command line.

    `certain` False: the catalogue is of another version than the server, so what it lacks is a warning.
    """
    found: list[FlagProblem] = []
    for key, value in args.items():
        if value is False or value == []:
            continue  # makes no flag
        name = key.partition(".")[0] if engine.dotted else key
        # A table is JSON on the command line: a value, and no choice.
        asked = "{}" if isinstance(value, Mapping) or name != key else value
        problems = check_words(catalogue, [(name, asked)]) or _spelling(catalogue, name)
        for one in problems:
            change = _change(catalogue, args, key, one.fix) if name == key else None
            found.append(FlagProblem(key, one.level, one.text, one.fix, change))
    if certain:
        return tuple(found)
    softer = {"error": "warning", "warning": "note", "note": "note"}
    return tuple(replace(one, level=softer[one.level], text=f"{one.text} (by {catalogue.source})") for one in found)


def _change(
    catalogue: FlagCatalogue, args: Mapping[str, object], key: str, fix: str | None
) -> dict[str, object] | None:
    """A name begins with dashes and takes over the value; anything else is a value that the flag takes.

    None for a name that is only like the one that was written, or takes values where none is given.
    """
    value = args[key]
    if fix is None:
        return None
    if not fix.startswith("-"):
        return {key: fix} if not isinstance(value, list) or len(value) == 1 else None
    new, flag = fix.lstrip("-").replace("-", "_"), catalogue.find(fix)
    taken = {other.lstrip("-").replace("-", "_") for other in args if other != key}
    if flag is None or flag.takes_value == (value is True):
        return None
    if catalogue.find(key) is not None:
        return {key: None, new: value}
    alike = difflib.SequenceMatcher(None, key.lstrip("-").replace("-", "_"), new).ratio()
    return {key: None, new: value} if alike >= (_SURELY_MEANT_ALTHOUGH_SET if new in taken else _SURELY_MEANT) else None


def _spelling(catalogue: FlagCatalogue, name: str) -> Sequence[FlagProblem]:
    """`np = 2` makes `--np 2`, and a server that knows `-np` refuses that."""
    flag, word = catalogue.find(name), flag_of(name)
    if flag is None:
        return ()
    # The engines take underscores for dashes in long flags; single letters differ by case.
    if any(alias == word or alias.replace("_", "-") == word.replace("_", "-") for alias in flag.aliases):
        return ()
    return (FlagProblem(name, "error", f"becomes {word}, and the flag is {', '.join(flag.aliases)}", flag.name),)
