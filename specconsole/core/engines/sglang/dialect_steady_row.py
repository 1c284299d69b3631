"""Which steady lines make a difference where one rank printed them all.

Only lines with no running request tell more than that work goes on. They are found in the block's bytes; what lies
between two of them is known from the kinds of lines alone, and most lines are never cut out of the block.
"""

from __future__ import annotations

from specconsole.core.engines.sglang.dialect_steady_fields import (
    EMPTY,
    HOLDS_NOTHING,
    STAMP_END,
    group_of,
    is_probe,
    seconds,
    span,
)
from specconsole.core.reading.block_lines import BlockLines
from specconsole.core.reading.prefilter import LOOK, STEADY, Moment, Moments, Picked
from specconsole.core.reading.serving import IDLE_GAP_S, KEPT_WINDOWS

UNKNOWN, WORK, PROBE, PROMPTED, IDLING = range(5)
"""What a rank is known to be at: decoding, answering health probes alone, with a prompt and no decode line yet, or done
with all requests."""
KEPT = KEPT_WINDOWS + 1
_MAX_PROBES = 64
_STEADY_ONES = bytes(kind >= STEADY for kind in range(256))


class IrregularError(Exception):
    """A line is not what the others of the block promise: look at them one by one."""


def pick_row(lines: BlockLines, kinds: bytes, name: bytes, decode: int) -> Picked:
    """See `Steady.pick`. All steady lines have `name` behind their stamp; decode lines are of kind `decode`, prefill
    lines of the one above. Raises `IrregularError`."""
    row = _Row(lines, kinds, name, decode)
    block, find, line_start = lines.block, lines.block.find, lines.block.rfind
    ones_between, probes = row.ones.find, row.probes
    head = STAMP_END + len(name)
    look = kinds.find(LOOK)
    index = at = 0  # of the line that was seen last
    seen = -1
    pos = find(EMPTY)
    while pos >= 0:
        start = line_start(b"\n", at, pos) + 1 or at
        if start > at:
            index += block.count(b"\n", at, start)
            at = start
        while 0 <= look < index:
            row.end(look)
            look = kinds.find(LOOK, look + 1)
        if index > seen and kinds[index] >= STEADY:
            seen = index
            if row.state == PROBE and block[at + head : pos] in probes and ones_between(1, row.next, index) < 0:
                row.next = index + 1  # one more of many
            else:
                row.empty(index, at, pos)
        pos = find(EMPTY, pos + len(EMPTY))
    while look >= 0:
        row.end(look)
        look = kinds.find(LOOK, look + 1)
    row.end(len(kinds))
    row.picked.indexes.pop()  # the end is no line
    return row.picked


