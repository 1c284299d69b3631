"""`--set KEY=VALUE` words -> overrides, typed as TOML would have them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from specconsole.errors import BadInputError


def parse_settings(words: Iterable[str]) -> dict[str, Any]:
    """`mem_fraction_static=0.8` is a number, `x=true` a switch, `x=null` removes it, anything else is text."""
    found: dict[str, Any] = {}
    for word in words:
        key, eq, value = word.partition("=")
        if not eq or not key.strip():
            raise BadInputError(f"`{word}` is no setting", where="--set", try_="--set port=30001")
        found[key.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    if text in ("null", "none"):
        return None
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        # What TOML would want in quotes (a path, a word) is meant as it stands.
        return text
