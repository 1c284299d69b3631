"""SGLang's `server_args=` line: the resolved settings, with secrets masked."""

from __future__ import annotations

import ast
import re
from typing import Any

from specconsole.core.reading.events import Facts

_SECRET = re.compile(
    r"(?:^|_)(?:api_key|key|token|secret|password|passwd)(?:$|_)|admin_api|ssl_keyfile_password", re.IGNORECASE
)
_NO_SECRET = re.compile(
    r"tokenizer|token_map|num_tokens|max_.*token|token_usage|_tokens$|token_step|token_ids|token_hint|prefill_token|draft_token"
)
_PAIR = re.compile(
    r"""['"]?([a-z][a-z0-9_]*)['"]?(?:=|: )('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:e-?\d+)?|True|False|None)(?=[,)}])"""
)
MASK = "***"
_MAX_VALUE_CHARS = 400
_MAX_ARGS = 600


def parse_server_args(text: str) -> Facts | None:
    """`server_args=ServerArgs(model_path='...', ...)` (to 0.5.17) and `server_args={'model_path': '...', ...}`
    (from 0.5.19), also cut at its end; None for another line. What is None there is left out."""
    if not text.startswith("server_args="):
        return None
    args = _by_syntax(text) or _by_pattern(text)
    model = args.get("model_path")
    draft = args.get("speculative_draft_model_path")
    port = args.get("port")
    return Facts(
        version=_text(args.get("version")),
        model=_text(model),
        draft_model=_text(draft),
        port=port if isinstance(port, int) and not isinstance(port, bool) else None,
        args=args,
    )


def _by_syntax(text: str) -> dict[str, Any]:
    try:
        body = ast.parse(text[len("server_args=") :].strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return {}
    args: dict[str, Any] = {}
    if isinstance(body, ast.Call):
        pairs = [(keyword.arg, keyword.value) for keyword in body.keywords if keyword.arg]
    elif isinstance(body, ast.Dict):
        pairs = [
            (key.value, value)
            for key, value in zip(body.keys, body.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        ]
    else:
        return {}
    for name, node in pairs[:_MAX_ARGS]:
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, MemoryError, RecursionError):
            value = ast.unparse(node)
        if value is not None:
            args[name] = _plain(name, value)
    return args


def _by_pattern(text: str) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for found in _PAIR.finditer(text):
        if len(args) >= _MAX_ARGS:
            break
        name, value = found.groups()
        try:
            known = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            continue
        if known is not None:
            args.setdefault(name, _plain(name, known))
    return args


def _plain(name: str, value: Any) -> Any:
    """JSON values only; secrets masked."""
    if _SECRET.search(name) and not _NO_SECRET.search(name) and isinstance(value, str | list | tuple | dict):
        return MASK
    if isinstance(value, bool | int | float):
        return value if value == value and value not in (float("inf"), float("-inf")) else str(value)
    if isinstance(value, str):
        return value[:_MAX_VALUE_CHARS]
    if (
        isinstance(value, list | tuple | set)
        and len(value) <= 400
        and all(isinstance(v, bool | int | float | str) for v in value)
    ):
        return list(value)
    if isinstance(value, dict) and len(value) <= 100:
        return {str(key)[:80]: _plain(str(key), item) for key, item in value.items()}
    return str(value)[:_MAX_VALUE_CHARS]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
