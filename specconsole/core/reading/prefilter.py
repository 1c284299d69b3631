"""Which lines of a block need a look: the part of reading that costs per byte.

Servers repeat themselves with other numbers. So a line without its digits is its template, and what a template
means (nothing; look at it; a steady line) is found once and remembered. A block is cut into lines and templates by
C code alone; only lines whose template means something are decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

NOTHING = 0
LOOK = 1
STEADY = 2

_DIGITS = b"0123456789"
_MAX_TEMPLATES = 16_384
_MAX_TEMPLATE_BYTES = 640


@dataclass(frozen=True, slots=True)
class Steady:
    """Lines of a running server of which only the first and the last few of a run matter.

    `template` is searched in the line without digits. `special` stands in lines that do matter each. `rank` finds
    in the whole line what tells its rank.
    """

    template: re.Pattern[bytes]
    special: tuple[bytes, ...]
    rank: re.Pattern[bytes]


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
                    kinds[i] = self._known.get(templates[i]) or self._classify(templates[i])
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
            if self._steady is not None and b"\r" not in template and self._steady.template.search(template):
                kind = STEADY
        if len(template) <= _MAX_TEMPLATE_BYTES:
            if len(self._known) >= _MAX_TEMPLATES:
                self._known.clear()
            self._known[template] = kind
        return kind

    def thin(self, lines: list[bytes], kinds: list[int], keep: int) -> list[int]:
        """Indexes of the lines to look at: all `LOOK` lines, and of every run of steady lines between them the
        first and the last `keep` of each rank and wording."""
        steady = self._steady
        if steady is None or STEADY not in kinds:
            return [i for i, kind in enumerate(kinds) if kind]
        chosen: list[int] = []
        run: dict[bytes, list[int]] = {}
        special, rank_of = steady.special, steady.rank
        for i, kind in enumerate(kinds):
            if kind == NOTHING:
                continue
            line = lines[i]
            if kind == STEADY:
                for mark in special:
                    if mark in line:
                        break
                else:
                    found = rank_of.search(line, 0, 400)
                    key = found.group() if found else b""
                    kept = run.get(key)
                    if kept is None:
                        run[key] = [i]
                    else:
                        kept.append(i)
                    continue
            if run:
                _flush(run, chosen, keep)
            chosen.append(i)
        if run:
            _flush(run, chosen, keep)
        return chosen


def _flush(run: dict[bytes, list[int]], chosen: list[int], keep: int) -> None:
    picked: list[int] = []
    for indexes in run.values():
        picked += indexes if len(indexes) <= keep + 1 else [indexes[0], *indexes[-keep:]]
    picked.sort()
    chosen += picked
    run.clear()
