"""Reads the single values that GPU tools print, missing ones included."""

from __future__ import annotations

import re

# `[N/A]`, `[Not Supported]`, `[No data]`, `[Not Found]`, `[Insufficient Permissions]`, `[Unknown Error]`,
# `[GPU is lost]`, `[Requested functionality has been deprecated]`: nvidia-smi --query-gpu, drivers 440 to 580.
# `N/A` and `-`: amd-smi 26 and npu-smi 25 tables.
_MISSING = frozenset({"", "-", "n/a", "na", "none", "nan", "unknown", "unsupported"})
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def clean(text: str) -> str:
    """Without control characters: no byte of a tool's output may drive a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def word(text: str) -> str | None:
    """The text, or None when it is one of the ways to say that there is no value."""
    text = clean(text).strip()
    if text.casefold() in _MISSING or (text.startswith("[") and text.endswith("]")):
        return None
    return text


def number(text: str) -> float | None:
    """The number that the text starts with, a unit behind it allowed (`82.50 W`); None when there is none."""
    plain = word(text)
    match = _NUMBER.match(plain) if plain is not None else None
    return float(match.group()) if match else None


def whole(text: str) -> int | None:
    """Like `number`, rounded down to an integer."""
    value = number(text)
    return None if value is None else int(value)
