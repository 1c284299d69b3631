"""A busy vLLM prints one access line a request; of a row of them only the first and the last make a difference."""

from __future__ import annotations

from specconsole.core.reading.prefilter import LOOK, STEADY, Brief, Picked, SteadyRead

# `INFO:     127.0.0.1:46980 - "POST /v1/completions HTTP/1.1" 200 OK`, without its digits
_ACCESS = (b'"POST /v/', b'"  OK')


class AccessLines:
    """See `core.reading.prefilter.Steady`. All of a row say the same, so its first line makes the server busy and
    its last one is the latest sign of progress."""

    def kind(self, template: bytes) -> int:
        return STEADY if _ACCESS[0] in template and template.rstrip().endswith(_ACCESS[1]) else LOOK

    def pick(self, lines: list[bytes], kinds: list[int]) -> Picked:
        chosen: list[int] = []
        last = -1
        for i, kind in enumerate(kinds):
            if kind == LOOK:
                if last >= 0 and chosen[-1] != last:
                    chosen.append(last)
                chosen.append(i)
                last = -1
            elif kind == STEADY:
                if last < 0:
                    chosen.append(i)
                last = i
        if last >= 0 and chosen[-1] != last:
            chosen.append(last)
        return Picked(chosen)

    def read(self, raw: bytes, brief: Brief | None) -> SteadyRead | None:
        del raw, brief
        return None  # two lines a row: the ordinary way is fast enough
