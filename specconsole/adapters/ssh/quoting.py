"""Text for a POSIX sh, so that every byte arrives as it is."""

from __future__ import annotations

from collections.abc import Sequence

from specconsole.errors import BadInputError

_PLAIN = frozenset(range(0x20, 0x7F)) - {ord("'"), ord("\\"), ord("%")}
_ESCAPES = [chr(byte).encode() if byte in _PLAIN else f"\\{byte:03o}".encode() for byte in range(256)]


def word(text: str) -> bytes:
    """One argument in single quotes. Bytes that are not UTF-8 come in as Python's surrogate escapes."""
    raw = text.encode("utf-8", "surrogateescape")
    if b"\0" in raw:
        raise BadInputError(f"an argument can't hold a NUL byte: {text!r}")
    return b"'" + raw.replace(b"'", b"'\\''") + b"'"


def words(argv: Sequence[str]) -> bytes:
    """An argument list as one line of sh."""
    return b" ".join(map(word, argv))


def printf(data: bytes, chunk_bytes: int = 4096) -> bytes:
    """A group of sh built-in `printf` calls that prints `data`.

    Built in, so that nothing shows in `ps`; octal, because a here-document can't carry a NUL and may be put
    into a temporary file (bash before 5.1). A part that begins with a dash would be an option, and lost with an error.
    """
    parts = [data[start : start + chunk_bytes] for start in range(0, len(data), chunk_bytes)]
    lines = [b"printf '" + _first(part[0]) + b"".join(map(_ESCAPES.__getitem__, part[1:])) + b"'" for part in parts]
    return b"{ " + b"; ".join(lines or [b":"]) + b"; }"


def _first(byte: int) -> bytes:
    return b"\\055" if byte == ord("-") else _ESCAPES[byte]
