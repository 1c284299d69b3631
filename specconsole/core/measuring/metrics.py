"""The metrics that a table, a plot or an export can show: one entry each, with unit, direction and definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from specconsole.core.measuring.point import Spread
from specconsole.core.measuring.result import MeasuredPoint, Result


@dataclass(frozen=True, slots=True)
class Metric:
    metric_id: str
    label: str
    unit: str
    better: Literal["higher", "lower", "neither"]
    definition: str
    value: Callable[[MeasuredPoint], float | None]
    """None: not measured, or not knowable on this server."""


def _ms(pick: Callable[[MeasuredPoint], float | None]) -> Callable[[MeasuredPoint], float | None]:
    def value(point: MeasuredPoint) -> float | None:
        seconds = pick(point)
        return None if seconds is None else seconds * 1e3

    return value


def _spread(name: str, label: str, definition: str, pick: Callable[[MeasuredPoint], Spread]) -> list[Metric]:
    return [
        Metric(f"{name}_mean_ms", f"{label} mean", "ms", "lower", definition, _ms(lambda p: pick(p).mean)),
        Metric(f"{name}_p50_ms", f"{label} p50", "ms", "lower", definition, _ms(lambda p: pick(p).p50)),
        Metric(f"{name}_p90_ms", f"{label} p90", "ms", "lower", definition, _ms(lambda p: pick(p).p90)),
        Metric(f"{name}_p99_ms", f"{label} p99", "ms", "lower", definition, _ms(lambda p: pick(p).p99)),
    ]


def _decode_tok_s(point: MeasuredPoint) -> float | None:
    tpot_s = point.metrics.cost(None).tpot_s
    return None if not tpot_s else 1.0 / tpot_s


def _step_ms(point: MeasuredPoint) -> float | None:
    tpot_s, length = point.metrics.cost(None).tpot_s, point.acceptance.accept_length
    return None if tpot_s is None or length is None else tpot_s * length * 1e3


PROBE = "probe:"
"""`probe:draft_ms` is the mean of the profile's probe `draft_ms` over the window."""


def find_metric(metric_id: str, results: Iterable[Result] = ()) -> Metric | None:
    """One of `METRICS`, or that of a probe which any point of `results` has; None for another."""
    name = metric_id.removeprefix(PROBE)
    if name == metric_id:
        return METRICS.get(metric_id)
    if not any(name in point.probes for result in results for point in result.points):
        return None
    definition = f"mean of what the probe {name} read from the server's log, over the window"
    return Metric(metric_id, name, "as printed", "neither", definition, lambda point: point.probes.get(name))


def probe_names(results: Iterable[Result]) -> tuple[str, ...]:
    """Probes that any point has, in order."""
    return tuple(dict.fromkeys(name for result in results for point in result.points for name in point.probes))


METRICS: dict[str, Metric] = {
    metric.metric_id: metric
    for metric in (
        Metric("output_tok_s", "output", "tok/s", "higher",
               "output tokens that arrived in the steady window / its seconds, all requests together",
               lambda p: p.metrics.output_tok_s),
        Metric("total_tok_s", "total", "tok/s", "higher", "output and prompt tokens / seconds of the steady window",
               lambda p: p.metrics.total_tok_s),
        Metric("decode_tok_s", "decode", "tok/s per request", "higher", "1 / pooled TPOT", _decode_tok_s),
        Metric("accept_length", "accept length", "tokens/step", "higher",
               "tokens per target step, bonus token included, over the run", lambda p: p.acceptance.accept_length),
        Metric("step_ms", "step", "ms", "lower", "decode time / target steps = accept length x pooled TPOT", _step_ms),
        Metric("request_rate_per_s", "requests", "1/s", "higher", "requests that ended in the steady window / seconds",
               lambda p: p.metrics.request_rate_per_s),
        Metric("goodput_per_s", "goodput", "1/s", "higher", "requests within the workload's limits / seconds",
               lambda p: p.metrics.goodput_per_s),
        Metric("running_mean", "running", "requests", "neither", "mean requests out, client's side",
               lambda p: p.metrics.running_mean),
        *_spread("ttft", "TTFT", "start of the request to its first content event", lambda p: p.metrics.ttft_s),
        *_spread("tpot", "TPOT", "decode time / decode tokens of a request", lambda p: p.metrics.tpot_s),
        *_spread("itl", "ITL", "gap before an event / its tokens, over tokens", lambda p: p.metrics.itl_s),
        *_spread("e2e", "E2E", "start of the request to its last content event", lambda p: p.metrics.e2e_s),
    )
}  # fmt: skip
