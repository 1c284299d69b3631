"""Finding a setting by any part of its name: among the form's fields, the server's flags, and variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from specconsole.core.launching.form_fields import FieldPath, FlagIndex
from specconsole.core.launching.help_text import Flag
from specconsole.core.views.form import FieldView

HitKind = Literal["field", "flag", "variable"]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST = 200


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing to go to or to add."""

    kind: HitKind
    path: FieldPath
    name: str
    about: str
    """Its help, in one line."""
    value: str = ""
    deprecated: bool = False
    also: tuple[str, ...] = ()
    """Other names of the same."""


class SettingSearch:
    """Everything that can be gone to or added, gathered once; `find` is asked with every letter.

    `texts`: the fields' values as they are shown.
    """

    def __init__(
        self, views: Sequence[FieldView], index: FlagIndex | None, variables: Mapping[str, str],
        texts: Mapping[FieldPath, str],
    ) -> None:  # fmt: skip
        hits = [*_fields(views, index, texts), *_flags(views, index), *_known_variables(views, variables)]
        self._hits = [(hit, tuple(name.lower() for name in (hit.name, *hit.also)), hit.about.lower()) for hit in hits]

    def find(self, query: str) -> tuple[Hit, ...]:
        """The best first; every word of the query must be found. An empty query gives the fields as they stand."""
        words = query.lower().split()
        if not words:
            return tuple(hit for hit, _, _ in self._hits if hit.kind == "field")
        scored = [
            (score, number, hit)
            for number, (hit, names, about) in enumerate(self._hits)
            if (score := _score(words, hit, names, about)) is not None
        ]
        found = [hit for _, _, hit in sorted(scored, key=lambda one: one[:2])]
        new = _new_variable(query.strip(), [hit for hit, _, _ in self._hits])
        return (*found[:_MOST], *((new,) if new is not None else ()))


def _fields(views: Sequence[FieldView], index: FlagIndex | None, texts: Mapping[FieldPath, str]) -> Iterable[Hit]:
    for view in views:
        field = view.field
        flag = index.find(field.flag) if index is not None and field.flag else None
        also = _names(flag) if flag is not None else ()
        yield Hit("field", field.path, field.label, field.help, texts.get(field.path, ""), field.deprecated, also)


def _names(flag: Flag) -> tuple[str, ...]:
    return tuple(alias.lstrip("-").replace("-", "_") for alias in flag.aliases)


def _flags(views: Sequence[FieldView], index: FlagIndex | None) -> Iterable[Hit]:
    if index is None:
        return
    there = {view.field.flag for view in views if view.field.flag}
    for flag in index.catalogue.flags:
        if flag.name in there or flag.name in ("--help", "--usage", "--version"):
            continue
        name = flag.name.lstrip("-").replace("-", "_")
        yield Hit("flag", ("args", name), name, flag.help, deprecated=flag.deprecated, also=_names(flag))


def _known_variables(views: Sequence[FieldView], variables: Mapping[str, str]) -> Iterable[Hit]:
    there = {view.field.path for view in views}
    for name, about in variables.items():
        if ("env", name) not in there:
            yield Hit("variable", ("env", name), name, about)


def _new_variable(query: str, hits: Sequence[Hit]) -> Hit | None:
    """A name in capitals is a variable, also one that nobody knows."""
    name, _, _ = query.partition("=")
    if not _VARIABLE.fullmatch(name) or name != name.upper() or len(name) < 2:
        return None
    if any(hit.path == ("env", name) for hit in hits):
        return None
    return Hit("variable", ("env", name), name, "a new environment variable")


_NOT = 99


def _grade(word: str, name: str) -> int:
    """How well a word fits one name: 0 is the name itself."""
    if word not in name:
        initials = "".join(part[:1] for part in re.split(r"[_.]", name)) if len(word) > 1 else ""
        return 3 if initials and initials.startswith(word) else _NOT
    if name.startswith(word):
        return 0 if name == word else 1
    return 2 if f"_{word}" in name or f".{word}" in name else 4


def _score(words: Sequence[str], hit: Hit, names: Sequence[str], about: str) -> tuple[int, ...] | None:
    """Small is good; None where a word is not found."""
    grades: list[int] = []
    for word in words:
        plain = word.lstrip("-").replace("-", "_")
        grade = min((_grade(plain, name) for name in names), default=_NOT)
        if grade == _NOT:
            if word not in about:
                return None
            grade = 7
        grades.append(grade)
    kinds: dict[HitKind, int] = {"field": 0, "variable": 1, "flag": 1}
    # What is in the form goes before what would be added, unless that fits far better.
    return (
        max(grades) + kinds[hit.kind] + (2 if hit.deprecated else 0),
        sum(grades),
        0 if hit.value else 1,
        len(hit.name),
    )
