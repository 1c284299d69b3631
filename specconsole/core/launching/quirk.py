"""What a person who knows an engine well watches out for, by version and with the place where it was read or seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specconsole.core.launching.versions import ALL, VersionRange, parse_version


@dataclass(frozen=True, slots=True)
class Quirk:
    """One oddity."""

    quirk_id: str
    text: str
    """What happens and what it means for whoever runs it."""
    source: str
    """File of the engine's source, or `seen: VERSION`."""
    versions: VersionRange = ALL


def quirks_for(quirks: Iterable[Quirk], version: str | None) -> tuple[Quirk, ...]:
    """Those that hold for a version; all of them while it is unknown."""
    known = parse_version(version)
    return tuple(quirk for quirk in quirks if known is None or quirk.versions.holds(known))


def has(quirks: Iterable[Quirk], quirk_id: str, version: str | None) -> bool:
    """Whether a quirk holds for a version that is known; False while it is unknown."""
    known = parse_version(version)
    return known is not None and any(quirk.quirk_id == quirk_id and quirk.versions.holds(known) for quirk in quirks)
