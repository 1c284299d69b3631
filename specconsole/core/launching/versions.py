"""Versions as the engines write them, and ranges of them.

`0.5.10.post1`, `0.33.0`, `0.32.0+cpu`, `b10434` (llama.cpp). Boundaries in rules come from sampled releases: a rule
"from 0.5.12" was absent in the sampled release before it, so the true boundary may lie a little earlier.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Version = tuple[int, ...]


def parse_version(text: str | None) -> Version | None:
    """Numbers to compare; None for a text without any (or no text). Post releases count as their release."""
    if not text:
        return None
    if match := re.match(r"\s*b(\d+)", text):
        return (int(match.group(1)),)
    match = re.match(r"\s*v?(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in match.group(1).split(".")) if match else None


@dataclass(frozen=True, slots=True)
class VersionRange:
    """From `first` to `last`, both included; None is open. `last` compares by its own length (0.5 holds 0.5.23)."""

    first: Version | None = None
    last: Version | None = None

    def holds(self, version: Version) -> bool:
        if self.first is not None and version < self.first:
            return False
        return self.last is None or version[: len(self.last)] <= self.last

    def __str__(self) -> str:
        first, last = (None if v is None else ".".join(map(str, v)) for v in (self.first, self.last))
        if first and last:
            return f"{first} to {last}"
        if first:
            return f"from {first}"
        return f"up to {last}" if last else "all versions"


ALL = VersionRange()


def since(text: str) -> VersionRange:
    return VersionRange(first=parse_version(text))


def until(text: str) -> VersionRange:
    return VersionRange(last=parse_version(text))


def between(first: str, last: str) -> VersionRange:
    return VersionRange(parse_version(first), parse_version(last))
