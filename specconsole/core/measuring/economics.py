"""Does the draft pay, and until when?

A speculative server spends one *target step* to verify a draft and gets `accept length` tokens for it (bonus token
included). The plain server spends one baseline TPOT a token. So at one concurrency

    step time            = decode time / target steps = pooled accept length * pooled TPOT
    break-even length    = step time / baseline TPOT        (how many tokens a step must bring)
    decode speed-up      = accept length / break-even length = baseline TPOT / TPOT

and no draft can bring more than `num_steps + 1` tokens a step (chains and trees alike): a break-even length above
that ceiling means that no draft pays there, however good it is. TTFT and queueing are no part of a step and are
kept out; what they cost shows in the end-to-end speed-up, which stands beside decode's share of the whole.

Compare at equal *achieved* running requests per data-parallel rank; `services` sees to that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DecodeCost:
    """What decoding cost in one measured point, pooled over its requests."""

    decode_time_s: float
    """Sum over requests of (last token - first token)."""
    decode_tokens: int
    """Sum over requests of the tokens after the first event."""
    target_steps: int | None
    """Steps of the target model for these tokens; None where the server can't say. A plain server: the tokens."""

    @property
    def tpot_s(self) -> float | None:
        """Pooled time per output token; None without tokens."""
        return self.decode_time_s / self.decode_tokens if self.decode_tokens else None

    @property
    def accept_length(self) -> float | None:
        """Tokens per target step, bonus included; None where steps are unknown."""
        return self.decode_tokens / self.target_steps if self.target_steps else None

    @property
    def step_time_s(self) -> float | None:
        """Time of one target step with its draft; None where steps are unknown."""
        return self.decode_time_s / self.target_steps if self.target_steps else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The economics of a draft at one concurrency."""

    step_time_s: float
    baseline_tpot_s: float
    break_even_length: float
    accept_length: float
    ceiling: int | None
    """`num_steps + 1`; None when the number of steps is not known."""
    decode_speed_up: float
    pays: bool
    can_pay: bool | None
    """False: break-even is above the ceiling, so no draft pays in this configuration. None: ceiling unknown."""
    best_decode_speed_up: float | None
    """At today's step time with a draft that is always right (accept length = ceiling)."""

    def speed_up_at(self, accept_length: float) -> float:
        """Decode speed-up that a better draft would bring at today's step time.

        Raises ValueError, with the reason, for a length that this configuration can't reach.
        """
        if accept_length < 1.0:
            raise ValueError("a target step brings at least one token")
        if self.ceiling is not None and accept_length > self.ceiling:
            raise ValueError(
                f"accept length {accept_length:g} can't be reached: {self.ceiling - 1} draft steps bring at most "
                f"{self.ceiling} tokens a target step (drafts and the bonus token)"
            )
        return accept_length / self.break_even_length


def judge(draft: DecodeCost, baseline: DecodeCost, *, num_steps: int | None) -> Verdict | None:
    """The verdict for one concurrency; None where steps or tokens are unknown (then nothing can be said)."""
    step_s, length, plain_s = draft.step_time_s, draft.accept_length, baseline.tpot_s
    if step_s is None or length is None or plain_s is None or plain_s <= 0 or step_s <= 0:
        return None
    break_even = step_s / plain_s
    ceiling = None if num_steps is None else num_steps + 1
    return Verdict(
        step_time_s=step_s,
        baseline_tpot_s=plain_s,
        break_even_length=break_even,
        accept_length=length,
        ceiling=ceiling,
        decode_speed_up=length / break_even,
        pays=length > break_even,
        can_pay=None if ceiling is None else break_even < ceiling,
        best_decode_speed_up=None if ceiling is None else ceiling / break_even,
    )


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where a speed-up passes 1 between two measured concurrencies."""

    concurrency: float
    """Interpolated on logarithms of both axes."""
    low: float | None
    """Range from the speed-ups' intervals; None where an interval is missing or runs out of the neighbours."""
    high: float | None
    helps_below: bool
    """True when the draft helps below and hurts above; False the other way round."""


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """A speed-up measured at one achieved concurrency."""

    concurrency: float
    ratio: float
    low: float | None = None
    high: float | None = None


def find_crossings(points: Sequence[SpeedUp]) -> tuple[Crossing, ...]:
    """All places where the speed-up passes 1, in order of concurrency; there may be none, one or several.

    `points` in any order. A point at exactly 1 counts as a crossing of its own when its neighbours lie on
    different sides of it.
    """
    ordered = sorted(points, key=lambda p: p.concurrency)
    found: list[Crossing] = []
    index = 0
    while index < len(ordered) - 1:
        left = ordered[index]
        # Points that lie exactly on 1 belong to the stretch between two points that do not.
        other = index + 1
        while other < len(ordered) - 1 and ordered[other].ratio == 1.0:
            other += 1
        right = ordered[other]
        if left.ratio != 1.0 and right.ratio != 1.0 and (left.ratio > 1.0) != (right.ratio > 1.0):
            found.append(_cross(left, right) if other == index + 1 else _on_the_line(ordered[index : other + 1]))
        index = other
    return tuple(found)


def _cross(left: SpeedUp, right: SpeedUp) -> Crossing:
    at = _interpolate(left.concurrency, left.ratio, right.concurrency, right.ratio)
    assert at is not None
    ends: list[float] = []
    if None not in (left.low, left.high, right.low, right.high):
        for a, b in ((left.low, right.low), (left.high, right.high)):
            assert a is not None
            assert b is not None
            end = _interpolate(left.concurrency, a, right.concurrency, b)
            if end is not None:
                ends.append(end)
    low, high = (min(ends), max(ends)) if len(ends) == 2 else (None, None)
    return Crossing(at, low, high, helps_below=left.ratio > 1.0)


def _on_the_line(stretch: Sequence[SpeedUp]) -> Crossing:
    inner = stretch[1:-1]
    at = math.exp(sum(math.log(p.concurrency) for p in inner) / len(inner))
    return Crossing(at, inner[0].concurrency, inner[-1].concurrency, helps_below=stretch[0].ratio > 1.0)


def _interpolate(x0: float, y0: float, x1: float, y1: float) -> float | None:
    """Where the line through two points (both axes logarithmic) has y = 1; None outside of them."""
    if min(x0, x1, y0, y1) <= 0:
        return None
    a, b = math.log(y0), math.log(y1)
    if a == b or a * b > 0:
        return None
    share = a / (a - b)
    return math.exp(math.log(x0) + share * (math.log(x1) - math.log(x0)))
