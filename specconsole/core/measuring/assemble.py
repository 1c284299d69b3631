"""The load generator's lines -> a result. The lines alone are enough: any console can make the result of any run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specconsole.core.measuring.acceptance import (
    Acceptance,
    from_counters,
    from_llamacpp_requests,
    from_sglang_requests,
)
from specconsole.core.measuring.counters import (
    NAMES,
    EngineMetricNames,
    MetricSample,
    preempted,
    running_and_queued,
    spec_counters,
    total,
)
from specconsole.core.measuring.gpu_clocks import point_gpus
from specconsole.core.measuring.marks import client_marks, server_marks
from specconsole.core.measuring.point import Limits, PointMetrics, measure_point
from specconsole.core.measuring.requests import RequestRecord, parse_request
from specconsole.core.measuring.result import ClientFigures, Conditions, MeasuredPoint, Result

OTHERS_LIMIT = 1.01
"""More tokens than ours by this factor are somebody else's."""
PROBE_TOKENS = 16
"""A console's own proof of an answer."""
ParsePage = Callable[[str], Sequence[MetricSample]]


@dataclass(frozen=True, slots=True)
class RunShape:
    """What was asked of a run, as it stands beside its lines."""

    result_id: str
    name: str
    launch_id: str
    conditions: Conditions
    limits: Limits = field(default_factory=Limits)
    note: str = ""


def assemble(lines: Iterable[Mapping[str, Any]], shape: RunShape, parse_page: ParsePage) -> Result:
    """The result of a run, whole or as far as it came. Points without a measured request are left out."""
    run: Mapping[str, Any] = {}
    end: Mapping[str, Any] | None = None
    by_point: dict[int, _Lines] = {}
    for line in lines:
        kind = line.get("kind")
        if kind == "run":
            run = line
        elif kind == "end":
            end = line
        elif isinstance(line.get("point"), int):
            by_point.setdefault(line["point"], _Lines()).take(line)
    points = [p for index in sorted(by_point) if (p := _point(by_point[index], shape, parse_page)) is not None]
    return Result(
        result_id=shape.result_id,
        name=shape.name,
        started_at_s=float(run.get("wall_s", 0.0)),
        ended_at_s=None if end is None else end.get("wall_s"),
        conditions=shape.conditions,
        points=tuple(points),
        ended="unfinished" if end is None else str(end.get("reason", "unfinished")),
        note=shape.note,
    )


class _Lines:
    """All lines of one point."""

    def __init__(self) -> None:
        self.begin: Mapping[str, Any] = {}
        self.finish: Mapping[str, Any] = {}
        self.requests: list[RequestRecord] = []
        self.pages: dict[str, str] = {}
        self.samples: list[str] = []
        self.beside: list[Mapping[str, Any]] = []
        self.flush_failed = False

    def take(self, line: Mapping[str, Any]) -> None:
        kind = line.get("kind")
        if kind == "point":
            self.begin = line
        elif kind == "point-end":
            self.finish = line
        elif kind == "request":
            record = parse_request(line)
            if record is not None:
                self.requests.append(record)
        elif kind == "snapshot" and line.get("when") == "prepare":
            self.flush_failed = self.flush_failed or line.get("status") != 200
        elif kind == "snapshot" and line.get("when") in ("before", "after") and line.get("status") == 200:
            self.pages[str(line["when"])] = str(line.get("body", ""))
        elif kind == "beside":
            self.beside.append(line)
        elif kind == "sample" and line.get("status") == 200:
            self.samples.append(str(line.get("body", "")))


def _point(lines: _Lines, shape: RunShape, parse_page: ParsePage) -> MeasuredPoint | None:
    if not any(not r.warmup for r in lines.requests):
        return None
    label: Mapping[str, Any] = lines.begin.get("label") or {}
    metrics = measure_point(
        lines.requests,
        window_start_s=lines.finish.get("window_start_s"),
        window_end_s=lines.finish.get("window_end_s"),
        limits=shape.limits,
    )
    client = _client(lines, metrics)
    names = NAMES.get(shape.conditions.engine)
    running, queued = _sampled(lines.samples, names, parse_page)
    concurrency = label.get("concurrency")
    conditions = shape.conditions
    cap = None if conditions.running_cap is None else conditions.running_cap * conditions.dp_size
    marks = [
        *client_marks(metrics, client),
        *server_marks(
            metrics,
            concurrency=concurrency,
            running_cap_total=cap,
            running_server_mean=running,
            queued_server_max=queued,
        ),
        *conditions.workload_marks,
    ]
    if conditions.simulated:
        marks.append("simulated")
    if conditions.through_tunnel:
        marks.append("tunnel")
    if lines.finish.get("cancelled"):
        marks.append("cancelled")
    if lines.flush_failed:
        marks.append("not-flushed")
    marks += _page_marks(lines, names, parse_page)
    gpus = point_gpus(lines.beside)
    if any(gpu.throttle for gpu in gpus):
        marks.append("throttled")
    acceptance = _acceptance(lines, conditions.engine, names, parse_page)
    if "restarted" in acceptance.why_not:
        marks.append("restarted")
    return MeasuredPoint(
        concurrency=concurrency,
        rate_per_s=label.get("rate_per_s"),
        repeat=int(label.get("repeat", 0)),
        launch_id=shape.launch_id,
        at_s=float(lines.begin.get("wall_s", 0.0)),
        metrics=metrics,
        acceptance=acceptance,
        client=client,
        running_server_mean=running,
        queued_server_max=queued,
        gpus=gpus,
        marks=tuple(dict.fromkeys(marks)),
    )


