"""A byte-level vocabulary with a few hundred English words, in the shape that llama.cpp's `gpt2` tokenizer reads.

Every byte has a token, so any text can be tokenised; every word of `WORDS` has one more (with its leading
space), so that generated text reads as words.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

SPECIAL_TOKENS = ("<|bos|>", "<|eos|>", "<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
BOS_ID, EOS_ID, PAD_ID = 0, 1, 2

CHAT_TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

WORDS = (
    "draft target token verify accept reject step batch cache queue prompt prefill decode weight shard layer head "
    "kernel graph capture stream window memory latency budget branch tree depth width length sample greedy logit "
    "table index block page slot rank node host device driver thread signal socket buffer packet record ledger "
    "river stone meadow harbour lantern copper silver amber garden winter summer morning evening island mountain "
    "valley forest bridge tower market letter number colour measure balance engine turbine anchor compass signal "
    "quiet steady narrow broad early late under over between across along beyond before after"
)
"""Separated by spaces; each becomes a token."""


def byte_letters() -> list[str]:
    """The printable stand-in of each byte 0..255, as GPT-2's byte-level tokenizer defines it.

    Printable Latin-1 bytes stand for themselves; the others are numbered upwards from U+0100.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    letters, spare = [], 0x100
    for byte in range(256):
        if byte in printable:
            letters.append(chr(byte))
        else:
            letters.append(chr(spare))
            spare += 1
    return letters


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Token texts by id, the merges that build the longer ones, and which ids are whole words."""

    tokens: tuple[str, ...]
    merges: tuple[str, ...]
    word_ids: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.tokens)


def build_vocabulary() -> Vocabulary:
    """Special tokens, 256 bytes, then every word letter by letter: each prefix is a token, each step a merge."""
    letters = byte_letters()
    space = letters[0x20]
    tokens = [*SPECIAL_TOKENS, *letters]
    known = set(tokens)
    merges: list[str] = []
    words: list[str] = []
    for word in dict.fromkeys(WORDS.split()):
        spelled = space + word
        prefixes = [spelled[:end] for end in range(1, len(spelled) + 1)]
        for shorter, longer in pairwise(prefixes):
            if longer not in known:
                known.add(longer)
                tokens.append(longer)
                merges.append(f"{shorter} {longer[-1]}")
        words.append(spelled)
    ids = {text: token_id for token_id, text in enumerate(tokens)}
    return Vocabulary(tuple(tokens), tuple(merges), tuple(ids[word] for word in words))
