"""Words of a command line as flags with their values, and values as what they mean."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any


def pair_up(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Flags with the words that follow them: `--a 1 --b --c=x y` -> a [1], b [], c [x, y].

    A word that looks like a negative number is a value. Words before the first flag are dropped by the caller.
    """
    pairs: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith("-") and len(word) > 1 and not re.fullmatch(r"-\d+(\.\d+)?", word):
            name, sign, value = word.lstrip("-").partition("=")
            pairs.append((name, [value] if sign else []))
        elif pairs:
            pairs[-1][1].append(word)
    return pairs


def typed(value: Any) -> Any:
    """Numbers as numbers and JSON objects as tables, where writing them back gives the same words."""
    if isinstance(value, list):
        return [typed(item) for item in value]
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"-?(0|[1-9]\d*)", value):
        return int(value)
    if re.fullmatch(r"-?(0|[1-9]\d*)\.\d*[1-9]", value) and str(float(value)) == value:
        return float(value)
    if value.startswith("{"):
        try:
            table = json.loads(value)
        except ValueError:
            return value
        # A table goes back to the command line as compact JSON: the same value, though not the same spacing.
        return table if isinstance(table, dict) else value
    return value
