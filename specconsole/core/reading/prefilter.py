"""Which lines of a block need a look: the part of reading that costs per byte.

Servers repeat themselves with other numbers. So a line without its digits is its template, and what a template
means (nothing; look at it; a steady line) is found once and remembered. A block is cut into lines and templates by
C code alone; only lines whose template means something are decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from specconsole.core.reading.events import Busy, Idle, Prefill, Window
from specconsole.core.reading.stamps import Stamp

NOTHING = 0
LOOK = 1
STEADY = 2

_DIGITS = b"0123456789"
_MAX_TEMPLATES = 16_384
_MAX_TEMPLATE_BYTES = 640


@dataclass(frozen=True, slots=True)
class SteadyRead:
    """What a steady line says."""

    rank: str | None
    stamp_source: str
    stamp: Stamp
    event: Window | Prefill | Busy | Idle


Brief = Literal["prompt", "decodes", "idle", "worked"]
"""Work began with a prompt, or with a decode line; it ended; it went on (and only the time of it counts)."""


@dataclass(frozen=True, slots=True)
class Picked:
    """Which lines of a block to look at."""

    indexes: list[int]
    """Ascending."""
    brief: dict[int, Brief] = field(default_factory=dict)
    """Those of them of which only the moment counts, with what happened at it."""


class Steady(Protocol):
    """A dialect's ordinary lines of a running server, of which only some make a difference."""

    def kind(self, template: bytes) -> int:
        """`STEADY` or above for a line without its digits that is one, else `LOOK`."""

    def pick(self, lines: list[bytes], kinds: list[int]) -> Picked:
        """Every `LOOK` line, and so many steady ones that the state afterwards is as if all had been looked at."""

    def read(self, raw: bytes, brief: Brief | None) -> SteadyRead | None:
        """One steady line, straight from its bytes; the same as the dialect's `parse` makes of it, or what is known of
        a brief one. None where that can't be told at a glance: read it like any line."""


class Prefilter:
    """Remembers what templates mean. Holds no state of a log: throwing it away changes speed, never a result."""

    def __init__(self, literals: Iterable[bytes], steady: Steady | None) -> None:
        bare = {literal.translate(None, _DIGITS) for literal in literals}
        self._literals = re.compile(b"|".join(re.escape(literal) for literal in sorted(bare) if literal.strip()))
        self._steady = steady
        self._known: dict[bytes, int] = {}

    def kinds(self, block: bytes) -> list[int]:
        """One kind for each LF-separated piece of `block`, in order."""
        templates = block.translate(None, _DIGITS).split(b"\n")
        kinds: list[int | None] = list(map(self._known.get, templates))
        if None in kinds:
            for i, kind in enumerate(kinds):
                if kind is None:
                    known = self._known.get(templates[i])
                    kinds[i] = self._classify(templates[i]) if known is None else known
        return kinds  # type: ignore[return-value]  # every None was replaced above

    def kind(self, line: bytes) -> int:
        """The kind of one line."""
        template = line.translate(None, _DIGITS)
        kind = self._known.get(template)
        return self._classify(template) if kind is None else kind

    def _classify(self, template: bytes) -> int:
        kind = NOTHING
        if self._literals.search(template):
            kind = LOOK
            if self._steady is not None and b"\r" not in template:
                kind = self._steady.kind(template)
        if len(template) <= _MAX_TEMPLATE_BYTES:
            if len(self._known) >= _MAX_TEMPLATES:
                self._known.clear()
            self._known[template] = kind
        return kind

    def pick(self, lines: list[bytes], kinds: list[int]) -> Picked:
        """The lines to look at."""
        if self._steady is None or max(kinds) < STEADY:
            return Picked([i for i, kind in enumerate(kinds) if kind])
        return self._steady.pick(lines, kinds)

    def read_steady(self, raw: bytes, brief: Brief | None) -> SteadyRead | None:
        """See `Steady.read`."""
        return self._steady.read(raw, brief) if self._steady is not None else None
