"""How often a server is asked whether it answers, and what its answers mean. Pure."""

from __future__ import annotations

from specconsole.core.reading.model import Phase
from specconsole.core.views.launch import HealthAnswer

_SOON: tuple[Phase, ...] = ("warm-up", "ready", "serving")
_LONG: tuple[Phase, ...] = ("download", "weights", "compile", "graph-capture")

LOST_AFTER = 2
"""Failed answers in a row before a server that has answered counts as not answering: one time-out is no death (a busy
SGLang needs more than 5 s for a probe)."""


def interval_s(phase: Phase | None, health: HealthAnswer, *, proven: bool, costs: bool) -> float:
    """Seconds until the next question.

    `costs`: asking makes the server work (SGLang generates a token); then a running server is asked seldom, and one
    that loads not more often than it can matter.
    """
    if proven:
        return 60.0 if costs else 10.0
    if health in ("503", "200") or phase in _SOON:
        # It is nearly there: this is what the time to answer is measured with.
        return 2.0 if costs else 0.25
    if phase in _LONG:
        return 2.0
    return 1.0 if costs else 0.5


def timeout_s(*, costs: bool, configured_s: float | None) -> float:
    """Seconds that one question about health may take."""
    return configured_s if configured_s is not None else (8.0 if costs else 4.0)
