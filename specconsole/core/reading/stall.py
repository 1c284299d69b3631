"""Stand-in until the real module is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GpuActivity:
    busy_pct: float | None = None
    memory_busy_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    stalled: bool | None
    reason: str | None
    limit_s: float | None = None
    behind: tuple[str, ...] = ()


def judge(*args: Any, **kwargs: Any) -> Verdict:
    return Verdict(None, None)
