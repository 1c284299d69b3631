"""One point taken apart: its requests' latencies as a histogram, acceptance as it went, the ones that stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specconsole.core.measuring.requests import RequestRecord, parse_request
from specconsole.core.measuring.statistics import percentile

SLICES = 24
FAR_OUT = 3.0
"""Tukey's far fence: so many quartile ranges beyond the upper quartile."""
LEAST_OUT = 1.25
"""Where all the others take the same time, this many times that is still nothing strange."""


@dataclass(frozen=True, slots=True)
class Bin:
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Outlier:
    record: RequestRecord
    what: str
    """`E2E 4.2 s, the others take 0.8 s`."""


def records_of(lines: Sequence[Mapping[str, Any]]) -> tuple[RequestRecord, ...]:
    """Request lines as records, in order of their start, warm-up left out."""
    found = [record for line in lines if (record := parse_request(line)) is not None and not record.warmup]
    return tuple(sorted(found, key=lambda record: record.start_s))


def histogram(values: Sequence[float], bins: int = 12) -> tuple[Bin, ...]:
    """Equal bins from the least to the largest value; () without values."""
    if not values:
        return ()
    low, high = min(values), max(values)
    if low == high:
        return (Bin(low, high, len(values)),)
    step = (high - low) / bins
    counts = [0] * bins
    for value in values:
        counts[min(bins - 1, int((value - low) / step))] += 1
    return tuple(Bin(low + n * step, low + (n + 1) * step, count) for n, count in enumerate(counts))


def acceptance_over_time(records: Sequence[RequestRecord], slices: int = SLICES) -> tuple[tuple[float, float], ...]:
    """(seconds since the point began, tokens a target step of the requests that ended in that slice), where the
    answers tell accepted drafts (llama.cpp's `timings`, SGLang's `meta_info`); () elsewhere."""
    told = [(record, *counts) for record in records if (counts := _counts(record)) is not None]
    if len(told) < 2:
        return ()
    first = min(record.start_s for record, _, _ in told)
    last = max(record.end_s for record, _, _ in told)
    width = (last - first) / slices or 1.0
    tokens, steps = [0.0] * slices, [0.0] * slices
    for record, decoded, taken in told:
        place = min(slices - 1, int((record.end_s - first) / width))
        tokens[place] += decoded
        steps[place] += taken
    return tuple(((n + 0.5) * width, tokens[n] / steps[n]) for n in range(slices) if steps[n] > 0)


def _counts(record: RequestRecord) -> tuple[float, float] | None:
    """Decode tokens and target steps of one request."""
    if record.error is not None or record.completion_tokens is None:
        return None
    verify = record.spec.get("spec_verify_ct")
    if isinstance(verify, int) and verify > 0:
        correct = record.spec.get("spec_num_correct_drafts")
        accepted = correct if isinstance(correct, int) else max(0, record.completion_tokens - verify - 1)
        return float(verify + accepted), float(verify)
    taken = record.spec.get("draft_n_accepted")
    decoded = record.completion_tokens - 1
    if isinstance(taken, int) and decoded > taken:
        return float(decoded), float(decoded - taken)
    return None


def outliers(records: Sequence[RequestRecord]) -> tuple[Outlier, ...]:
    """Failed requests, and those far slower than the rest, the worst first."""
    failed = [
        Outlier(record, f"{record.error}: {record.detail}".rstrip(": "))
        for record in records
        if record.error is not None
    ]
    good = [(record.e2e_s, record) for record in records if record.error is None and record.e2e_s is not None]
    ordered = sorted(value for value, _ in good)
    lower, middle, upper = (percentile(ordered, share) for share in (0.25, 0.5, 0.75))
    slow: list[tuple[float, Outlier]] = []
    if lower is not None and middle is not None and upper is not None and len(ordered) >= 8:
        fence = max(upper + FAR_OUT * (upper - lower), LEAST_OUT * middle)
        for value, record in good:
            if value > fence:
                slow.append((value, Outlier(record, f"E2E {value:.3g} s, the others take {middle:.3g} s")))
    return (*failed, *(outlier for _, outlier in sorted(slow, key=lambda pair: -pair[0])))
