"""A Prometheus text page -> samples, by prometheus_client's parser."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from specconsole.core.measuring.counters import MetricSample


def parse_metrics_page(text: str) -> list[MetricSample]:
    """All samples of a page, or of the lines kept of one. A broken page gives the samples before the break."""
    found: list[MetricSample] = []
    try:
        for family in text_string_to_metric_families(text):
            found += [MetricSample(s.name, dict(s.labels), float(s.value)) for s in family.samples]
    except ValueError:
        return found
    return found