class _Row:
    """What the rank did since the last line of another kind."""

    __slots__ = (
        "begin", "block", "decode", "firsts", "kinds", "lines", "marks", "moments", "name", "next",
        "no_windows", "ones", "others", "picked", "probes", "state", "tail", "work",
    )  # fmt: skip

    def __init__(self, lines: BlockLines, kinds: bytes, name: bytes, decode: int) -> None:
        self.lines, self.block = lines, lines.block
        self.kinds = kinds
        self.ones = kinds.translate(_STEADY_ONES)
        """1 for a steady line, else 0."""
        self.name, self.tail = name, name + b"] "
        self.decode = decode
        self.picked = Picked([])
        self.probes: set[bytes] = set()
        """What stands between the stamp and the number of running requests in probes that were seen."""
        self._clear(0)

    def _clear(self, begin: int) -> None:
        self.begin = self.next = begin
        self.state = UNKNOWN
        self.work = -1
        """Its last line that shows requests being worked on."""
        self.moments: list[tuple[int, Moment, bytes]] = []
        """Where work began or ended."""
        self.firsts: list[int] = []
        """Lines that came before anything told what they belong to."""
        self.others: list[int] = []
        """Prompts behind a pause, and decode lines of an empty cache behind probes."""
        self.marks: list[int] = []
        """Work of which only the time counts: the last before a pause, before probes, before idling."""
        self.no_windows: set[int] = set()
        """Decode lines that may be none of work."""

    def empty(self, i: int, at: int, pos: int) -> None:
        """The next line with no request running: it begins at offset `at`, and says so at `pos`."""
        if self.next < i:
            self._work(self.next, i)
        self.next = i + 1
        self.lines.known(i, at)
        raw = self.block[at:pos]  # all that a prompt's kind depends on
        state = self.state
        if self.kinds[i] == self.decode:
            self.no_windows.add(i)
            if state in (UNKNOWN, PROBE) and HOLDS_NOTHING in self.lines[i]:
                # After probes it is theirs, else a window like others: `Serving` knows.
                (self.others if state else self.firsts).append(i)
                return
            self.moments.append((i, "idle", raw))
            self.marks.append(self.work)
            self.state = IDLING
        elif is_probe(raw):
            if state != PROBE:
                self.moments.append((i, "idle", raw))
                self.marks.append(self.work)
                self.state = PROBE
                if len(self.probes) < _MAX_PROBES:
                    self.probes.add(raw[STAMP_END + len(self.name) :])
        else:
            if state not in (WORK, PROMPTED):
                self.state = PROMPTED
                self.moments.append((i, "prompt", raw))
            elif self._paused(raw):
                self.marks.append(self.work)
                self.others.append(i)
            self.work = i

    def _paused(self, raw: bytes) -> bool:
        """Whether there may have been idle time before a prompt."""
        before = self.lines[self.work]
        if before[:STAMP_END] == raw[:STAMP_END] and raw.startswith(b"[20"):
            return False
        return abs(self._seconds(raw) - self._seconds(before)) >= IDLE_GAP_S

    def _work(self, begin: int, end: int) -> None:
        """Lines with requests running, or of no meaning."""
        last = self.ones.rfind(1, begin, end)
        if last < 0:
            return
        if self.state != WORK:
            self._begin_work(begin, end)
        if self.state in (WORK, PROMPTED):
            self.work = last

    def _begin_work(self, begin: int, end: int) -> None:
        i = self.ones.find(1, begin, end)
        while i >= 0:
            raw = self.lines[i]
            if self.kinds[i] == self.decode:
                if self.state not in (UNKNOWN, PROBE) or HOLDS_NOTHING not in raw:
                    self.state = WORK
                    self.moments.append((i, "decodes", raw))
                    return
                (self.others if self.state else self.firsts).append(i)
                self.no_windows.add(i)
                i = self.ones.find(1, i + 1, end)
                continue
            if self.state != PROMPTED:
                self.state = PROMPTED
                self.moments.append((i, "prompt", raw))
            i = self.kinds.find(self.decode, i + 1, end)

    def _seconds(self, raw: bytes) -> float:
        try:
            if raw.startswith(self.tail, STAMP_END):
                return seconds(raw[1:STAMP_END])
            begin, end = span(raw)
            if end < 0 or raw[begin + STAMP_END : end] != self.name:
                raise IrregularError
            return seconds(raw[begin + 1 : begin + STAMP_END])
        except ValueError:
            raise IrregularError from None

    def end(self, i: int) -> None:
        """A line of another kind, which is looked at: adds what matters before it, and it."""
        if self.next < i:
            self._work(self.next, i)
        last = self.ones.rfind(1, self.begin, i)
        if last >= 0:
            self._add(i, last)
        self.picked.indexes.append(i)
        self._clear(i + 1)

    def _add(self, end: int, last: int) -> None:
        decodes: list[int] = []
        at = end
        while len(decodes) < KEPT and (at := self.kinds.rfind(self.decode, self.begin, at)) >= 0:
            if at not in self.no_windows:
                decodes.append(at)
        cut = decodes[-1] if len(decodes) == KEPT else -1
        whole = {*decodes, *self.firsts, *(i for i in self.others if i > cut)}
        early = [(i, what, self._seconds(raw)) for i, what, raw in self.moments if i < cut]
        whole.update(i for i, _, _ in self.moments[len(early) :])
        marks = {i for i in (*self.marks, self.work) if i > cut} - whole
        self.picked.worked.update(marks)
        whole |= marks
        if last > self.work:
            # Probes behind probes, or their decode line: nothing new, but the last that the rank said.
            whole.add(last)
        self.picked.indexes.extend(sorted(whole))
        if early:
            rank = self.name[1:].decode() or None
            self.picked.moments.append(
                Moments(rank, group_of(rank), "sglang", "date", *map(list, zip(*early, strict=True)))
            )
