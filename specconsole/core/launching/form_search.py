"""Finding a setting by any part of its name: among the form's fields, the server's flags, and variables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from specconsole.core.launching.form_fields import FieldPath, FlagIndex
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


def find_settings(
    query: str,
    views: Sequence[FieldView],
    index: FlagIndex | None,
    variables: Mapping[str, str],
    texts: Mapping[FieldPath, str],
) -> tuple[Hit, ...]:
    """The best first; every word of the query must be found. An empty query gives the fields as they stand.

    `texts`: the fields' values as they are shown.
    """
    words = [word.lstrip("-").replace("-", "_").lower() for word in query.split()]
    hits = [*_fields(views, texts), *_flags(views, index), *_known_variables(views, variables)]
    if not any(words):
        return tuple(hit for hit in hits if hit.kind == "field")
    scored = [(score, number, hit) for number, hit in enumerate(hits) if (score := _score(words, hit)) is not None]
    found = [hit for _, _, hit in sorted(scored, key=lambda one: one[:2])]
    new = _new_variable(query.strip(), hits)
    return (*found[:_MOST], *((new,) if new is not None else ()))


def _fields(views: Sequence[FieldView], texts: Mapping[FieldPath, str]) -> Iterable[Hit]:
    for view in views:
        field = view.field
        names = f"{field.label} {field.flag.lstrip('-').replace('-', '_')}" if field.flag else field.label
        yield Hit("field", field.path, names.split()[0], field.help, texts.get(field.path, ""), field.deprecated)


def _flags(views: Sequence[FieldView], index: FlagIndex | None) -> Iterable[Hit]:
    if index is None:
        return
    there = {view.field.flag for view in views if view.field.flag}
    for flag in index.catalogue.flags:
        if flag.name in there or flag.name in ("--help", "--usage", "--version"):
            continue
        name = flag.name.lstrip("-").replace("-", "_")
        yield Hit("flag", ("args", name), name, flag.help, deprecated=flag.deprecated)


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


def _score(words: Sequence[str], hit: Hit) -> tuple[int, ...] | None:
    """Small is good; None where a word is not found."""
    name = hit.name.lower()
    parts = re.split(r"[_.\s]+", name)
    initials = "".join(part[:1] for part in parts)
    grades: list[int] = []
    for word in words:
        if name == word:
            grades.append(0)
        elif name.startswith(word):
            grades.append(1)
        elif any(part.startswith(word) for part in parts) or f"_{word}" in name:
            grades.append(2)
        elif initials.startswith(word) and len(word) > 1:
            grades.append(3)
        elif word in name:
            grades.append(4)
        elif word in hit.about.lower():
            grades.append(7)
        else:
            return None
    kinds: dict[HitKind, int] = {"field": 0, "variable": 1, "flag": 1}
    # What is in the form goes before what would be added, unless that fits far better.
    return (max(grades) + kinds[hit.kind] + (2 if hit.deprecated else 0), sum(grades), 0 if hit.value else 1, len(name))
