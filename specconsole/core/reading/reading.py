"""The reader: bytes with their arrival times in, a `Reading` out, at any time.

The same bytes with the same times give the same reading, however they were cut into pieces and wherever a
checkpoint was taken and resumed.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

from specconsole.core.reading import bars, generic
from specconsole.core.reading.block_lines import BlockLines
from specconsole.core.reading.dialect import Dialect, load, load_all
from specconsole.core.reading.events import Line
from specconsole.core.reading.history import History, StartKey
from specconsole.core.reading.lines import read_line, stamp_of
from specconsole.core.reading.model import Reading
from specconsole.core.reading.pipeline import Pipeline
from specconsole.core.reading.prefilter import NOTHING, STEADY, Prefilter, Steady
from specconsole.core.reading.stall import GpuActivity
from specconsole.core.reading.state import dump
from specconsole.core.reading.state import load as load_state
from specconsole.core.reading.text import LINE_CAP_BYTES, Encoding, Splitter, clean
from specconsole.core.reading.verdict import build_reading

_BLOCK_BYTES = 1 << 20
_STAMP_SEARCH_LINES = 400
"""So many lines at the start are all looked at for the first stamp: times count from it."""
_TAIL_LINES = 48
_CONTEXTS = 12
_CONTEXT_LINES = 8
_TAIL_LINE_BYTES = 512
_FORMAT = 3
ALWAYS: tuple[bytes, ...] = (*bars.LITERALS, *generic.LITERALS)


@dataclass(slots=True)
class _State:
    """What a checkpoint holds."""

    format: int = _FORMAT
    basis: Literal["whole", "tail"] = "whole"
    encoding: Encoding = field(default_factory=Encoding)
    split: Splitter = field(default_factory=Splitter)
    pipeline: Pipeline = field(default_factory=Pipeline)
    size_bytes: int = 0
    lf_lines: int = 0
    open_line: bool = False
    """Something stands behind the last LF that was already read (updates ended by CR)."""
    tail: list[bytes] = field(default_factory=list)
    """Ends of the last lines, to tell the log's time at its end without having decoded them."""
    arrived_at_s: float | None = None
    before_trouble: dict[str, list[str]] = field(default_factory=dict)
    """Line number of a failure's statement -> the lines before it."""


