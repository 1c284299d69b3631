"""The GPUs under a run, for its conditions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuMoment:
    """The GPUs of a host at one moment."""

    names: tuple[str, ...] = ()
    """Empty where there is no GPU tool, or it gives no figures."""
    throttled: tuple[str, ...] = ()
    """One line for each that is held back below its clocks, with the reason; idling is none."""
