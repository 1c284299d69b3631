"""Reducer state to JSON and back: plain dataclasses in, dicts, lists, strings and numbers out.

A checkpoint is data, not code: what is loaded is built from the declared field types alone, and a checkpoint of
another shape raises `ValueError` so that the log is read again from its start.
"""

from __future__ import annotations

import functools
import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def dump(value: Any) -> Any:
    """A JSON-able copy. Bytes become strings of one character a byte."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: dump(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {key: dump(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [dump(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return value.decode("latin-1")
    return value


def load(kind: type[T], data: Any) -> T:
    """The value that `dump` made `data` of. Raises ValueError when `data` has another shape."""
    try:
        return typing.cast(T, _build(kind, data))
    except (KeyError, TypeError, AttributeError, UnicodeError) as error:
        raise ValueError(f"not a checkpoint of this version: {error}") from error


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _build(kind: Any, data: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _build_union(typing.get_args(kind), data)
    if origin is list:
        (item,) = typing.get_args(kind)
        return [_build(item, one) for one in data]
    if origin is dict:
        _, item = typing.get_args(kind)
        return {key: _build(item, one) for key, one in data.items()}
    if origin is tuple:
        items = typing.get_args(kind)
        if len(items) == 2 and items[1] is Ellipsis:
            return tuple(_build(items[0], one) for one in data)
        return tuple(_build(item, one) for item, one in zip(items, data, strict=True))
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        if set(data) != set(hints):
            raise TypeError(f"{kind.__name__} has other fields")
        return kind(**{name: _build(hints[name], one) for name, one in data.items()})
    if kind in (bytes, bytearray):
        return kind(data.encode("latin-1"))
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    return data


def _build_union(kinds: tuple[Any, ...], data: Any) -> Any:
    if data is None:
        return None
    for kind in kinds:
        if kind is type(None):
            continue
        # Our unions are "something or nothing"; of several, the first dataclass whose fields fit.
        if not (isinstance(kind, type) and is_dataclass(kind)) or set(data) == set(_hints(kind)):
            return _build(kind, data)
    raise TypeError("no member of the union fits")
