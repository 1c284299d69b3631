"""Hides secrets in a log at equal length, so that every byte offset holds.

Known values are hidden wherever they stand; besides, what looks like a key of the usual kinds is hidden without being
known. Incremental: a secret that a chunk's end cuts is held back until it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Hugging Face tokens (`hf_` + 34 letters and digits), OpenAI-style keys (`sk-...`), GitHub's, AWS access keys.
_LOOKS_SECRET = re.compile(
    rb"\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16})"
)
# `api_key='abc'` in `server_args=ServerArgs(...)` (SGLang 0.4.6-0.5.23, entrypoints/engine.py), `"api_key": "abc"`,
# `--api-key abc` (vLLM 0.33 prints `non-default args: {'api_key': ['abc'], ...}`), `Authorization: Bearer abc`.
_SETTING = re.compile(
    rb"(?i)((?:admin_)?api[_-]key[\"']?(?:[=:]|\s)\s*\[?[\"']?|authorization:\s*bearer\s+)([^\s\"',)\]}]{4,})"
)
_HARMLESS = (b"None", b"null", b"True", b"False", b"none")
# The longest run that is held back while it may still grow into a secret.
_HOLD_BYTES = 4096


def _begun(word: str) -> str:
    """A pattern for every beginning of `word`, itself included: `a(?:b(?:c)?)?`."""
    head = "[_-]" if word[0] == "_" else re.escape(word[0])
    return head if len(word) == 1 else f"{head}(?:{_begun(word[1:])})?"


_VALUE = r"""[^\s"',)\]}]*"""
# Ends of a piece that the next bytes may turn into one of the two patterns above.
_MAY_GROW = re.compile(
    rf"""\b(?:(?:hf_|sk-|gh[pousr]_|AKIA)[A-Za-z0-9_-]*|{_begun("hf_")}|{_begun("sk-")}|{_begun("ghp_")}|gh[ousr]|{_begun("AKIA")})\Z"""
    rf"""|(?i:{_begun("api_key")}|api[_-]key(?:["']?(?:[=:]|\s)?\s*\[?["']?{_VALUE}))\Z"""
    rf"""|(?i:{_begun("authorization:")}|authorization:\s*(?:{_begun("bearer")})?|authorization:\s*bearer\s+{_VALUE})\Z""".encode()
)


class Masker:
    """Feed chunks in order; what comes out has the same length in total."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        # Very short values would hide half the log.
        self._values = sorted({v.encode() for v in values if len(v) >= 6}, key=len, reverse=True)
        self._held = b""
        self._last = b""
        """The byte before `_held`: it decides whether a word begins there."""

    def feed(self, data: bytes) -> bytes:
        """Bytes that are safe to keep now; the rest comes with the next call."""
        front = len(self._last)
        text = self._last + self._held + data
        keep = len(text) - self._unsafe_tail(text)
        # A secret that is whole and reaches into what is held back must not be cut in two.
        spans = self._spans(text) if keep < len(text) else []
        for start, end in sorted(spans, reverse=True):
            if start < keep < end:
                keep = start
        return self._release(text, front, max(front, keep))

    def _release(self, text: bytes, front: int, keep: int) -> bytes:
        self._held = text[keep:]
        out = self._mask(text[:keep])[front:]
        self._last = text[keep - 1 : keep]
        return out

    def flush(self) -> bytes:
        """What is still held back, for a log that has ended: what began like a secret is hidden whole."""
        front = len(self._last)
        text = self._last + self._held
        hidden = min(self._unsafe_secret(text), len(self._held))
        out = self._release(text, front, len(text) - hidden)
        self._held = b""
        return out + b"*" * hidden

    @property
    def held_bytes(self) -> int:
        """Bytes fed and not yet given back."""
        return len(self._held)

    def _unsafe_tail(self, text: bytes) -> int:
        tail = text[-_HOLD_BYTES:]
        hold = 0
        for value in self._values:
            for size in range(min(len(value) - 1, len(tail)), hold, -1):
                if tail.endswith(value[:size]):
                    hold = size
                    break
        if match := _MAY_GROW.search(tail):
            hold = max(hold, len(tail) - match.start())
        return hold

    def _unsafe_secret(self, text: bytes) -> int:
        """Bytes at the end that began like a secret, and not only like the word before one."""
        tail = text[-_HOLD_BYTES:]
        sizes = [size for value in self._values for size in range(6, len(value)) if tail.endswith(value[:size])]
        return max(sizes, default=0)

    def _spans(self, text: bytes) -> list[tuple[int, int]]:
        found = [match.span() for pattern in _patterns(text) for match in pattern.finditer(text)]
        for value in self._values:
            at = text.find(value)
            while at >= 0:
                found.append((at, at + len(value)))
                at = text.find(value, at + 1)
        return found

    def _mask(self, text: bytes) -> bytes:
        for value in self._values:
            text = text.replace(value, b"*" * len(value))
        for pattern in _patterns(text):
            text = pattern.sub(_stars, text)
        return text


def mask_text(text: str) -> str:
    """A text that is shown once (a command line of the process table): what looks like a key is starred."""
    data = text.encode("utf-8", "surrogateescape")
    for pattern in _patterns(data):
        data = pattern.sub(_stars, data)
    return data.decode("utf-8", "replace")


def _patterns(text: bytes) -> list[re.Pattern[bytes]]:
    """The patterns that can match at all: a search for a plain word is many times faster than theirs."""
    found: list[re.Pattern[bytes]] = []
    if any(word in text for word in (b"hf_", b"sk-", b"AKIA", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_")):
        found.append(_LOOKS_SECRET)
    if any(word in text for word in (b"api_key", b"api-key", b"API_KEY", b"API-KEY", b"uthorization")):
        found.append(_SETTING)
    return found


def _stars(match: re.Match[bytes]) -> bytes:
    if match.re is _LOOKS_SECRET:
        return b"*" * len(match[0])
    return match[0] if match[2] in _HARMLESS else match[1] + b"*" * len(match[2])
