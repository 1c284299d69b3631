# ruff: noqa: E501 - a row of the table stays a line
"""The table of llamacpp's rules: (rule, version, settings, more, level or None where it must not speak, what it gives)."""

from __future__ import annotations

from tests.core.engines.rule_row import Row

ROWS: list[Row] = [
    ("unknown-type", None, {"spec_type": "mtp"}, {}, "error", {"spec_type": "draft-mtp"}),
    ("unknown-type", None, {"spec_type": "ngram-mod"}, {}, None, {}),
    ("draft-without-type", None, {"spec_draft_model": "/d"}, {}, "note", {"spec_type": "draft-simple"}),
    ("draft-without-type", None, {"spec_draft_model": "/d", "spec_type": "draft-simple"}, {}, None, {}),
    ("draft-path-missing", None, {"spec_type": "draft-simple"}, {}, "error", {}),
    ("draft-path-missing", None, {"spec_type": "ngram-simple"}, {}, None, {}),
    ("removed-flags", None, {"draft_max": 8}, {}, "error", {"draft_max": None, "spec_draft_n_max": 8}),
    ("removed-flags", None, {"spec_draft_n_max": 8}, {}, None, {}),
    ("simulated", None, {"spec_synth_len": 2.5}, {}, "warning", {"spec_synth_len": None}),
    ("simulated", None, {}, {}, None, {}),
    ("draft-range", None, {"spec_draft_n_min": 5}, {}, "error", {}),
    ("draft-range", None, {"spec_draft_n_min": 5, "spec_draft_n_max": 8}, {}, None, {}),
    ("context-split", None, {"ctx_size": 4096, "parallel": 4}, {}, "note", {}),
    ("context-split", None, {"ctx_size": 4096, "parallel": 1}, {}, None, {}),
    ("context-over-training", None, {"ctx_size": 32768}, {"model_positions": 4096}, "overridden", {"ctx_size": 4096}),
    ("context-over-training", None, {"ctx_size": 4096}, {"model_positions": 4096}, None, {}),
    ("context-over-training", None, {"ctx_size": 8192, "parallel": 2}, {"model_positions": 4096}, None, {}),
    ("context-over-training", None, {"ctx_size": 16384, "parallel": 2}, {"model_positions": 4096}, "overridden", {"ctx_size": 8192}),
    ("metrics-off", None, {}, {}, "note", {"metrics": True}),
    ("metrics-off", None, {"metrics": True}, {}, None, {}),
]  # fmt: skip
