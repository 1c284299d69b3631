"""Decode and prefill lines of a busy SGLang: which of them make a difference, and what those say.

A server under load prints little else, by the million. `Serving` keeps the last `KEPT_WINDOWS` windows of a rank and
whether idle time came before each. So of the decode lines between two other lines only the last few of a rank
matter, with what stands between them; before those only the moments count at which work began or ended.
"""

from __future__ import annotations

import re

from specconsole.core.engines.sglang.dialect_steady_fields import (
    STAMP_END,
    count,
    field,
    group_of,
    is_probe,
    number,
    seconds,
    span,
)
from specconsole.core.engines.sglang.dialect_steady_ranks import pick_ranks
from specconsole.core.engines.sglang.dialect_steady_row import IrregularError, pick_row
from specconsole.core.reading.block_lines import BlockLines
from specconsole.core.reading.events import Prefill, Window
from specconsole.core.reading.prefilter import LOOK, NOTHING, STEADY, Picked, SteadyRead
from specconsole.core.reading.stamps import Stamp

# `[2026-11-29 14:13:08 DP0 TP0] Decode batch, #running-req: 8, #token: 620, ...`, without its digits; nothing glued to
# it, before (a bar) or behind (another line).
_TEMPLATE = re.compile(
    rb"[^%\r]*(?<!\w)\[-- ::(?:[.,])?(?: [A-Z][A-Z_]*)*\] (?:Decode|Prefill) batch(?: \[\])?[.,] "
    rb"#(?:running-req|new-seq): [^\[\]]*"
)
# Those with nothing else in brackets: behind a short wrapper or none, of no later pipeline stage. What tells a
# probe stands before the number of running requests.
_REGULAR = re.compile(
    rb"[^%\[\]\r]{0,60}(?<!\w)\[-- ::(?P<rank>(?: (?!PP)[A-Z][A-Z_]*)*)\] "
    rb"(?:(?P<decode>Decode) batch[.,] #running-req: |Prefill batch[.,] #new-seq: , #new-token: , #cached-token: , [^#]*"
    rb"#running-req: )[^\[\]]*"
)
_DECODE, _PREFILL = STEADY + 1, STEADY + 2
_RANK_DECODE, _RANK_PREFILL = STEADY + 3, STEADY + 4
"""The same with ranks in the prefix."""
_NO_RANK, _RANKED = bytes((_DECODE, _PREFILL)), bytes((_RANK_DECODE, _RANK_PREFILL))
_LOOK = re.compile(b"%c" % LOOK)
_MEANS_LITTLE = bytes((NOTHING, LOOK))


class SteadyLines:
    """See `core.reading.prefilter.Steady`."""

    def kind(self, template: bytes) -> int:
        if _TEMPLATE.fullmatch(template) is None or b"\x1b" in template or not template.isascii():
            return LOOK
        regular = _REGULAR.fullmatch(template)
        if regular is None:
            return STEADY
        kind = _RANK_DECODE if regular["rank"] else _DECODE
        return kind if regular["decode"] else kind + 1

    def pick(self, lines: BlockLines, kinds: bytes) -> Picked:
        one = _one_rank(lines, kinds)
        if one is not None:
            try:
                return pick_row(lines, kinds, *one)
            except IrregularError:
                pass
        return pick_ranks(lines, kinds)

    def read(self, raw: bytes, *, worked: bool) -> SteadyRead | None:
        begin, end = span(raw)
        if end < 0 or b"[" in raw[end:] or not raw.isascii():
            return None
        name = raw[begin + STAMP_END : end]
        if (name and name[:1] != b" ") or b"PP" in name:
            return None
        rank = name[1:].decode() or None
        group = group_of(rank)
        event: Window | Prefill
        try:
            stamp = Stamp("date", seconds(raw[begin + 1 : begin + STAMP_END]))
            if worked:
                return SteadyRead(rank, "sglang", stamp, Prefill(2, 1, None, None, group))
            running = int(field(raw, b"#running-req: ", end) or b"")
            queued = count(field(raw, b", #queue-req: ", end))
            kv_usage = number(field(raw, b", token usage: ", end) or field(raw, b", full token usage: ", end))
            if raw[end + 2 : end + 3] == b"D":
                event = Window(
                    number(field(raw, b", accept len: ", end)),
                    number(field(raw, b", gen throughput (token/s): ", end)),
                    running,
                    queued,
                    kv_usage,
                    group,
                    empty=number(field(raw, b"#token: ", end) or field(raw, b"#full token: ", end)) == 0,
                )
            else:
                tokens = 0 if running == 0 and is_probe(raw) else max(2, int(field(raw, b"#new-token: ", end) or b""))
                event = Prefill(tokens, running, queued, kv_usage, group)
        except ValueError:
            return None
        return SteadyRead(rank, "sglang", stamp, event)


def _one_rank(lines: BlockLines, kinds: bytes) -> tuple[bytes, int] | None:
    """What the prefix of a block's steady lines says behind the stamp, if it is the same in all, and their decode
    lines' kind."""
    steady = kinds.translate(None, _MEANS_LITTLE)
    if not steady.translate(None, _NO_RANK):
        return b"", _DECODE
    if steady.translate(None, _RANKED):
        return None
    first = lines[min(at for at in map(kinds.find, _RANKED) if at >= 0)]
    begin, end = span(first)
    if end < 0:
        return None
    name = first[begin + STAMP_END : end]
    named = (name + b"] Decode batch", name + b"] Prefill batch")
    found = sum(map(lines.block.count, named))
    if LOOK in kinds:
        found -= sum(lines[look.start()].count(text) for look in _LOOK.finditer(kinds) for text in named)
    return (name, _RANK_DECODE) if found == len(steady) else None
