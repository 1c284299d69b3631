"""Which decode and prefill lines of a busy SGLang make a difference, found without decoding them.

A server under load prints little else, by the million. `Serving` keeps the last `KEPT_WINDOWS` windows of a rank and
whether idle time came before each. So of the decode lines between two other lines only the last few of a rank
matter, with what stands between them; before those only the moments count at which work began or ended.
"""

from __future__ import annotations

import re

from specconsole.core.reading.events import Busy, Idle, Prefill, Window
from specconsole.core.reading.prefilter import LOOK, STEADY, Brief, Picked, SteadyRead
from specconsole.core.reading.serving import IDLE_GAP_S, KEPT_WINDOWS
from specconsole.core.reading.stamps import Stamp, of_date

# `[2026-11-29 14:13:08 DP0 TP0] Decode batch, #running-req: 8, #token: 620, ...`, without its digits
_TEMPLATE = re.compile(
    rb"(?:^|\W)\[-- ::(?:[.,])?(?: [A-Z][A-Z_]*)*\] (Decode|Prefill) batch(?: \[\])?[.,] #(?:running-req|new-seq): "
)
_PLAIN = b"[-- ::] "
_PLAIN_DECODE, _PLAIN_PREFILL = STEADY + 1, STEADY + 2
"""Lines with nothing before the stamp and no rank in it: everything stands at a known place."""
_STAMP_END = 20
_MAX_PREFIX_BYTES = 160
_UNKNOWN, _WORK, _PROBE, _PROMPTED, _IDLING = range(5)
"""What a rank is known to be at: decoding, answering health probes alone, with a prompt and no decode line yet, or done
with all requests."""
_KEPT = KEPT_WINDOWS + 1
_EMPTY = b"#running-req: 0,"
_HOLDS_NOTHING = b"token: 0,"


class _Rank:
    """What one rank did since the last line of another kind."""

    __slots__ = ("decodes", "firsts", "last", "marks", "moments", "others", "stamp_at", "state", "text_at", "work")

    def __init__(self, stamp_at: int, text_at: int) -> None:
        self.stamp_at = stamp_at
        self.text_at = text_at
        self.clear()

    def clear(self) -> None:
        self.state = _UNKNOWN
        self.last = -1
        self.work = -1
        """Its last line that shows requests being worked on."""
        self.decodes: list[int] = []
        """Decode lines with requests running."""
        self.moments: list[tuple[int, Brief]] = []
        """Where work began or ended."""
        self.firsts: list[int] = []
        """Lines that came before anything told what they belong to."""
        self.others: list[int] = []
        """Prompts behind a pause, and decode lines of an empty cache."""
        self.marks: list[int] = []
        """Work of which only the time counts: the last before a pause, before probes, before idling."""


class SteadyLines:
    """See `core.reading.prefilter.Steady`."""

    def kind(self, template: bytes) -> int:
        found = _TEMPLATE.search(template)
        if found is None or b"\x1b" in template or not template.isascii():
            return LOOK
        if not template.startswith(_PLAIN):
            return STEADY
        return _PLAIN_DECODE if found[1] == b"Decode" else _PLAIN_PREFILL

    def pick(self, lines: list[bytes], kinds: list[int]) -> Picked:
        chosen: list[int] = []
        brief: dict[int, Brief] = {}
        ranks: dict[bytes, _Rank] = {}
        plain = _Rank(1, _STAMP_END + 2)
        for i, kind in enumerate(kinds):
            if not kind:
                continue
            line = lines[i]
            if kind > STEADY:
                # The common case, without a call: a busy rank goes on with what it does.
                if plain.state == _WORK and _EMPTY not in line:
                    plain.work = i
                    if kind == _PLAIN_DECODE:
                        (plain.others if _HOLDS_NOTHING in line else plain.decodes).append(i)
                else:
                    _take(plain, i, lines)
            elif kind == STEADY:
                begin, end = _span(line)
                if end < 0:
                    # No date, or a longer wrapper: every line counts.
                    _flush(ranks, plain, chosen, brief)
                    chosen.append(i)
                    continue
                name = line[begin + _STAMP_END : end]
                rank = ranks.get(name)
                if rank is None:
                    rank = ranks[name] = _Rank(begin + 1, end + 2)
                rank.stamp_at, rank.text_at = begin + 1, end + 2
                _take(rank, i, lines)
            else:
                _flush(ranks, plain, chosen, brief)
                chosen.append(i)
        _flush(ranks, plain, chosen, brief)
        return Picked(chosen, brief)

    def read(self, raw: bytes, brief: Brief | None) -> SteadyRead | None:
        begin, end = _span(raw)
        if end < 0 or b"[" in raw[end:] or not raw.isascii():
            return None
        name = raw[begin + _STAMP_END : end]
        if (name and name[:1] != b" ") or b"PP" in name:
            return None
        rank = name[1:].decode() or None
        decode = raw[end + 2 : end + 3] == b"D"
        event: Window | Prefill | Busy | Idle
        try:
            stamp = Stamp("date", _seconds(raw, begin + 1))
            if brief is not None:
                return SteadyRead(rank, "sglang", stamp, _briefly(brief, rank))
            running = int(_field(raw, b"#running-req: ", end) or b"")
            if decode:
                event = Window(
                    _number(_field(raw, b", accept len: ", end)),
                    _number(_field(raw, b", gen throughput (token/s): ", end)),
                    running,
                    _count(_field(raw, b", #queue-req: ", end)),
                    _number(_field(raw, b", token usage: ", end) or _field(raw, b", full token usage: ", end)),
                    _group(rank),
                    empty=_number(_field(raw, b"#token: ", end) or _field(raw, b"#full token: ", end)) == 0,
                )
            else:
                event = Prefill(
                    0 if _is_probe(raw) else max(2, int(_field(raw, b"#new-token: ", end) or b"")),
                    running,
                    _count(_field(raw, b", #queue-req: ", end)),
                    _number(_field(raw, b", token usage: ", end) or _field(raw, b", full token usage: ", end)),
                    _group(rank),
                )
        except ValueError:
            return None
        return SteadyRead(rank, "sglang", stamp, event)


