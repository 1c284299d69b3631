"""A busy vLLM prints one access line a request; of a row of them only the first and the last make a difference."""

from __future__ import annotations

import re

from specconsole.core.reading.block_lines import BlockLines
from specconsole.core.reading.prefilter import LOOK, STEADY, Picked, SteadyRead

# `INFO:     127.0.0.1:46980 - "POST /v1/completions HTTP/1.1" 200 OK`, without its digits
_ACCESS = (b'"POST /v/', b'"  OK')
# In a block's kinds: a line to look at, or a row of access lines with whatever means nothing between them.
_ITEM = re.compile(b"%c|%c(?:[^%c]*%c)?" % (LOOK, STEADY, LOOK, STEADY))


class AccessLines:
    """See `core.reading.prefilter.Steady`. All of a row say the same, so its first line makes the server busy and
    its last one is the latest sign of progress."""

    def kind(self, template: bytes) -> int:
        return STEADY if _ACCESS[0] in template and template.rstrip().endswith(_ACCESS[1]) else LOOK

    def pick(self, lines: BlockLines, kinds: bytes) -> Picked:
        del lines
        chosen: list[int] = []
        for item in _ITEM.finditer(kinds):
            chosen.append(item.start())
            if item.end() > item.start() + 1:
                chosen.append(item.end() - 1)
        return Picked(chosen)

    def read(self, raw: bytes, *, worked: bool) -> SteadyRead | None:
        del raw, worked
        return None  # two lines a row: the ordinary way is fast enough
