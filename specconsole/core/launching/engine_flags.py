"""How one engine is asked for its flags, and how its settings are spelled.

There is one `FLAGS` in each `core/engines/NAME/flags.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from specconsole.core.launching.command import flag_of
from specconsole.core.launching.help_text import FlagCatalogue, FlagProblem, check_words
from specconsole.core.launching.rules import Rule
from specconsole.core.launching.versions import Version, parse_version


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
        found += [
            FlagProblem(
                key, one.level, one.text, one.fix, None if name != key else _change(catalogue, key, value, one.fix)
            )
            for one in problems
        ]
    if certain:
        return tuple(found)
    softer = {"error": "warning", "warning": "note", "note": "note"}
    return tuple(replace(one, level=softer[one.level], text=f"{one.text} (by {catalogue.source})") for one in found)


def _change(catalogue: FlagCatalogue, key: str, value: object, fix: str | None) -> Mapping[str, object] | None:
    """A name begins with dashes and takes over the value; anything else is a value that the flag takes."""
    if fix is None:
        return None
    if fix.startswith("-"):
        flag = catalogue.find(fix)
        if flag is None or flag.takes_value == (value is True):
            return None
        return {key: None, fix.lstrip("-").replace("-", "_"): value}
    return {key: fix} if not isinstance(value, list) or len(value) == 1 else None


def _spelling(catalogue: FlagCatalogue, name: str) -> Sequence[FlagProblem]:
    """`np = 2` makes `--np 2`, and a server that knows `-np` refuses that."""
    flag, word = catalogue.find(name), flag_of(name)
    if flag is None:
        return ()
    # The engines take underscores for dashes in long flags; single letters differ by case.
    if any(alias == word or alias.replace("_", "-") == word.replace("_", "-") for alias in flag.aliases):
        return ()
    return (FlagProblem(name, "error", f"becomes {word}, and the flag is {', '.join(flag.aliases)}", flag.name),)
