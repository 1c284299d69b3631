"""How often a server is asked whether it answers, and what its answers mean. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specconsole.core.reading.model import Phase
from specconsole.core.views.launch import HealthAnswer

_SOON: tuple[Phase, ...] = ("warm-up", "ready", "serving")
_LONG: tuple[Phase, ...] = ("download", "weights", "compile", "graph-capture")

LOST_AFTER = 2
"""Failed answers in a row before a server that has answered counts as not answering: one time-out is no death (a busy
SGLang needs more than 5 s for a probe)."""


STILL_S = 30.0
"""A server that works on requests and brings no token for so long stands still, whatever its health endpoint says."""
REPROVE_S = 60.0
"""How often an idle server whose health endpoint does not ask its engine gets a request."""


@dataclass(slots=True)
class Pulse:
    """Whether a server whose health endpoint says nothing of its engine moves, from its counters."""

    tokens: float | None = None
    worked_since_s: float | None = None
    """When the last token of the present work was counted, or the work began; None while there is none."""
    proved_at_s: float | None = None

    def look(
        self, now_s: float, running: int | None, tokens: float | None
    ) -> Literal["moves", "still", "idle", "unknown"]:
        """`still`: it works on requests, and no token came for `STILL_S`. `idle`: nothing ran since the last look."""
        if tokens is None:
            return "unknown"
        moved = tokens != self.tokens
        # Time without work is no standstill: the count begins when work does.
        if moved or self.worked_since_s is None:
            self.tokens, self.worked_since_s = tokens, now_s
        if not running:
            self.worked_since_s = None
            return "moves" if moved else "idle"
        return "still" if now_s - self.worked_since_s >= STILL_S else "moves"

    def due(self, now_s: float) -> bool:
        """Whether an idle server is to be asked for tokens again."""
        if self.proved_at_s is None:
            self.proved_at_s = now_s
        return now_s - self.proved_at_s >= REPROVE_S


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
