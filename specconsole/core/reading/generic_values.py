"""Settings as a server prints them (a Python literal in its log), read without running anything."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

# Names whose values are never repeated on a screen or in a file.
_SECRET = re.compile(r"api_?key|(?:^|_)token$|secret|password|credential", re.IGNORECASE)
MASK = "***"
_LIMIT_CHARS = 64_000


def literal_dict(text: str) -> dict[str, Any]:
    """The dict that `text` begins with, `{'port': 8000, ...}`; {} when it is cut off or no literal."""
    end = text.rfind("}")
    if not text.startswith("{") or end < 0 or len(text) > _LIMIT_CHARS:
        return {}
    try:
        value = ast.literal_eval(text[: end + 1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {str(key): _plain(str(key), item) for key, item in value.items()}


def _plain(name: str, value: object) -> Any:
    """JSON-able, secrets masked."""
    if _SECRET.search(name) and value not in (None, "", [], False):
        return MASK
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(str(key), item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain("", item) for item in value]
    return str(value)