def _client(lines: _Lines, metrics: PointMetrics) -> ClientFigures:
    finish = lines.finish
    wall_s, cpu_s = finish.get("wall_s"), finish.get("cpu_s")
    return ClientFigures(
        cpu_share_pct=100.0 * cpu_s / wall_s if wall_s and cpu_s is not None else None,
        lag_p99_s=finish.get("lag_p99_s"),
        stamped_by=str(finish.get("stamped_by") or ""),
        stalled_s=float(finish.get("stalled_s") or 0.0),
        overhead_pct=_overhead(lines, metrics),
    )


def _overhead(lines: _Lines, metrics: PointMetrics) -> float | None:
    """perf_analyzer's rule for a closed loop: the share of slot time in which a slot had no request out."""
    concurrency = (lines.begin.get("label") or {}).get("concurrency")
    if concurrency is None or metrics.running_mean is None or metrics.window is None or not metrics.window.steady:
        return None
    return max(0.0, 100.0 * (1.0 - metrics.running_mean / float(concurrency)))


def _sampled(
    pages: Sequence[str], names: EngineMetricNames | None, parse_page: ParsePage
) -> tuple[float | None, float | None]:
    """Mean of running and maximum of queued over the samples under load; None where the server does not say."""
    if names is None:
        return None, None
    seen = [running_and_queued(parse_page(page), names) for page in pages]
    running = [r for r, _ in seen if r is not None]
    queued = [q for _, q in seen if q is not None]
    return (sum(running) / len(running) if running else None), max(queued, default=None)


def _page_marks(lines: _Lines, names: EngineMetricNames | None, parse_page: ParsePage) -> list[str]:
    """What the pages before and after say of others' requests and of KV space."""
    if names is None or not {"before", "after"} <= set(lines.pages):
        return []
    before, after = parse_page(lines.pages["before"]), parse_page(lines.pages["after"])
    found = []
    if preempted(before, after, names):
        found.append("retractions")
    then, now = total(before, names.generated), total(after, names.generated)
    answered = [r for r in lines.requests if r.error is None]
    if then is not None and now is not None and len(answered) == len(lines.requests):
        known = [r.completion_tokens for r in answered]
        if None not in known and now - then > OTHERS_LIMIT * sum(k for k in known if k is not None) + PROBE_TOKENS:
            found.append("other-requests")
    return found


def _acceptance(lines: _Lines, engine: str, names: EngineMetricNames | None, parse_page: ParsePage) -> Acceptance:
    if engine == "sglang":
        return from_sglang_requests(lines.requests)
    by_counters = _from_pages(lines, names, parse_page)
    if engine == "llamacpp":
        by_request = from_llamacpp_requests(lines.requests)
        if by_counters is None:
            return by_request
        if by_counters.accept_length is None and by_request.accept_length is not None:
            return by_request
    if by_counters is not None:
        return by_counters
    return Acceptance(None, None, None, None, why_not="this server tells no acceptance")


def _from_pages(lines: _Lines, names: EngineMetricNames | None, parse_page: ParsePage) -> Acceptance | None:
    """Counters before and after the point; they cover its warm-up too, so its tokens are taken with it."""
    if names is None or not {"before", "after"} <= set(lines.pages):
        return None
    before, after = (spec_counters(parse_page(lines.pages[when]), names) for when in ("before", "after"))
    if before is None and after is not None:
        before = type(after)(0.0, 0.0, 0.0, None)
    if before is None or after is None:
        return Acceptance(None, None, None, None, why_not="no speculation counters on /metrics: speculation is off")
    answered = [r for r in lines.requests if r.error is None and r.completion_tokens is not None]
    whole = len(answered) == len(lines.requests)
    decode = sum((r.completion_tokens or 0) - 1 for r in answered) if whole else None
    delta = after.since(before)
    if decode is None and delta is not None and delta.generated_tokens is not None:
        # Requests failed: take the server's own count of tokens, less one prefill token a request.
        decode = round(delta.generated_tokens) - len(lines.requests)
    return from_counters(delta, decode)
