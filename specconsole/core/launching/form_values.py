"""What is typed into a field -> a value of a profile, and back."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any

from specconsole.core.launching.flag_pairs import typed
from specconsole.core.launching.form_fields import FormField
from specconsole.core.launching.profile import SECRET_PLACES, SECRET_USE, looks_secret

_WHOLE = re.compile(r"[+-]?\d+")
_ON, _OFF = ("on", "true", "yes", "1"), ("off", "false", "no", "0")
_VARIABLE_USE = re.compile(r"\$\{[A-Za-z_][\w-]*\}")


@dataclass(frozen=True, slots=True)
class Typed:
    """What a text means in a field."""

    value: Any = None
    """None: nothing, the field is left empty."""
    error: str = ""
    """Why it can't be taken; "" when it can."""
    warning: str = ""
    instead: str = ""
    """The value that was probably meant; "" for none."""


def read_value(field: FormField, text: str) -> Typed:
    """Never raises. An empty text is no value."""
    text = text.strip()
    if not text:
        return Typed()
    if "\0" in text:
        return Typed(error="a NUL byte can't be passed to a program")
    if field.path[0] == "secrets":
        if not text.startswith(SECRET_PLACES):
            return Typed(error="the place of the value is wanted, not the value: env:NAME, file:PATH or command:...")
        return Typed(text)
    if field.path[0] == "env":
        return _variable(field, text)
    # A variable of the profile stands for anything.
    if _VARIABLE_USE.search(text) and field.kind in ("int", "float", "choice"):
        return Typed(text)
    return _BY_KIND[field.kind](field, text)


def _variable(field: FormField, text: str) -> Typed:
    if looks_secret(field.name) and not SECRET_USE.fullmatch(text):
        # The text is not repeated: it may be the secret.
        return Typed(error=f"{field.name} looks like a secret, and variables are shown and kept",
                     instead=f"${{secret:{field.name}}}")  # fmt: skip
    return Typed(text)


def _switch(field: FormField, text: str) -> Typed:
    if text.lower() in _ON:
        return Typed(True)
    if text.lower() in _OFF:
        return Typed(False)
    return Typed(error="on or off is wanted")


def _choice(field: FormField, text: str) -> Typed:
    if not field.closed or text in field.choices:
        return Typed(typed(text))
    starting = [choice for choice in field.choices if choice.lower().startswith(text.lower())]
    close = starting[:1] or get_close_matches(text, field.choices, n=1)
    return Typed(error=f"the server takes {_few(field.choices)}", instead=close[0] if close else "")


def _few(words: tuple[str, ...], most: int = 8) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def _whole(field: FormField, text: str) -> Typed:
    if not _WHOLE.fullmatch(text):
        return Typed(error="a whole number is wanted")
    if len(text) > 18:
        return Typed(error="that number is too large")
    number = int(text)
    if field.path == ("port",) and not 1 <= number <= 65535:
        return Typed(error="a port is a number from 1 to 65535; empty picks a free one")
    return Typed(number)


def _broken(field: FormField, text: str) -> Typed:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return Typed(error="a number is wanted")
    if not number.is_finite():
        return Typed(error="a finite number is wanted")
    if field.path == ("grace_s",) and not 0 <= number < 86400:
        return Typed(error="seconds from 0 to 86400 are wanted")
    if field.path == ("grace_s",):
        return Typed(float(number))
    # As it was written, where the number would be spelled otherwise: `1e-5`, `0.90`.
    value = typed(text)
    return Typed(value)


def _text(field: FormField, text: str) -> Typed:
    if len(field.path) == 1:
        return Typed(text)
    value = typed(text)
    if field.choices and not field.closed and str(value) not in field.choices:
        words = str(value).split(",")
        unknown = [word for word in words if word.strip() not in field.choices]
        return Typed(value, warning=f"{unknown[0]} is not among the values that are known") if unknown else Typed(value)
    return Typed(value)


def _path(field: FormField, text: str) -> Typed:
    return Typed(text)


def _list(field: FormField, text: str) -> Typed:
    if text.startswith("["):
        try:
            items = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            return Typed(error="not a list: [1, 2], or words with blanks between them")
    else:
        try:
            items = [typed(word) for word in shlex.split(text)]
        except ValueError:
            return Typed(error="a quote is not closed")
    if len(field.path) == 1:
        items = [str(item) for item in items]
    return Typed(items)


def _table(field: FormField, text: str) -> Typed:
    try:
        value = json.loads(text)
    except ValueError as error:
        try:
            value = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            return Typed(error=f"not JSON: {error}")
    if not isinstance(value, Mapping):
        return Typed(value if isinstance(value, int | str) else text, warning="a table is usual here: {...}")
    return Typed(dict(value))


_BY_KIND = {
    "switch": _switch, "on-off": _switch, "choice": _choice, "int": _whole, "float": _broken, "text": _text,
    "path": _path, "list": _list, "table": _table,
}  # fmt: skip


def value_text(value: Any) -> str:
    """A value as it is typed; "" for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        if all(isinstance(item, str | int | float) and not isinstance(item, bool) for item in value):
            return shlex.join(str(item) for item in value)
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def stepped(field: FormField, value: Any, step: int) -> Any:
    """The value `step` places further: the next choice, the other switch, the next number. None: there is no next one.

    With no value, a choice begins at the first (or last) one, and a number at the server's default, where it is known.
    """
    if field.kind in ("switch", "on-off"):
        now = field.default == "on" if value is None else value is True
        return not now
    if field.kind == "choice" or (field.choices and field.kind == "text"):
        return _next_choice(field, value, step)
    if field.kind in ("int", "float") or (field.kind == "text" and _is_number(value)):
        return _next_number(value if value is not None else _leading_number(field.default), step)
    return None


def _next_choice(field: FormField, value: Any, step: int) -> Any:
    now = value_text(value) or (field.default or "")
    if now not in field.choices:
        return typed(field.choices[0 if step > 0 else -1])
    return typed(field.choices[(field.choices.index(now) + step) % len(field.choices)])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leading_number(text: str | None) -> Any:
    match = re.match(r"-?\d+(?:\.\d+)?(?![\w.])", text or "")
    return typed(match[0]) if match else None


def _next_number(value: Any, step: int) -> Any:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not _is_number(value):
        return None
    if isinstance(value, int):
        return value + step
    # One of the last place that is written, at most a hundredth: 0.88 goes to 0.89, 0.875 to 0.876.
    places = max(2, -int(Decimal(repr(value)).as_tuple().exponent))
    number = Decimal(repr(value)) + Decimal(step).scaleb(-min(places, 6))
    return float(number)