class Reader:
    """Reads one log as it grows. No I/O, no clock; not for several threads at once."""

    def __init__(
        self,
        *,
        engine: str | None = None,
        key: StartKey | None = None,
        history: History | None = None,
        basis: Literal["whole", "tail"] = "whole",
    ) -> None:
        """`engine` forces a dialect (contract name); `key` and `history` give the phases that print nothing an ETA."""
        self._state = _State(basis=basis)
        self._key, self._history = key, history
        if engine is not None:
            only = load(engine)
            self._state.pipeline.forced = only.engine if only is not None else engine
        self._use_dialects()

    def _use_dialects(self) -> None:
        pipeline = self._state.pipeline
        names = [pipeline.forced] if pipeline.forced else None
        if names is None and pipeline.settled:
            names = [pipeline.engine]
        self._dialects: tuple[Dialect, ...] = load_all(names)
        self._settled = pipeline.settled
        self._prefilter = _prefilter(tuple(dialect.engine for dialect in self._dialects))

    # ------------------------------------------------------------------ bytes in

    @property
    def offset(self) -> int:
        """Bytes taken so far; where to read on."""
        return self._state.size_bytes

    def feed(self, data: bytes, at_s: float | None = None) -> None:
        """The next bytes. `at_s`: when they arrived, on the caller's clock; None while catching up."""
        for start in range(0, len(data), _BLOCK_BYTES):
            piece = data[start : start + _BLOCK_BYTES] if len(data) > _BLOCK_BYTES else data
            self._state.size_bytes += len(piece)
            block = self._state.split.feed(self._state.encoding.feed(piece))
            if at_s is not None:
                self._state.arrived_at_s = at_s
            if block:
                self._block(block, at_s)

    def arrived(self, at_s: float) -> None:
        """When the last of the bytes taken so far came, where it is known only afterwards (a file's mtime)."""
        self._state.arrived_at_s = at_s

    def gap(self, lost_bytes: int | None) -> None:
        """Bytes that the host's rotation ate before they could be read; None when their number is unknown."""
        state = self._state
        state.size_bytes += lost_bytes or 0
        state.basis = "tail"
        state.lf_lines += 1 if state.open_line or state.split.pending or state.split.cr_held else 0
        state.split = Splitter()
        state.encoding.begin_again()
        state.open_line = False

    def _block(self, block: bytes, at_s: float | None) -> None:
        if b"\r" in block and b"\r\n" in block:
            block = block.replace(b"\r\n", b"\n")
        start = 0
        while start < len(block):
            start += self._part(block[start:] if start else block, at_s)

    def _part(self, block: bytes, at_s: float | None) -> int:
        """Reads lines until the engine gets settled or unsettled (then other literals count); bytes used."""
        state, prefilter = self._state, self._prefilter
        pipeline, first_no = state.pipeline, state.lf_lines + 1
        kinds = prefilter.kinds(block)
        lines = BlockLines(block, len(kinds))
        picked = prefilter.pick(lines, kinds)
        chosen, rows = picked.indexes, picked.moments
        done, following, row = 0, 0, 0
        while True:
            if self._wants_all(first_no + done):
                index = done
            else:
                while following < len(chosen) and chosen[following] < done:
                    following += 1
                index = chosen[following] if following < len(chosen) else len(lines)
                while row < len(rows) and rows[row].indexes[-1] < done:
                    row += 1
                if row < len(rows) and rows[row].indexes[-1] < index:
                    moments = rows[row].indexes
                    entry = bisect_left(moments, done)
                    if not pipeline.failures_open():
                        pipeline.moments(rows[row], entry, first_no, at_s)
                        done = moments[-1] + 1
                        continue
                    index = moments[entry]
            if index >= len(lines):
                return self._leave(lines, len(lines), len(block))
            worked = index in picked.worked
            if kinds[index] < STEADY or not self._steady_line(lines[index], first_no + index, at_s, worked):
                self._line(lines[index], first_no + index, at_s, worked)
            if pipeline.fresh_trouble:
                pipeline.fresh_trouble = False
                self._keep_before(lines, index, first_no)
            done = index + 1
            if self._prefilter is not prefilter:
                return self._leave(lines, done, len(block))

    def _keep_before(self, lines: BlockLines, index: int, first_no: int) -> None:
        """Remembers what stood before a line that states a failure; the first ones and the latest ones."""
        kept = self._state.before_trouble
        if len(kept) >= _CONTEXTS:
            del kept[list(kept)[_CONTEXTS // 2]]
        earlier = [
            *self._state.tail[-_CONTEXT_LINES:],
            *map(_last_segment, lines.before(index, _CONTEXT_LINES)),
        ]
        texts = (clean(raw)[:300] for raw in earlier[-_CONTEXT_LINES:])
        kept[str(first_no + index)] = [text for text in texts if text]

    def _leave(self, lines: BlockLines, count: int, size: int) -> int:
        """Accounts for `count` lines that are done; how many bytes of the block they were."""
        state = self._state
        whole = count == len(lines)
        ended = count - 1 if whole else count
        if ended:
            state.tail = [*state.tail, *map(_last_segment, lines.before(ended, _TAIL_LINES))][-_TAIL_LINES:]
        state.lf_lines += ended
        state.open_line = whole and (not lines.block.endswith(b"\n") or (state.open_line and not ended))
        return size if whole else sum(map(len, lines.cut[:ended])) + count

    def _steady_line(self, raw: bytes, no: int, at_s: float | None, worked: bool) -> bool:
        """A decode or prefill line on the short way; False when it needs the long one."""
        pipeline = self._state.pipeline
        if pipeline.failures_open():
            return False
        found = self._prefilter.read_steady(raw, worked=worked)
        if found is None:
            return False
        stamp_s = pipeline.clock.read(found.stamp_source, found.stamp)
        pipeline.steady(Line("", no, "", "", "", found.rank, "", stamp_s, at_s), found.event)
        return True

    def _line(self, raw: bytes, no: int, at_s: float | None, worked: bool) -> None:
        """One physical line. What CRs separate in it is judged piece by piece, as if it had come so."""
        if b"\r" not in raw:
            self._piece(raw, no, at_s, worked)
            return
        for piece in raw.split(b"\r"):
            if piece and (self._wants_all(no) or self._prefilter.kind(piece) != NOTHING):
                self._piece(piece, no, at_s, worked=False)

    def _piece(self, raw: bytes, no: int, at_s: float | None, worked: bool) -> None:
        pipeline = self._state.pipeline
        for line, found in read_line(raw, no, at_s, pipeline.clock, pipeline.shapes):
            pipeline.line(line, found, self._dialects, worked=worked)
        if pipeline.settled != self._settled:
            self._use_dialects()

    def _wants_all(self, no: int) -> bool:
        """Whether the next line matters whatever it holds: a traceback is open, or times need their first stamp."""
        pipeline = self._state.pipeline
        return pipeline.failures.hungry or (pipeline.clock.now_s is None and no <= _STAMP_SEARCH_LINES)

    # ------------------------------------------------------------------ reading out

    def reading(
        self,
        now_s: float | None = None,
        *,
        dead: bool = False,
        exit_code: int | None = None,
        stop_asked: bool = False,
        gpu: GpuActivity | None = None,
    ) -> Reading:
        """What the log says now. `now_s` is on the clock of `feed`'s `at_s`; with it, silence and stall are told.

        `dead`: the process is known to be gone. Changes nothing: it can be asked at any time, at any rate.
        """
        state = self._state
        pipeline = state.pipeline
        pending = bytes(state.split.pending)
        if pending.strip():
            pipeline = load_state(Pipeline, dump(pipeline))
            self._peek(pipeline, pending, complete=state.split.cr_held or dead)
        log_now_s = self._log_now_s(pipeline, pending)
        reading = build_reading(
            pipeline,
            log_now_s=log_now_s,
            now_s=now_s,
            arrived_at_s=state.arrived_at_s,
            dead=dead,
            exit_code=exit_code,
            stop_asked=stop_asked,
            gpu=gpu,
            key=self._key,
            history=self._history,
            basis=state.basis,
            lines=state.lf_lines + (1 if pending or state.open_line or state.split.cr_held else 0),
            size=state.size_bytes,
        )
        if reading.failure is not None:
            before = state.before_trouble.get(str(reading.failure.line_no), ())
            reading = replace(reading, failure=replace(reading.failure, before=tuple(before)))
        return reading

    def _log_now_s(self, pipeline: Pipeline, pending: bytes) -> float | None:
        """The log's time at its end: the last stamp, also of a line that meant nothing."""
        for raw in (pending, *reversed(self._state.tail)):
            at = stamp_of(raw, pipeline.clock, pipeline.shapes) if raw else None
            if at is not None:
                return at
        return pipeline.clock.now_s

    def _peek(self, pipeline: Pipeline, pending: bytes, *, complete: bool) -> None:
        """What stands behind the last separator, as far as it is whole."""
        if self._prefilter.kind(pending[:LINE_CAP_BYTES]) == NOTHING and not pipeline.failures.hungry:
            return
        no = self._state.lf_lines + 1
        for line, found in read_line(
            pending, no, self._state.arrived_at_s, pipeline.clock, pipeline.shapes, complete=complete
        ):
            pipeline.line(line, found, self._dialects)

    # ------------------------------------------------------------------ checkpoints

    def checkpoint(self) -> dict[str, Any]:
        """The whole state as JSON values; with `offset`, all that a new console needs to go on."""
        saved = dump(self._state)
        assert isinstance(saved, dict)
        return saved

    @classmethod
    def resume(
        cls, checkpoint: dict[str, Any], *, key: StartKey | None = None, history: History | None = None
    ) -> Reader:
        """Goes on from `checkpoint`. Raises ValueError for one of another version: read from the start then."""
        if checkpoint.get("format") != _FORMAT:
            raise ValueError("a checkpoint of another version")
        reader = cls(key=key, history=history)
        reader._state = load_state(_State, checkpoint)
        reader._use_dialects()
        return reader


@cache
def _prefilter(engines: tuple[str, ...]) -> Prefilter:
    """Shared by all readers: what it remembers is true of any log, and there are as many as sets of engines."""
    dialects = load_all(engines)
    literals = [*ALWAYS, *(literal for dialect in dialects for literal in dialect.literals)]
    steady: Steady | None = getattr(dialects[0], "steady", None) if len(dialects) == 1 else None
    return Prefilter(literals, steady)


def _last_segment(raw: bytes) -> bytes:
    """What stands behind the last CR of a line, capped: the same, wherever the line was cut on arrival."""
    return raw.rpartition(b"\r")[2][:_TAIL_LINE_BYTES]


def read_bytes(data: bytes, *, dead: bool = False, exit_code: int | None = None, engine: str | None = None) -> Reading:
    """The reading of a whole log at once."""
    reader = Reader(engine=engine)
    reader.feed(data)
    return reader.reading(dead=dead, exit_code=exit_code)
