"""A point: one launch, one workload, one concurrency, one repeat; its requests made into numbers.

Latencies are over the whole measured requests that succeeded (warm-up left out). Throughput is over the *steady
window* alone: from the moment when every slot holds a measured request to the moment when the supply ends, so that
neither ramp nor drain is averaged in; tokens count where they arrive. A point without such a window (fewer requests
than slots, or cut short) uses the span from its first start to its last event and is marked `no-steady-window`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from specconsole.core.measuring.economics import DecodeCost
from specconsole.core.measuring.requests import RequestRecord
from specconsole.core.measuring.statistics import percentile


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and percentiles of one quantity; all None without a value."""

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Window:
    """The steady part of a point, client's clock."""

    start_s: float
    end_s: float
    steady: bool

    @property
    def seconds(self) -> float:
        return self.end_s - self.start_s


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request must keep to count for goodput; None: no such limit."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    @property
    def any(self) -> bool:
        return not (self.ttft_s is None and self.tpot_s is None and self.e2e_s is None)

    def kept_by(self, record: RequestRecord) -> bool:
        """Whether a request that succeeded stayed within every limit; an unknown time does not."""
        pairs = ((self.ttft_s, record.ttft_s), (self.tpot_s, record.tpot_s), (self.e2e_s, record.e2e_s))
        return all(limit is None or (value is not None and value <= limit) for limit, value in pairs)


@dataclass(frozen=True, slots=True)
class PointMetrics:
    """The numbers of one point. Rates are per second of the window."""

    succeeded: int
    failed: int
    failures: dict[str, int]
    """Failed measured requests by class."""
    ttft_s: Spread
    tpot_s: Spread
    itl_s: Spread
    """Over tokens, not over events."""
    e2e_s: Spread
    output_tok_s: float | None
    total_tok_s: float | None
    """Output and prompt tokens; a request's prompt counts when its first token comes."""
    request_rate_per_s: float | None
    goodput_per_s: float | None
    """Requests within the limits that ended in the window; None without limits."""
    running_mean: float | None
    """Mean number of requests that were out, from the client's side, over the window."""
    cached_token_share_ratio: float | None
    """Cached prompt tokens / prompt tokens; None where the server does not say."""
    decode_time_s: float
    decode_tokens: int
    decode_share_ratio: float | None
    """Decode time's share of end-to-end latency, pooled."""
    window: Window | None
    tokens_from: str | None
    per_event_tokens: bool
    marks: tuple[str, ...]
    """Ids of what a reader must know: `no-steady-window`, `tokens-from-events`, `failures`, `no-usage`, ..."""

    def cost(self, target_steps: int | None) -> DecodeCost:
        """The point as the economics see it."""
        return DecodeCost(self.decode_time_s, self.decode_tokens, target_steps)


