"""When a start will answer, from nothing but how long starts of its kind took: what there is to say while its log is
silent, as SGLang's and vLLM's are for the first 10 to 60 s of imports.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from specconsole.core.reading.model import EtaRange

# One start alone says little: the next may have warm caches, or a cold disk. With more of them their own spread counts.
_LONE_LOW, _LONE_HIGH = 0.45, 2.0
_SPREAD = 0.25
_NEWEST = 8


def eta_of_starts(took_s: Sequence[float], age_s: float | None) -> EtaRange | None:
    """Seconds from now until it answers. `took_s`: earlier starts, oldest first, from launch to answer; `age_s`: of
    this one. None without either, and once it takes longer than all of them could explain."""
    known = [took for took in took_s[-_NEWEST:] if took > 0]
    if not known or age_s is None:
        return None
    mid = statistics.median(known)
    if len(known) == 1:
        low, high = mid * _LONE_LOW, mid * _LONE_HIGH
    else:
        low, high = min(known) * (1 - _SPREAD), max(known) * (1 + _SPREAD)
    if age_s >= high:
        return None
    # It has lasted so long already: what is over is no longer possible.
    return EtaRange(max(0.0, low - age_s), max(0.0, mid - age_s), high - age_s, f"starts:n={len(known)}")
