"""A profile's probes: named regular expressions with one number in them, and what is refused of them. Pure.

Python's `re` has no time limit, so what could take long is not accepted: a repeat may repeat one character or class
only, two repeats that can match the same text may not touch, at most one may run over blanks (`.*`), and three letters
that always stand in the line are wanted, by which all other lines are passed over. What is left takes at worst some
line length x line length steps on a line made for it, and lines are cut at 4 KiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# `re._parser` is how `re` itself reads a pattern; there is no public way to look at one (CPython 3.11 to 3.14).
from re import _constants as _sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LINE_BYTES = 4096
"""What of a line is looked at."""
MOST_PROBES = 16
MOST_PATTERN = 300
LEAST_LITERAL = 3
_MOST_REPEATS = 8
_MOST_VARIANTS = 64
_SHORT = 32
"""A repeat of at most so many counts as short."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")
_ASCII = range(128)
_NUMBER = frozenset(map(ord, "0123456789.,+-eE"))


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe that was accepted."""

    name: str
    pattern: str
    literals: tuple[bytes, ...]
    """One of these stands in every line that can match."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One character or class of a pattern laid flat, and how often."""

    chars: frozenset[int]
    """ASCII codes that it takes; -1 stands for every other character."""
    least: int
    most: int
    letter: str = ""
    """Itself, where it is one plain character taken once."""


