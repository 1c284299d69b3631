"""The JSON Schema of what `results export --format json` writes, made from the types themselves (draft 2020-12)."""

from __future__ import annotations

from typing import Any

import msgspec

from specconsole.core.measuring.metrics import METRICS
from specconsole.core.measuring.result import SCHEMA_VERSION, Result


def result_schema() -> dict[str, Any]:
    """An array of results; every field is there in every result, null or "" where it is not known."""
    (_, _), parts = msgspec.json.schema_components([Result, list[Result]], ref_template="#/$defs/{name}")
    for part in parts.values():
        # Optional to read for us, written always.
        part["required"] = list(part["properties"])
        part["additionalProperties"] = False
        for shape in part["properties"].values():
            shape.pop("default", None)
    result, point = parts["Result"], parts["MeasuredPoint"]
    result["properties"] = {"schema": {"const": SCHEMA_VERSION}, **result["properties"]}
    result["required"] = list(result["properties"])
    values = {
        key: {"anyOf": [{"type": "number"}, {"type": "null"}], "description": f"[{metric.unit}] {metric.definition}"}
        for key, metric in METRICS.items()
    }
    point["properties"]["values"] = {"type": "object", "properties": values, "required": list(values)}
    point["required"] = list(point["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "specconsole results",
        "type": "array",
        "items": {"$ref": "#/$defs/Result"},
        "$defs": parts,
    }
