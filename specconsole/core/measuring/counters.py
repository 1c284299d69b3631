"""Server metrics as the benchmark needs them: speculation counters, running and queued requests.

Names are matched whole: vLLM's `..._created` twins are time stamps. Sums run over engines and data-parallel ranks.
Sources: vLLM 0.10 to 0.33 `v1/spec_decode/metrics.py` and `v1/metrics/loggers.py`; llama.cpp b10434 on
`tools/server/server.cpp`; SGLang 0.4.6 to 0.5.23 `metrics/collector.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from specconsole.core.measuring.acceptance import SpecCounters


@dataclass(frozen=True, slots=True)
class MetricSample:
    """One line of a metrics page."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class EngineMetricNames:
    """What one engine calls them; "" where it has no such metric."""

    prefix: str
    drafts: str = ""
    draft_tokens: str = ""
    accepted: str = ""
    per_position: str = ""
    generated: str = ""
    verify_steps: str = ""
    running: str = ""
    queued: str = ""
    preempted: str = ""
    """A counter, or a gauge (SGLang: of the last batch), of requests that were taken back for want of KV space."""
    keep: tuple[str, ...] = ()
    """Words by which the load generator keeps lines of a page."""


NAMES: Mapping[str, EngineMetricNames] = {
    "vllm": EngineMetricNames(
        prefix="vllm:",
        drafts="vllm:spec_decode_num_drafts_total",
        draft_tokens="vllm:spec_decode_num_draft_tokens_total",
        accepted="vllm:spec_decode_num_accepted_tokens_total",
        per_position="vllm:spec_decode_num_accepted_tokens_per_pos_total",
        generated="vllm:generation_tokens_total",
        running="vllm:num_requests_running",
        queued="vllm:num_requests_waiting",
        preempted="vllm:num_preemptions_total",
        keep=("spec_decode_", "generation_tokens_total", "num_requests_", "num_preemptions_total", "prefix_cache_"),
    ),
    "llamacpp": EngineMetricNames(
        prefix="llamacpp:",
        drafts="llamacpp:spec_decode_num_drafts_total",
        draft_tokens="llamacpp:spec_decode_num_draft_tokens_total",
        accepted="llamacpp:spec_decode_num_accepted_tokens_total",
        per_position="llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
        generated="llamacpp:tokens_predicted_total",
        running="llamacpp:requests_processing",
        queued="llamacpp:requests_deferred",
        keep=("spec_decode_", "tokens_predicted_total", "requests_"),
    ),
    "sglang": EngineMetricNames(
        prefix="sglang:",
        generated="sglang:generation_tokens_total",
        verify_steps="sglang:spec_verify_calls_total",
        running="sglang:num_running_reqs",
        queued="sglang:num_queue_reqs",
        keep=(
            "generation_tokens_total",
            "spec_verify_calls_total",
            "num_running_reqs",
            "num_queue_reqs",
            "num_retract",
        ),
    ),
}


def total(samples: Iterable[MetricSample], name: str) -> float | None:
    """The sum over all label sets; None when the metric is not there."""
    values = [sample.value for sample in samples if name and sample.name == name]
    return sum(values) if values else None


def spec_counters(samples: Iterable[MetricSample], names: EngineMetricNames) -> SpecCounters | None:
    """Speculation counters; None where the page has none (speculation is off, or the engine counts otherwise)."""
    known = list(samples)
    drafts, offered, accepted = (total(known, n) for n in (names.drafts, names.draft_tokens, names.accepted))
    if drafts is None or offered is None or accepted is None:
        return None
    by_position: dict[int, float] = {}
    for sample in known:
        if names.per_position and sample.name == names.per_position:
            position = sample.labels.get("position", "")
            if position.isdigit():
                by_position[int(position)] = by_position.get(int(position), 0.0) + sample.value
    positions = tuple(by_position.get(p, 0.0) for p in range(max(by_position, default=-1) + 1))
    return SpecCounters(drafts, offered, accepted, total(known, names.generated), positions)


def preempted(before: Iterable[MetricSample], after: Iterable[MetricSample], names: EngineMetricNames) -> float | None:
    """Requests taken back between two pages; None where the server does not count them."""
    then, now = total(before, names.preempted), total(after, names.preempted)
    return None if then is None or now is None else max(0.0, now - then)


def verify_steps(samples: Iterable[MetricSample], names: EngineMetricNames) -> float | None:
    """SGLang 0.5.15 on: request-steps verified since start; None elsewhere."""
    return total(samples, names.verify_steps)


def running_and_queued(samples: Iterable[MetricSample], names: EngineMetricNames) -> tuple[float | None, float | None]:
    known = list(samples)
    return total(known, names.running), total(known, names.queued)
