"""Estimates that rest on earlier starts: for phases that print nothing, beside a bar, and to a server that answers."""

from __future__ import annotations

from math import exp, log, sqrt

from specconsole.core.reading.history import Alike, History, StartKey
from specconsole.core.reading.history_fit import fit
from specconsole.core.reading.model import START_PHASES, EtaRange, Part, Phase

_Z90 = 1.645
_DISAGREE = 2.0
"""Bar and history further apart than this many of their spreads: this start is another kind, and the bar is here."""
_FLOOR_S = 0.1
_ALIKE = 0.5


def phase_history_eta(
    history: History | None, key: StartKey | None, phase: Phase, part: Part | None, nth: int, spent_s: float | None
) -> EtaRange | None:
    """To the end of this stay, from earlier ones alone. `nth` is 0 for the start's first stay in this phase and part;
    `spent_s` how long this one has lasted (None: unknown, and then nothing can be said)."""
    if history is None or key is None or spent_s is None:
        return None
    alike = history.phase_seconds(key, phase, part, nth)
    return _remaining(alike, spent_s)


def combined_phase_eta(
    history: History | None,
    key: StartKey | None,
    phase: Phase,
    part: Part | None,
    nth: int,
    spent_s: float | None,
    bar: EtaRange | None,
) -> EtaRange | None:
    """To the end of this phase from the bar and earlier stays together; either alone where the other is missing.

    Each counts by how narrow it is. Where they contradict each other (a cold cache, another disk) the bar is believed.
    """
    past = phase_history_eta(history, key, phase, part, nth, spent_s)
    if bar is None or past is None:
        return bar or past
    if bar.high <= _FLOOR_S:
        return bar
    bar_mu, bar_sigma = _as_log(bar)
    past_mu, past_sigma = _as_log(past)
    if abs(bar_mu - past_mu) > _DISAGREE * sqrt(bar_sigma**2 + past_sigma**2):
        return bar
    bar_weight, past_weight = bar_sigma**-2, past_sigma**-2
    mu = (bar_mu * bar_weight + past_mu * past_weight) / (bar_weight + past_weight)
    sigma = max(sqrt(1.0 / (bar_weight + past_weight)), abs(bar_mu - past_mu) / 4.0)
    return EtaRange(exp(mu - _Z90 * sigma), exp(mu), exp(mu + _Z90 * sigma), basis=f"{bar.basis}+{past.basis}")


def ready_eta(
    history: History | None,
    key: StartKey | None,
    phase: Phase,
    part: Part | None,
    nth: int,
    phase_eta: EtaRange | None,
) -> EtaRange | None:
    """To a server that answers: what is left of this phase (`combined_phase_eta`) and the way from its end that
    earlier starts took. None without both, and once the server is ready."""
    if history is None or key is None or phase_eta is None or phase not in START_PHASES:
        return None
    after = _remaining(history.seconds_to_ready(key, phase, part, nth), 0.0)
    if after is None:
        return None
    mid = phase_eta.mid + after.mid
    low = mid - _together(phase_eta.mid - phase_eta.low, after.mid - after.low)
    high = mid + _together(phase_eta.high - phase_eta.mid, after.high - after.mid)
    own = phase_eta.basis.split("+")[0]
    basis = after.basis if own.startswith("history") else f"{own}+{after.basis}"
    return EtaRange(max(0.0, low), mid, high, basis)


def _remaining(alike: Alike | None, spent_s: float) -> EtaRange | None:
    fitted = fit(alike) if alike else None
    if fitted is None or alike is None:
        return None
    found = fitted.remaining(spent_s)
    if found is None:
        return None
    basis = f"history:n={fitted.samples}"
    if alike.dropped:
        basis += f" without {','.join(alike.dropped)}"
    return EtaRange(*found, basis=basis)


def _together(one_s: float, other_s: float) -> float:
    """The spread of a sum whose parts are half alike: on a busy machine everything is slow."""
    return sqrt(one_s**2 + other_s**2 + 2.0 * _ALIKE * one_s * other_s)


def _as_log(eta: EtaRange) -> tuple[float, float]:
    low, mid, high = (max(value, _FLOOR_S) for value in (eta.low, eta.mid, eta.high))
    return log(mid), max(0.05, (log(high) - log(low)) / (2.0 * _Z90))
