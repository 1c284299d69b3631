"""Finds the line of a key in TOML text, so that an error about a value can say where it stands.

`tomllib` reports lines for syntax errors only. This scanner knows headers, bare, quoted and dotted keys; it is
used for error texts alone, so a form that it does not know costs a line number and nothing else.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

_HEADER = re.compile(r"^\s*\[\[?\s*(?P<path>[^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(
    r"""^\s*(?P<path>(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(path))


def line_of(text: str, path: Sequence[str]) -> int | None:
    """The 1-based line that sets `path` (or opens the table of that name); None when it is not found."""
    wanted = tuple(path)
    table: tuple[str, ...] = ()
    best: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _parts(header["path"])
            if table == wanted:
                return number
        elif key := _KEY.match(line):
            here = table + _parts(key["path"])
            if here == wanted:
                return number
            # An inline table (`args = { port = 1 }`) holds the key further right on its line.
            if best is None and len(here) < len(wanted) and wanted[: len(here)] == here:
                best = number
    return best


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant; None when none is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return close[0] if close else None
