"""The commonest tokens of a tokenizer, from the beginning of its `tokenizer.json`; the rest is never read.

Byte-pair encoding makes its tokens in order of frequency, and the vocabularies of the `tokenizers` library number them
in that order, behind the single bytes or characters and the special tokens. So the first merged tokens are the common
ones. A file whose numbers do not rise, or of another kind (unigram, word pieces), says nothing here.
"""

from __future__ import annotations

import re

HEAD_BYTES = 1024 * 1024
"""Of the file: room for a few hundred special tokens and some ten thousand entries."""
_MOST = 2000
_VOCAB = re.compile(rb'"vocab"\s*:\s*\{')
_KIND = re.compile(rb'"type"\s*:\s*"BPE"')
_ENTRY = re.compile(rb'\s*"((?:[^"\\]|\\.)*)"\s*:\s*(\d{1,9})\s*([,}])')
_SINGLE = re.compile(rb"(?:[\x00-\x7f]|[\xc2-\xdf].|[\xe0-\xef]..|[\xf0-\xf4]...|\\u[0-9a-fA-F]{4}|\\.)", re.DOTALL)
_SPECIAL = re.compile(rb"<[^>]*>|\[[A-Z0-9_]+\]")


def common_tokens(head: bytes) -> tuple[int, ...] | None:
    """Ids of the first 2,000 tokens of two letters and more; None where the beginning does not say."""
    start = _VOCAB.search(head)
    if start is None:
        return None
    # The kind stands before the vocabulary, or behind it where keys are sorted.
    if _KIND.search(head, 0, start.start()) is None and b'"merges"' not in head[: start.start()]:
        return None
    found: list[int] = []
    at, last = start.end(), -1
    while len(found) < _MOST and (entry := _ENTRY.match(head, at)):
        text, number, sign = entry.groups()
        token = int(number)
        if token <= last:
            return None
        last, at = token, entry.end()
        if not _SINGLE.fullmatch(text) and not _SPECIAL.fullmatch(text):
            found.append(token)
        if sign == b"}":
            break
    return tuple(found) if len(found) >= _MOST // 10 else None
