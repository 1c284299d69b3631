"""From one physical line to `Line` values: wrappers and prefixes off, bars cut out, stamps on the log's clock."""

from __future__ import annotations

import re
from collections.abc import Iterator

from specconsole.core.reading import bars
from specconsole.core.reading.bars import Bar
from specconsole.core.reading.events import Line
from specconsole.core.reading.stamps import LogClock
from specconsole.core.reading.text import LINE_CAP_BYTES, clean
from specconsole.core.reading.wrappers import Shapes, Unwrapped, unwrap

# Tags whose process does a rank's work: vLLM's workers and engine cores, Ray workers. Front ends and actors that
# only hold a server (`APIServer`, `SGLangEngine`, `vLLMHttpServer`) are no ranks.
_RANK_TAG = re.compile(r"(?:Vllm|RayW|W)orker|EngineCore|_(?:TP|DP|PP|EP)\d|^(?:rank|task|GPU) |(?:TP|DP|PP|EP)\d")
# uvicorn's lines are anybody's, except behind the tag of vLLM's front end: `(APIServer pid=1) INFO:     Shutting down`
_VLLM_FRONT = ("APIServer", "ApiServer")
_MAYBE_BAR = tuple(literal.decode("utf-8", "replace") for literal in bars.LITERALS)


def read_line(
    raw: bytes, no: int, at_s: float | None, clock: LogClock, shapes: Shapes, *, complete: bool = True
) -> Iterator[tuple[Line, tuple[Bar, ...]]]:
    """The messages in one physical line (without its LF), each with the bars that stand in it.

    A message with bars comes in up to three: what stands before the first bar, the bars, what is glued behind the
    last one.
    """
    segments = raw.split(b"\r")
    last = len(segments) - 1
    for i, segment in enumerate(segments):
        if not segment or segment.isspace():
            continue
        text = clean(segment[:LINE_CAP_BYTES])
        if not text:
            continue
        whole_segment = complete or i < last
        for piece in unwrap(text, shapes):
            yield from _lines(piece, no, at_s, clock, whole_segment)


def _lines(
    piece: Unwrapped, no: int, at_s: float | None, clock: LogClock, complete: bool
) -> Iterator[tuple[Line, tuple[Bar, ...]]]:
    stamp_s = clock.read(piece.stamp_source, piece.stamp) if piece.stamp is not None else None
    if not piece.text and not piece.tags:
        return
    rank = piece.rank if piece.rank is not None and (piece.form == "sglang" or _RANK_TAG.search(piece.rank)) else None

    form = "vllm" if piece.form == "uvicorn" and piece.rank and piece.rank.startswith(_VLLM_FRONT) else piece.form

    def line(text: str, complete: bool = complete) -> Line:
        return Line(text, no, piece.whole, form, piece.level, rank, piece.source, stamp_s, at_s, complete)

    text = piece.text
    if "%" not in text and not any(mark in text for mark in _MAYBE_BAR):
        yield line(text), ()
        return
    found = bars.find_bars(text)
    if not found:
        yield line(text), ()
        return
    before, behind = bars.text_around(text, found)
    head, tail = before.strip(), behind.strip()
    if head:
        yield line(head, True), ()
    yield line(text), found
    if tail:
        yield line(tail), ()


def stamp_of(raw: bytes, clock: LogClock, shapes: Shapes) -> float | None:
    """What the log's clock says at a line; None without a stamp. Neither argument is changed."""
    probe = LogClock(dict(clock.offsets), dict(clock.last), clock.now_s, clock.newest_source)
    at: float | None = None
    for piece in unwrap(clean(raw[:512]), Shapes(list(shapes.seen))):
        if piece.stamp is not None:
            at = probe.read(piece.stamp_source, piece.stamp)
    return at
