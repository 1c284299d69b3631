"""Where things stand in a decode or prefill line, found in its bytes."""

from __future__ import annotations

from specconsole.core.reading.stamps import of_date

STAMP_END = 20
"""Where `[2026-11-29 14:13:08` ends, counted from its bracket."""
MAX_PREFIX_BYTES = 160
EMPTY = b"#running-req: 0,"
HOLDS_NOTHING = b"token: 0,"

_DIGITS = b"0123456789"
_MAX_KNOWN = 4096
_MINUTES: dict[bytes, float] = {}
"""`2026-11-29 14:13:` -> seconds."""


def span(line: bytes) -> tuple[int, int]:
    """Where SGLang's own prefix begins and its `] ` stands, also behind a short wrapper; an end of -1 for nowhere."""
    begin = 0 if line[:3] == b"[20" else line.find(b"[20", 0, MAX_PREFIX_BYTES)
    if begin >= 0 and line[begin + 11 : begin + 12] != b" ":  # a job platform's own stamp comes first
        begin = line.find(b"[20", begin + 1, MAX_PREFIX_BYTES)
    if begin < 0:
        return begin, -1
    return begin, line.find(b"] ", begin + STAMP_END, begin + MAX_PREFIX_BYTES)


def is_probe(line: bytes) -> bool:
    """Whether a prompt on an empty server is one new token a request, none of it cached."""
    if b"#cached-token: 0," not in line:
        return False
    if b"#new-seq: 1," in line:
        return b"#new-token: 1," in line
    return field(line, b"#new-seq: ", 0) == field(line, b"#new-token: ", 0)


def seconds(text: bytes) -> float:
    """Of `2026-11-29 14:13:08`, as in `Stamp`; raises ValueError for anything else."""
    base = _MINUTES.get(text[:17])
    if base is None:
        if len(text) != STAMP_END - 1 or text.translate(None, _DIGITS) != b"-- ::":
            raise ValueError("no stamp")
        if len(_MINUTES) >= _MAX_KNOWN:
            _MINUTES.clear()
        day = of_date(int(text[0:4]), int(text[5:7]), int(text[8:10]), 0.0).seconds
        base = _MINUTES[text[:17]] = day + int(text[11:13]) * 3600 + int(text[14:16]) * 60
    return base + int(text[17:])


def field(line: bytes, key: bytes, start: int) -> bytes | None:
    """What stands between `key` (with its colon and blank) and the next comma; None without the key."""
    at = line.find(key, start)
    if at < 0:
        return None
    at += len(key)
    end = line.find(b",", at)
    return line[at:end] if end >= 0 else line[at:]


def number(text: bytes | None) -> float | None:
    """Raises ValueError for what is none."""
    return None if text is None else float(text)


def count(text: bytes | None) -> int | None:
    """Raises ValueError for what is none."""
    return None if text is None else int(text)


def group_of(rank: str | None) -> str:
    """The data-parallel part of a rank."""
    if rank is None or "DP" not in rank:
        return ""
    return next((part for part in rank.split(" ") if part[:2] == "DP"), "")
