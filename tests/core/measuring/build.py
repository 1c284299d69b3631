"""Results made by hand, for tables and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specconsole.core.measuring.acceptance import Acceptance
from specconsole.core.measuring.point import PointMetrics, Spread, Window
from specconsole.core.measuring.result import ClientFigures, Conditions, MeasuredPoint, Result

NOTHING = Spread(0, None, None, None, None)


def point(
    concurrency: int, tok_s: float, repeat: int = 0, *, accept: float | None = None, marks: Sequence[str] = (),
    launch_id: str = "L1",
) -> MeasuredPoint:  # fmt: skip
    """`concurrency` requests that decode 1,000 tokens together at `tok_s`."""
    tokens = 1000
    seconds = tokens / tok_s * concurrency
    steps = None if accept is None else round(tokens / accept)
    e2e = Spread(10, seconds / 10, seconds / 10, seconds / 10, seconds / 10)
    metrics = PointMetrics(
        succeeded=10, failed=0, failures={}, ttft_s=NOTHING, tpot_s=NOTHING, itl_s=NOTHING, e2e_s=e2e,
        output_tok_s=tok_s, total_tok_s=None, request_rate_per_s=None, goodput_per_s=None,
        running_mean=float(concurrency), cached_token_share_ratio=None, decode_time_s=seconds, decode_tokens=tokens,
        decode_share_ratio=1.0, window=Window(0.0, 1.0, steady=True), tokens_from="usage", per_event_tokens=True,
        marks=(),
    )  # fmt: skip
    acceptance = Acceptance(accept, steps, None, None)
    return MeasuredPoint(
        concurrency, None, repeat, launch_id, 1000.0 + repeat, metrics, acceptance, ClientFigures(), marks=tuple(marks)
    )


def result(name: str, points: Sequence[MeasuredPoint], *, at_s: float = 1000.0, **conditions: Any) -> Result:
    shape = {"engine": "llamacpp", "workload": "w", "workload_hash": "h", "speculative": False, **conditions}
    return Result(f"{name}-{at_s:.0f}", name, at_s, at_s + 10, Conditions(**shape), tuple(points))
