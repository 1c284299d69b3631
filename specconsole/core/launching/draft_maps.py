"""`d2t` and `t2d`: which tokens of the target a draft of a smaller vocabulary can draft.

`d2t` holds *offsets*: target id = draft id + d2t[draft id] (SGLang 0.5.17 `models/llama_eagle3.py`, vLLM 0.32
`model_executor/models/llama_eagle3.py`). A file with absolute ids loads without a word and accepts nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise

from specconsole.core.launching.draft_facts import DraftFacts, DraftFinding, find_tensor, text_config

_COVERED_WARNS = 0.5
"""Below this share of the common tokens a draft was cut for another language or kind of text, or its map is wrong."""


def decode_int64(data: bytes) -> tuple[int, ...]:
    """The bytes of an I64 tensor. Raises ValueError when they are no whole number of values."""
    if len(data) % 8:
        raise ValueError("not a whole number of 64-bit values")
    return struct.unpack(f"<{len(data) // 8}q", data)


def check_maps(facts: DraftFacts) -> Iterable[DraftFinding]:
    config = text_config(facts.draft_config)
    vocabulary, small = config.get("vocab_size"), facts.draft_config.get("draft_vocab_size")
    reduced = isinstance(small, int) and isinstance(vocabulary, int) and small < vocabulary
    present = find_tensor(facts.tensors, "d2t")
    if facts.tensors and reduced and present is None:
        yield DraftFinding(
            "d2t-missing", "error", "a reduced vocabulary without d2t: every draft token means another one"
        )
    if present is not None and isinstance(small, int) and present.shape[:1] != (small,):
        yield DraftFinding("d2t-size", "error", f"d2t has {present.shape[0]} entries, draft_vocab_size says {small}")
    mask = find_tensor(facts.tensors, "t2d")
    if mask is not None and isinstance(vocabulary, int) and mask.shape[:1] != (vocabulary,):
        yield DraftFinding("t2d-size", "error", f"t2d has {mask.shape[0]} entries, the vocabulary {vocabulary}")
    if facts.d2t:
        yield from _offsets(facts, facts.d2t, vocabulary if isinstance(vocabulary, int) else None)


def _offsets(facts: DraftFacts, d2t: Sequence[int], vocabulary: int | None) -> Iterable[DraftFinding]:
    if len(d2t) > 1 and not any(d2t):
        if vocabulary is not None and len(d2t) < vocabulary:
            text = "d2t is all zeros: draft ids are taken for the first ids of the vocabulary"
            yield DraftFinding("d2t-zeros", "error", text)
        return
    steps = [b - a for a, b in pairwise(d2t)]
    ids = [index + offset for index, offset in enumerate(d2t)]
    runs_out = vocabulary is not None and (max(ids) >= vocabulary or min(ids) < 0)
    if steps and all(step >= 1 for step in steps):
        # Offsets stay equal wherever neighbouring ids are both kept; ids always rise.
        yield DraftFinding("d2t-absolute", "error", "d2t holds absolute ids; the loaders add it to the draft's ids")
        return
    if runs_out:
        yield DraftFinding("d2t-range", "error", f"d2t leads to id {max(ids)}, the vocabulary ends at {vocabulary}")
        return
    if any(b <= a for a, b in pairwise(ids)):
        yield DraftFinding(
            "d2t-order", "warning", "d2t does not lead to rising ids: two draft tokens may mean one token"
        )
    if facts.t2d is not None:
        kept = {index for index, flag in enumerate(facts.t2d) if flag}
        wrong = kept ^ set(ids)
        if wrong:
            yield DraftFinding("maps-disagree", "error", f"d2t and t2d disagree on {len(wrong)} tokens")
    yield from _coverage(facts, set(ids))


def _coverage(facts: DraftFacts, ids: set[int]) -> Iterable[DraftFinding]:
    """What share of the target's common tokens this draft can draft at all."""
    if facts.common_tokens:
        common = set(facts.common_tokens)
        covered = len(common & ids) / len(common)
        text = f"{covered:.0%} of the tokenizer's {len(common)} commonest tokens can be drafted"
        if covered < _COVERED_WARNS:
            yield DraftFinding("coverage", "warning", f"only {text}")
        else:
            yield DraftFinding("coverage", "note", text)


def overlap(d2t: Sequence[int], other: Sequence[int]) -> DraftFinding:
    """How far two drafts of one target draft the same tokens: a note, since either choice may be the better."""
    mine, theirs = ({index + offset for index, offset in enumerate(one)} for one in (d2t, other))
    both = len(mine & theirs)
    share = f"{both / len(mine):.0%}" if mine else "none"
    text = f"{both} of its {len(mine)} tokens ({share}) are in the other draft's map of {len(theirs)} too"
    return DraftFinding("overlap", "note", text)