def _take(rank: _Rank, i: int, lines: list[bytes]) -> None:
    """Sorts one line of a rank into what it may matter for."""
    line = lines[i]
    rank.last = i
    empty = _EMPTY in line
    decode = line[rank.text_at] == 68  # D
    if decode and rank.state in (_UNKNOWN, _PROBE) and _HOLDS_NOTHING in line:
        # After probes it is theirs, else a window like others: `Serving` knows.
        (rank.others if rank.state else rank.firsts).append(i)
        return
    if empty and (decode or _is_probe(line)):
        if decode or rank.state != _PROBE:
            rank.moments.append((i, "idle"))
            rank.marks.append(rank.work)
        rank.state = _IDLING if decode else _PROBE
        return
    if not decode:
        if rank.state not in (_WORK, _PROMPTED):
            rank.state = _PROMPTED
            rank.moments.append((i, "prompt"))
        elif empty and _pause(lines[rank.work], line, rank.stamp_at):
            rank.marks.append(rank.work)
            rank.others.append(i)
    else:
        if rank.state != _WORK:
            rank.state = _WORK
            rank.moments.append((i, "decodes"))
        (rank.others if _HOLDS_NOTHING in line else rank.decodes).append(i)
    rank.work = i


def _span(line: bytes) -> tuple[int, int]:
    """Where SGLang's own prefix begins and its `] ` stands, also behind a short wrapper; an end of -1 for nowhere."""
    begin = 0 if line[:3] == b"[20" else line.find(b"[20", 0, _MAX_PREFIX_BYTES)
    if begin >= 0 and line[begin + 11 : begin + 12] != b" ":  # a job platform's own stamp comes first
        begin = line.find(b"[20", begin + 1, _MAX_PREFIX_BYTES)
    if begin < 0:
        return begin, -1
    return begin, line.find(b"] ", begin + _STAMP_END, begin + _MAX_PREFIX_BYTES)


def _is_probe(line: bytes) -> bool:
    """A prompt of one new token a request, none of it cached, on an empty server."""
    if b"#cached-token: 0," not in line or _EMPTY not in line:
        return False
    if b"#new-seq: 1," in line:
        return b"#new-token: 1," in line
    return _field(line, b"#new-seq: ", 0) == _field(line, b"#new-token: ", 0)


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


def _flush(ranks: dict[bytes, _Rank], plain: _Rank, chosen: list[int], brief: dict[int, Brief]) -> None:
    """The lines that matter, of all ranks, in their order."""
    active = [rank for rank in (plain, *ranks.values()) if rank.last >= 0 or rank.work >= 0]
    picked: set[int] = set()
    for rank in active:
        cut = rank.decodes[-_KEPT] if len(rank.decodes) >= _KEPT else -1
        whole = {*rank.decodes[-_KEPT:], *rank.firsts, *(i for i in rank.others if i > cut)}
        for i, what in rank.moments:
            if i < cut and len(active) == 1:
                brief[i] = what
            picked.add(i)
        marks = {i for i in (*rank.marks, rank.work) if i > cut} - whole - picked
        brief.update((i, "worked") for i in marks)
        picked |= whole | marks
        if rank.last not in picked and rank.last > rank.work:
            # Probes behind probes, or their decode line: nothing new, but the last that the rank said.
            picked.add(rank.last)
        rank.clear()
    chosen += sorted(picked)


def _briefly(brief: Brief, rank: str | None) -> Prefill | Busy | Idle:
    if brief == "worked":
        return Prefill(2, 1, None, None, _group(rank))
    return Idle() if brief == "idle" else Busy(prompt=brief == "prompt")


_DAYS: dict[bytes, float] = {}


def _seconds(raw: bytes, at: int) -> float:
    """Of `2026-11-29 14:13:08` at an offset; raises ValueError for what is no stamp."""
    day = raw[at : at + 10]
    base = _DAYS.get(day)
    if base is None:
        if len(_DAYS) > 64:
            _DAYS.clear()
        base = _DAYS[day] = of_date(int(day[0:4]), int(day[5:7]), int(day[8:10]), 0.0).seconds
    return base + int(raw[at + 11 : at + 13]) * 3600 + int(raw[at + 14 : at + 16]) * 60 + int(raw[at + 17 : at + 19])


def _field(raw: bytes, key: bytes, start: int) -> bytes | None:
    at = raw.find(key, start)
    if at < 0:
        return None
    at += len(key)
    end = raw.find(b",", at)
    return raw[at:end] if end >= 0 else raw[at:]


def _number(text: bytes | None) -> float | None:
    return None if text is None else float(text)


def _count(text: bytes | None) -> int | None:
    return None if text is None else int(text)


def _group(rank: str | None) -> str:
    if rank is None or "DP" not in rank:
        return ""
    return next((part for part in rank.split(" ") if part[:2] == "DP"), "")
