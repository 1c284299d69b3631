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

from specconsole.core.reading.block_lines import BlockLines
from specconsole.core.reading.events import Prefill, Window
from specconsole.core.reading.stamps import Stamp

NOTHING = 0
LOOK = 1
STEADY = 2
"""Kinds of lines; what is above is steady too, and the dialect's own."""

_LOOKED_AT = re.compile(b"[^\\0]")
_NOT_STEADY = bytes((NOTHING, LOOK))
_DIGITS = b"0123456789"
_MAX_TEMPLATES = 16_384
_MAX_TEMPLATE_BYTES = 640


@dataclass(frozen=True, slots=True)
class SteadyRead:
    """What a steady line says."""

    rank: str | None
    stamp_source: str
    stamp: Stamp
    event: Window | Prefill


Moment = Literal["prompt", "decodes", "idle"]
"""Work began with a prompt, or with a decode line; or it ended."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Lines of one rank, in a row as far as anything is looked at, of which only the time counts at which work began
    or ended; behind the last one there is work. One entry a line in each of the lists."""

    rank: str | None
    group: str
    """Its data-parallel rank, as in `Window`."""
    stamp_source: str
    stamp_kind: str
    indexes: list[int]
    """Ascending."""
    whats: list[Moment]
    seconds: list[float]
    """As in `Stamp`."""


@dataclass(frozen=True, slots=True)
class Picked:
    """Which lines of a block to look at."""

    indexes: list[int]
    """Ascending."""
    worked: set[int] = field(default_factory=set)
    """Those of them of which only the time counts: work went on."""
    moments: list[Moments] = field(default_factory=list)
    """Ascending, none of `indexes` inside one of them."""


class Steady(Protocol):
    """A dialect's ordinary lines of a running server, of which only some make a difference."""

    def kind(self, template: bytes) -> int:
        """`STEADY` or above for a line without its digits that is one, else `LOOK`."""

    def pick(self, lines: BlockLines, kinds: bytes) -> Picked:
        """Every `LOOK` line, and so many steady ones that the state afterwards is as if all had been looked at."""

    def read(self, raw: bytes, *, worked: bool) -> SteadyRead | None:
        """One steady line, straight from its bytes; the same as the dialect's `parse` makes of it, or, where work
        just went on, a prompt of no figures. None where that can't be told at a glance: read it like any line."""


class Prefilter:
    """Remembers what templates mean. Holds no state of a log: throwing it away changes speed, never a result."""

    def __init__(self, literals: Iterable[bytes], steady: Steady | None) -> None:
        bare = {literal.translate(None, _DIGITS) for literal in literals}
        self._literals = re.compile(b"|".join(re.escape(literal) for literal in sorted(bare) if literal.strip()))
        self._steady = steady
        self._known: dict[bytes, int] = {}

    def kinds(self, block: bytes) -> bytes:
        """One kind for each LF-separated piece of `block`, in order."""
        templates = block.translate(None, _DIGITS).split(b"\n")
        try:
            return bytes(map(self._known.__getitem__, templates))
        except KeyError:
            return bytes(map(self._kind_of, templates))

    def _kind_of(self, template: bytes) -> int:
        kind = self._known.get(template)
        return self._classify(template) if kind is None else kind

    def kind(self, line: bytes) -> int:
        """The kind of one line."""
        return self._kind_of(line.translate(None, _DIGITS))

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

    def pick(self, lines: BlockLines, kinds: bytes) -> Picked:
        """The lines to look at."""
        if self._steady is not None and kinds.translate(None, _NOT_STEADY):
            return self._steady.pick(lines, kinds)
        return Picked([found.start() for found in _LOOKED_AT.finditer(kinds)])

    def read_steady(self, raw: bytes, *, worked: bool) -> SteadyRead | None:
        """See `Steady.read`."""
        return self._steady.read(raw, worked=worked) if self._steady is not None else None
