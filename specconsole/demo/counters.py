"""The speculation counters of llama.cpp's /metrics, as the demo needs them (b10434-b11549, tools/server)."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from specconsole.core.measuring.acceptance import SpecCounters
from specconsole.errors import BadInputError

_PREFIX = "llamacpp:"


def spec_counters(text: str) -> SpecCounters:
    """From the text of /metrics. They move when a request ends. Raises BadInputError when they are not there."""
    values: dict[str, float] = {}
    positions: dict[int, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix(_PREFIX)
            if name == "spec_decode_num_accepted_tokens_per_pos_total":
                positions[int(sample.labels["position"])] = sample.value
            elif not sample.labels:
                values[name] = sample.value
    return SpecCounters(
        drafts=_value(values, "spec_decode_num_drafts_total"),
        draft_tokens=_value(values, "spec_decode_num_draft_tokens_total"),
        accepted_tokens=_value(values, "spec_decode_num_accepted_tokens_total"),
        generated_tokens=values.get("tokens_predicted_total"),
        per_position=tuple(positions[number] for number in sorted(positions)),
    )


def _value(values: Mapping[str, float], name: str) -> float:
    if name not in values:
        raise BadInputError(f"/metrics has no `{_PREFIX}{name}`", try_="a newer xllamacpp")
    return values[name]
