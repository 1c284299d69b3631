"""Which steady lines make a difference where several ranks print theirs among each other: told line by line."""

from __future__ import annotations

from specconsole.core.engines.sglang.dialect_steady_fields import (
    EMPTY,
    HOLDS_NOTHING,
    STAMP_END,
    group_of,
    is_probe,
    span,
)
from specconsole.core.engines.sglang.dialect_steady_row import IDLING, KEPT, PROBE, PROMPTED, UNKNOWN, WORK
from specconsole.core.reading.block_lines import BlockLines
from specconsole.core.reading.prefilter import LOOK, STEADY, Picked
from specconsole.core.reading.serving import IDLE_GAP_S


def pick_ranks(lines: BlockLines, kinds: bytes) -> Picked:
    """See `Steady.pick`."""
    cut = lines.cut
    picked = Picked([])
    run = _Run()
    of_name = run.of_name
    for i, kind in enumerate(kinds):
        if not kind:
            continue
        line = cut[i]
        if kind > STEADY and line.startswith(b"[20"):
            begin, end = 0, line.find(b"] ", STAMP_END)
        else:
            begin, end = span(line) if kind > LOOK else (0, -1)
        if end < 0:
            # Another line; or no date, or a longer wrapper: every line counts.
            run.end(picked)
            picked.indexes.append(i)
            continue
        name = line[begin + STAMP_END : end]
        group = of_name.get(name) or run.group(name)
        if group.state == WORK and EMPTY not in line:
            # The common case: who is busy goes on with what it does.
            group.work = run.worked[name] = i
            if line.startswith(b"D", end + 2):
                (group.others if HOLDS_NOTHING in line else group.decodes).append(i)
        else:
            group.take(i, cut, begin + 1, decode=line.startswith(b"D", end + 2))
            (run.worked if group.work == i else run.others)[name] = i
    run.end(picked)
    return picked


class _Run:
    """Steady lines between two others."""

    def __init__(self) -> None:
        self.of_name: dict[bytes, _Group] = {}
        """The data-parallel rank to which one belongs, by what stands behind the stamp."""
        self._clear()

    def _clear(self) -> None:
        self.worked: dict[bytes, int] = {}
        """A rank's last line that shows requests being worked on, by what stands behind the stamp."""
        self.others: dict[bytes, int] = {}
        """The same of lines that show none."""
        self._groups: dict[str, _Group] = {}
        self.of_name.clear()

    def group(self, name: bytes) -> _Group:
        """The data-parallel rank to which one belongs."""
        group = self.of_name.get(name)
        if group is None:
            key = group_of(name.decode("latin-1"))
            group = self.of_name[name] = self._groups.setdefault(key, _Group())
        return group

    def end(self, picked: Picked) -> None:
        """Adds the lines that matter, in their order, and begins again."""
        looked_at: set[int] = set()
        for group in self._groups.values():
            group.end(picked, looked_at)
        for name in self.of_name:
            # The last that a rank said, if only for that.
            worked, other = self.worked.get(name, -1), self.others.get(name, -1)
            if other < worked not in looked_at:
                picked.worked.add(worked)
            looked_at.add(max(worked, other))
        picked.indexes.extend(sorted(looked_at))
        self._clear()


class _Group:
    """What one data-parallel rank did since the last line of another kind."""

    __slots__ = ("decodes", "firsts", "marks", "moments", "others", "state", "work")

    def __init__(self) -> None:
        self.state = UNKNOWN
        self.work = -1
        """Its last line that shows requests being worked on."""
        self.decodes: list[int] = []
        """Decode lines with requests running."""
        self.moments: list[int] = []
        """Where work began or ended."""
        self.firsts: list[int] = []
        """Lines that came before anything told what they belong to."""
        self.others: list[int] = []
        """Prompts behind a pause, and decode lines of an empty cache."""
        self.marks: list[int] = []
        """Work of which only the time counts: the last before a pause, before probes, before idling."""

    def take(self, i: int, lines: list[bytes], stamp_at: int, *, decode: bool) -> None:
        """Sorts one line into what it may matter for."""
        line = lines[i]
        empty = EMPTY in line
        if decode and self.state in (UNKNOWN, PROBE) and HOLDS_NOTHING in line:
            # After probes it is theirs, else a window like others: `Serving` knows.
            (self.others if self.state else self.firsts).append(i)
            return
        if empty and (decode or is_probe(line)):
            if decode or self.state != PROBE:
                self.moments.append(i)
                self.marks.append(self.work)
            self.state = IDLING if decode else PROBE
            return
        if not decode:
            if self.state not in (WORK, PROMPTED):
                self.state = PROMPTED
                self.moments.append(i)
            elif empty and _pause(lines[self.work], line, stamp_at):
                self.marks.append(self.work)
                self.others.append(i)
        else:
            if self.state != WORK:
                self.state = WORK
                self.moments.append(i)
            (self.others if HOLDS_NOTHING in line else self.decodes).append(i)
        self.work = i

    def end(self, picked: Picked, looked_at: set[int]) -> None:
        """Adds its lines that matter."""
        cut = self.decodes[-KEPT] if len(self.decodes) >= KEPT else -1
        whole = {*self.decodes[-KEPT:], *self.firsts, *self.moments, *(i for i in self.others if i > cut)}
        marks = {i for i in (*self.marks, self.work) if i > cut} - whole
        picked.worked.update(marks)
        looked_at |= whole | marks


def _pause(before: bytes, line: bytes, at: int) -> bool:
    """Whether so much time lies between two lines that the server may have been idle; True when in doubt."""
    old, new = before[at : at + 19], line[at : at + 19]
    if old == new:
        return False
    if old[:16] != new[:16]:
        return True
    try:
        return abs(int(new[17:19]) - int(old[17:19])) >= int(IDLE_GAP_S)
    except ValueError:
        return True
