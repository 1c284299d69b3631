"""As much of JSON Schema as our own schemas use; any other word in one is an error, so that nothing passes unread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
SILENT = {"title", "description", "$schema", "$defs"}


def faults(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: str = "$") -> list[str]:
    """What is wrong with a value; [] when it fits."""
    found: list[str] = []
    for word, wanted in schema.items():
        if word == "$ref":
            found += faults(value, root["$defs"][wanted.removeprefix("#/$defs/")], root, path)
        elif word == "type":
            good = isinstance(value, KINDS[wanted]) and (wanted == "boolean" or not isinstance(value, bool))
            found += [] if good else [f"{path}: {value!r} is no {wanted}"]
        elif word == "anyOf":
            if all(faults(value, one, root, path) for one in wanted):
                found.append(f"{path}: {value!r} fits none of {len(wanted)}")
        elif word == "enum":
            found += [] if value in wanted else [f"{path}: {value!r} is none of {wanted}"]
        elif word == "const":
            found += [] if value == wanted else [f"{path}: {value!r} is not {wanted!r}"]
        elif word == "required":
            found += [f"{path}: no {key}" for key in wanted if isinstance(value, dict) and key not in value]
        elif word == "properties":
            for key, one in wanted.items():
                if isinstance(value, dict) and key in value:
                    found += faults(value[key], one, root, f"{path}.{key}")
        elif word == "additionalProperties":
            more = set(value) - set(schema.get("properties", ())) if isinstance(value, dict) else set()
            for key in sorted(more):
                found += faults(value[key], wanted, root, f"{path}.{key}") if wanted else [f"{path}: what is {key}?"]
        elif word == "items":
            for number, one in enumerate(value if isinstance(value, list) else ()):
                found += faults(one, wanted, root, f"{path}[{number}]")
        elif word not in SILENT:
            raise AssertionError(f"{word} is not known here")
    return found