def measure_point(
    records: Sequence[RequestRecord],
    *,
    window_start_s: float | None,
    window_end_s: float | None,
    limits: Limits = Limits(),
) -> PointMetrics:
    """All numbers of one point from its records (warm-up included in the input, left out of the numbers)."""
    measured = [r for r in records if not r.warmup]
    good = [r for r in measured if r.error is None]
    bad = [r for r in measured if r.error is not None]
    window = _window(records, good, window_start_s, window_end_s)
    marks: list[str] = []
    if bad:
        marks.append("failures")
    if window is None or not window.steady:
        marks.append("no-steady-window")
    sources = {r.tokens_from for r in good}
    if "events" in sources:
        marks.append("tokens-from-events")
    if None in sources:
        marks.append("no-usage")
    seconds = window.seconds if window else 0.0
    inside = [r for r in good if window and r.event_s and window.start_s < r.event_s[-1] <= window.end_s]
    output = total = None
    if window and seconds > 0 and good and not sources & {None}:
        out_tokens = sum(r.tokens_between(window.start_s, window.end_s) for r in records if r.error is None)
        output = out_tokens / seconds
        prompts = [
            r.prompt_tokens
            for r in records
            if r.error is None and r.event_s and window.start_s < r.event_s[0] <= window.end_s
        ]
        if None not in prompts:
            total = (out_tokens + sum(p for p in prompts if p is not None)) / seconds
    decode = [(r.decode_time_s, r.decode_tokens) for r in good]
    decode_time_s = math.fsum(t for t, n in decode if t is not None and n is not None)
    e2e_s = math.fsum(r.e2e_s for r in good if r.e2e_s is not None and r.decode_tokens is not None)
    return PointMetrics(
        succeeded=len(good),
        failed=len(bad),
        failures=dict(Counter(r.error or "" for r in bad)),
        ttft_s=_spread([r.ttft_s for r in good]),
        tpot_s=_spread([r.tpot_s for r in good]),
        itl_s=_token_spread(good),
        e2e_s=_spread([r.e2e_s for r in good]),
        output_tok_s=output,
        total_tok_s=total,
        request_rate_per_s=len(inside) / seconds if window and seconds > 0 else None,
        goodput_per_s=sum(map(limits.kept_by, inside)) / seconds if limits.any and window and seconds > 0 else None,
        running_mean=_running(records, window),
        cached_token_share_ratio=_cached(good),
        decode_time_s=decode_time_s,
        decode_tokens=sum(n for t, n in decode if t is not None and n is not None),
        decode_share_ratio=decode_time_s / e2e_s if e2e_s > 0 else None,
        window=window,
        tokens_from="+".join(sorted(s for s in sources if s)) or None,
        per_event_tokens=bool(good) and all(r.per_event_tokens for r in good),
        marks=tuple(marks),
    )


def _window(
    records: Sequence[RequestRecord],
    good: Sequence[RequestRecord],
    start_s: float | None,
    end_s: float | None,
) -> Window | None:
    # The supply may end while the first requests still run: a window in which none ended tells no rate.
    if start_s is not None and end_s is not None:
        ends = [r.event_s[-1] for r in records if r.event_s]
        if any(start_s < end <= end_s for end in ends):
            return Window(start_s, end_s, steady=True)
    spans = [(r.start_s, r.event_s[-1]) for r in good if r.event_s]
    if not spans:
        return None
    return Window(min(s for s, _ in spans), max(e for _, e in spans), steady=False)


def _spread(values: Sequence[float | None]) -> Spread:
    ordered = sorted(v for v in values if v is not None)
    if not ordered:
        return Spread(0, None, None, None, None)
    mean = math.fsum(ordered) / len(ordered)
    return Spread(len(ordered), mean, percentile(ordered, 0.50), percentile(ordered, 0.90), percentile(ordered, 0.99))


def _token_spread(records: Sequence[RequestRecord]) -> Spread:
    """Weighted: a gap that brought three tokens counts three times (nearest rank on the weights)."""
    gaps = sorted(gap for record in records for gap in record.token_gaps())
    weight = math.fsum(count for _, count in gaps)
    if not gaps or weight <= 0:
        return Spread(0, None, None, None, None)

    def at(share: float) -> float:
        reached = 0.0
        for value, count in gaps:
            reached += count
            if reached >= share * weight - 1e-9:
                return value
        return gaps[-1][0]

    mean = math.fsum(value * count for value, count in gaps) / weight
    return Spread(round(weight), mean, at(0.50), at(0.90), at(0.99))


def _running(records: Sequence[RequestRecord], window: Window | None) -> float | None:
    if window is None or window.seconds <= 0:
        return None
    out_s = math.fsum(max(0.0, min(r.end_s, window.end_s) - max(r.start_s, window.start_s)) for r in records)
    return out_s / window.seconds


def _cached(records: Sequence[RequestRecord]) -> float | None:
    known = [(r.cached_tokens, r.prompt_tokens) for r in records]
    if not known or any(c is None or p is None for c, p in known):
        return None
    prompts = sum(p for _, p in known if p is not None)
    return sum(c for c, _ in known if c is not None) / prompts if prompts else None
