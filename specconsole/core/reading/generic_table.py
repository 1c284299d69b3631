"""A dialect as a table: a literal, a pattern and what the match means, looked up line by line.

The literal does two jobs: the pipeline's prefilter is built from all of them, and a pattern is only tried on a
line that holds its literal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from specconsole.core.reading.events import Event, Line
from specconsole.core.reading.prefilter import Steady

Make = Callable[[re.Match[str]], Sequence[Event]]


@dataclass(frozen=True, slots=True)
class Row:
    """`pattern` is searched in the message of a line that holds `literal`; `make` turns the match into events."""

    literal: str
    pattern: re.Pattern[str]
    make: Make


def row(literal: str, pattern: str, *events: Event, make: Make | None = None) -> Row:
    """One row: fixed `events`, or `make` where they depend on the match."""
    if make is not None:
        return Row(literal, re.compile(pattern), make)
    return Row(literal, re.compile(pattern), lambda _match: events)


@dataclass(frozen=True, slots=True)
class TableDialect:
    """One engine's rows. The first row that answers wins, unless `all_rows` is set."""

    engine: str
    rows: tuple[Row, ...]
    sure: tuple[str, ...]
    """Texts that only this engine prints."""
    hints: tuple[str, ...] = ()
    """Texts that speak for the engine without proving it."""
    shapes: tuple[str, ...] = ()
    """Patterns that only this engine's lines match; each must hold one of the literals."""
    tags: tuple[str, ...] = ()
    """Beginnings of the names that only this engine's processes carry in front of their lines."""
    steady: Steady | None = None
    """Knows which of the engine's ordinary lines need no look; None: every line with a literal is looked at."""
    literals: tuple[bytes, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.literals:
            tags = [f"({tag}" for tag in self.tags]
            texts = dict.fromkeys([r.literal for r in self.rows] + list(self.sure) + list(self.hints) + tags)
            object.__setattr__(self, "literals", tuple(text.encode() for text in texts))

    def evidence(self, line: Line) -> int:
        """3 for a text of `sure` or a process tag, 1 for one of `hints`, else 0."""
        if line.rank is not None and self.tags and line.rank.startswith(self.tags):
            return 3
        if any(text in line.text for text in self.sure):
            return 3
        if any(re.match(shape, line.text) for shape in self.shapes):
            return 3
        return 1 if any(text in line.text for text in self.hints) else 0

    def parse(self, line: Line) -> Sequence[Event]:
        """The first row's answer that is not empty."""
        text = line.text
        for candidate in self.rows:
            if candidate.literal in text:
                match = candidate.pattern.search(text)
                if match is not None:
                    events = candidate.make(match)
                    if events:
                        return events
        return ()


def number(text: str | None) -> float | None:
    """The number in `text` (thousands separators allowed); None when there is none."""
    if text is None:
        return None
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