def why_not(name: str, pattern: str) -> str:
    """Why a probe is not accepted; "" when it is."""
    if not _NAME.fullmatch(name):
        return "is no name for a probe: letters, digits, `_`, `.`, `-`, at most 40"
    if len(pattern) > MOST_PATTERN:
        return f"is longer than {MOST_PATTERN} characters"
    try:
        compiled = re.compile(pattern, re.ASCII)
        tree = _parser.parse(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    if compiled.groups != 1:
        return f"must have one group, around the number; it has {compiled.groups} ((?:...) groups without counting)"
    if compiled.flags & ~re.ASCII:
        return "takes no flags"
    try:
        variants = list(_variants(tree))
    except ValueError as error:
        return str(error)
    for variant in variants:
        if problem := _slow(variant):
            return problem
    if any(len(_literal(variant)) < LEAST_LITERAL for variant in variants):
        return (
            f"needs {LEAST_LITERAL} characters that always stand in the line, one after the other, outside of repeats"
        )
    return ""


def probe(name: str, pattern: str) -> Probe:
    """Raises ValueError with the reason."""
    if problem := why_not(name, pattern):
        raise ValueError(problem)
    literals = {_literal(variant).encode() for variant in _variants(_parser.parse(pattern, re.ASCII))}
    return Probe(name, pattern, tuple(sorted(literals)))


def probes_of(patterns: Mapping[str, str]) -> tuple[Probe, ...]:
    """Those of a launch's record that are acceptable: another console may have written it."""
    return tuple(probe(name, text) for name, text in list(patterns.items())[:MOST_PROBES] if not why_not(name, text))


# ------------------------------------------------------------------ a pattern laid flat


def _variants(tree: Any) -> Iterator[tuple[_Part, ...]]:
    """Every way through alternatives and optional parts. Raises ValueError for what is not accepted."""
    found: list[tuple[_Part, ...]] = [()]
    for op, value in tree:
        ways = _ways(op, value)
        found = [(*before, *way) for before in found for way in ways]
        if len(found) > _MOST_VARIANTS:
            raise ValueError("has too many alternatives and optional parts")
    yield from found


def _ways(op: Any, value: Any) -> list[tuple[_Part, ...]]:
    if op is _sre.SUBPATTERN:
        return list(_variants(value[3]))
    if op is _sre.BRANCH:
        return [way for branch in value[1] for way in _variants(branch)]
    if op in (_sre.MAX_REPEAT, _sre.MIN_REPEAT, *_POSSESSIVE):
        return _repeated(*value)
    if op is _sre.AT:
        return [()]  # ^, $, \b take no character
    if op in (_sre.LITERAL, _sre.NOT_LITERAL, _sre.ANY, _sre.IN):
        letter = chr(value) if op is _sre.LITERAL else ""
        return [(_Part(_chars(op, value), 1, 1, letter),)]
    raise ValueError(f"may not use {str(op).lower().replace('_', ' ')}: its time has no bound")


_POSSESSIVE = tuple(getattr(_sre, name) for name in ("POSSESSIVE_REPEAT",) if hasattr(_sre, name))


def _repeated(least: int, most: Any, body: Any) -> list[tuple[_Part, ...]]:
    most = 10**9 if most is _sre.MAXREPEAT else int(most)
    if most <= 1:
        inner = list(_variants(body))
        return inner if least else [(), *inner]
    items = list(body)
    while len(items) == 1 and items[0][0] is _sre.SUBPATTERN:
        items = list(items[0][1][3])
    if len(items) != 1 or items[0][0] not in (_sre.LITERAL, _sre.NOT_LITERAL, _sre.ANY, _sre.IN):
        raise ValueError(
            "repeats more than one character or class: a repeat within a repeat may take for ever on a line that does "
            "not match; write it out, or repeat a class like [0-9.]"
        )
    if most <= _SHORT and len(items) != 1:
        raise ValueError("repeats a group")
    return [(_Part(_chars(*items[0]), least, most),)]


def _chars(op: Any, value: Any) -> frozenset[int]:
    if op is _sre.LITERAL:
        return frozenset({value if value < 128 else -1})
    if op is _sre.NOT_LITERAL:
        return frozenset({*_ASCII, -1} - {value if value < 128 else -2})
    if op is _sre.ANY:
        return frozenset({*_ASCII, -1} - {10})
    negated, inside = False, set[int]()
    for kind, what in value:
        if kind is _sre.NEGATE:
            negated = True
        elif kind is _sre.LITERAL:
            inside.add(what if what < 128 else -1)
        elif kind is _sre.RANGE:
            inside |= {code for code in _ASCII if what[0] <= code <= what[1]} | ({-1} if what[1] >= 128 else set())
        else:
            inside |= _category(what)
    return frozenset({*_ASCII, -1} - inside | {-1}) if negated else frozenset(inside)


def _category(what: Any) -> set[int]:
    name = str(what).rsplit("CATEGORY_", 1)[-1]
    sign = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w", "NOT_DIGIT": r"\D", "NOT_SPACE": r"\S", "NOT_WORD": r"\W"}
    taken = {code for code in _ASCII if re.match(sign.get(name, "."), chr(code), re.ASCII)}
    return taken | {-1} if name.startswith("NOT_") else taken


# ------------------------------------------------------------------ judgement


def _slow(parts: Sequence[_Part]) -> str:
    """Why a flat pattern may take long; "" when it can't."""
    long = [part for part in parts if part.most > 1]
    if len(long) > _MOST_REPEATS:
        return f"has more than {_MOST_REPEATS} repeats"
    wide = [part for part in long if part.most > _SHORT and 32 in part.chars and len(part.chars) > 16]
    if len(wide) > 1:
        return "has more than one repeat that runs over blanks (`.*`, `[^,]*`): say what stands between, or use \\S"
    if parts and wide and parts[0] is wide[0]:
        return "begins with a repeat that runs over blanks: a search needs none, leave it out"
    numbers = 0
    for place, part in enumerate(parts):
        if part.most <= 1:
            continue
        for other in parts[place + 1 :]:
            if other.most > 1 and part.chars & other.chars and (part.most > _SHORT or other.most > _SHORT):
                # Once, and only within a number, as people write it: digits, perhaps a point, perhaps digits.
                numbers += 1
                if numbers == 1 and part.chars | other.chars <= _NUMBER:
                    continue
                return (
                    "has two repeats side by side that can match the same characters: put what separates them between"
                )
            if other.least > 0:
                # What must stand there keeps apart what comes behind it.
                break
    return ""


def _literal(parts: Sequence[_Part]) -> str:
    """The longest run of plain characters."""
    best = run = ""
    for part in parts:
        run = run + part.letter if part.letter else ""
        best = max(best, run, key=len)
    return best
