"""A difference's values as words: the same on the command line and in the window."""

from __future__ import annotations

import json
from typing import Any

from specconsole.core.hosts.plain_text import one_line
from specconsole.core.launching.difference import Difference, DifferenceRow, Section

TITLES: dict[Section, str] = {
    "launch": "launch",
    "flags": "command line",
    "settings": "effective settings",
    "versions": "versions",
    "environment": "environment",
    "phases": "phases and durations",
    "memory": "GPU memory",
    "results": "results at equal workload",
}
UNKNOWN, ABSENT = "unknown", "–"
_GIB = 1 << 30
_MOST_CHARS = 4000


def value_text(value: Any, *, known: bool, unit: str = "") -> str:
    """`unknown` where nobody knows, `–` where there is none, else the value with its unit."""
    if not known:
        return UNKNOWN
    if value is None:
        return ABSENT
    if value is True:
        return "on"
    if value is False:
        return "off"
    if unit == "bytes":
        return f"{value / _GIB:.2f} GiB"
    if unit == "s":
        return f"{value:.1f} s"
    if isinstance(value, float):
        return f"{value:.4g} {unit}".rstrip() if unit else f"{value:g}"
    if isinstance(value, list | dict):
        return one_line(json.dumps(value, ensure_ascii=False), _MOST_CHARS)
    return one_line(str(value), _MOST_CHARS)


def left_text(row: DifferenceRow) -> str:
    return value_text(row.left, known=row.left_known, unit=row.unit)


def right_text(row: DifferenceRow) -> str:
    return value_text(row.right, known=row.right_known, unit=row.unit)


def summary(found: Difference) -> str:
    """`7 differ, 3 can't be told, 41 are the same`."""
    differ = sum(row.differs is True for row in found.rows)
    unknown = sum(row.differs is None for row in found.rows)
    same = len(found.rows) - differ - unknown
    parts = [f"{differ} differ{'s' if differ == 1 else ''}" if differ else "nothing differs"]
    if unknown:
        parts.append(f"{unknown} can't be told")
    return ", ".join([*parts, f"{same} {'is' if same == 1 else 'are'} the same"])
