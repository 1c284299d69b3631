"""How one engine is asked for its flags, and how its settings are spelled.

There is one `FLAGS` in each `core/engines/NAME/flags.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
        found += [FlagProblem(key, problem.level, problem.text, problem.fix) for problem in problems]
    if certain:
        return tuple(found)
    softer = {"error": "warning", "warning": "note", "note": "note"}
    return tuple(
        FlagProblem(one.key, softer[one.level], f"{one.text} (by {catalogue.source})", one.fix) for one in found
    )


def _spelling(catalogue: FlagCatalogue, name: str) -> Sequence[FlagProblem]:
    """`np = 2` makes `--np 2`, and a server that knows `-np` refuses that."""
    flag, word = catalogue.find(name), flag_of(name)
    if flag is None:
        return ()
    # The engines take underscores for dashes in long flags; single letters differ by case.
    if any(alias == word or alias.replace("_", "-") == word.replace("_", "-") for alias in flag.aliases):
        return ()
    return (FlagProblem(name, "error", f"becomes {word}, and the flag is {', '.join(flag.aliases)}", flag.name),)
