"""A launch's probes, read from its log: bytes with their arrival times in, series of numbers out. Pure.

The same bytes with the same times give the same series, however they were cut into pieces and wherever a checkpoint was
taken. A piece without any probe's literal costs one search. A line is cut at 4 KiB. What is kept of a series is
bounded: beyond `BUCKETS` buckets two neighbours become one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

from specconsole.core.launching.probe_pattern import LINE_BYTES, Probe
from specconsole.core.reading.stamps import LogClock
from specconsole.core.reading.text import clean
from specconsole.core.reading.wrappers import Shapes, unwrap

BUCKETS = 1024
_FORMAT = 1
_LINE_END = re.compile(rb"[\r\n]")


@dataclass(frozen=True, slots=True)
class Bucket:
    """One number, or the mean of several that followed each other."""

    offset: int
    """Bytes of the log before the line of the first one."""
    log_s: float | None
    """By the log's own stamps, seconds since the first line that any probe read; None without stamps."""
    at_s: float | None
    """Wall clock when it arrived; None for what was read while catching up."""
    mean: float
    low: float
    high: float
    count: int = 1


@dataclass(frozen=True, slots=True)
class Series:
    """All that is kept of one probe."""

    name: str
    buckets: tuple[Bucket, ...] = ()
    count: int = 0
    unreadable: int = 0
    """Lines that matched, and whose group was no number."""
    last: float | None = None
    total: float = 0.0

    @property
    def mean(self) -> float | None:
        """Of all numbers; None without any."""
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class _Growing:
    """A series while it grows."""

    buckets: list[Bucket] = field(default_factory=list)
    width: int = 1
    """Numbers that a full bucket holds."""
    count: int = 0
    unreadable: int = 0
    last: float | None = None
    total: float = 0.0

    def add(self, value: float, offset: int, log_s: float | None, at_s: float | None) -> None:
        self.count, self.last, self.total = self.count + 1, value, self.total + value
        if self.buckets and self.buckets[-1].count < self.width:
            self.buckets[-1] = _joined(self.buckets[-1], Bucket(offset, log_s, at_s, value, value, value))
            return
        if len(self.buckets) >= BUCKETS:
            self.buckets = [_joined(*pair) for pair in zip(self.buckets[::2], self.buckets[1::2], strict=True)]
            self.width *= 2
        self.buckets.append(Bucket(offset, log_s, at_s, value, value, value))


def _joined(first: Bucket, second: Bucket) -> Bucket:
    count = first.count + second.count
    mean = (first.mean * first.count + second.mean * second.count) / count
    return replace(first, mean=mean, low=min(first.low, second.low), high=max(first.high, second.high), count=count)


class ProbeReader:
    """Reads all probes of one launch."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        self.probes = tuple(probes)
        self._patterns = [(probe.name, re.compile(probe.pattern, re.ASCII)) for probe in self.probes]
        literals = sorted({literal for probe in self.probes for literal in probe.literals})
        # A search for a plain word is twenty times as fast as one for several with `|` between them.
        self._literals = literals
        self._of = {name: _Growing() for name, _ in self._patterns}
        self._clock = LogClock()
        self._shapes = Shapes()
        self._pending = bytearray()
        """The begin of an unfinished line."""
        self._dropped = 0
        """Bytes of it beyond the cut."""
        self.offset = 0
        """Bytes taken so far."""

    def feed(self, data: bytes, at_s: float | None = None) -> None:
        """The next bytes; `at_s` is the wall clock when they arrived, None while catching up."""
        if not self._literals or not data:
            self.offset += len(data)
            return
        begin = self.offset - len(self._pending) - self._dropped
        self.offset += len(data)
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            self._keep(data)
            return
        block = bytes(self._pending) + data[:end] if self._pending else data[:end]
        if any(literal in block for literal in self._literals):
            self._block(block, begin, at_s)
        self._pending, self._dropped = bytearray(), 0
        self._keep(data[end:])

    def _keep(self, data: bytes) -> None:
        room = max(0, LINE_BYTES - len(self._pending))
        self._pending += data[:room]
        self._dropped += len(data) - min(room, len(data))

    def gap(self, lost_bytes: int | None) -> None:
        """Bytes that were lost; None when their number is unknown."""
        self.offset += lost_bytes or 0
        self._pending, self._dropped = bytearray(), 0

    def _block(self, block: bytes, begin: int, at_s: float | None) -> None:
        places = [block.find(literal) for literal in self._literals]
        place = 0
        while True:
            for number, at in enumerate(places):
                if 0 <= at < place:
                    places[number] = block.find(self._literals[number], place)
            found = min((at for at in places if at >= 0), default=-1)
            if found < 0:
                return
            start = max(block.rfind(b"\n", place, found), block.rfind(b"\r", place, found), place - 1) + 1
            after = _LINE_END.search(block, found)
            stop = after.start() if after is not None else len(block)
            # Of a first line that began earlier, what was beyond the cut is not in the block.
            offset = begin + start + (self._dropped if start else 0)
            self._line(block[start : min(stop, start + LINE_BYTES)], offset, at_s)
            place = stop + 1

    def _line(self, raw: bytes, offset: int, at_s: float | None) -> None:
        text = clean(raw)
        log_s: float | None = None
        stamped = False
        for name, pattern in self._patterns:
            match = pattern.search(text)
            if match is None:
                continue
            if not stamped:
                stamped, log_s = True, self._stamp(raw)
            series, value = self._of[name], _number(match[1])
            if value is None:
                series.unreadable += 1
            else:
                series.add(value, offset, log_s, at_s)

    def _stamp(self, raw: bytes) -> float | None:
        """The log's time of a line that a probe reads; only such lines move this clock."""
        at: float | None = None
        for piece in unwrap(clean(raw[:512]), self._shapes):
            if piece.stamp is not None:
                at = self._clock.read(piece.stamp_source, piece.stamp)
        return at

    def series(self) -> tuple[Series, ...]:
        """As far as was read; the probes in the profile's order."""
        return tuple(
            Series(name, tuple(one.buckets), one.count, one.unreadable, one.last, one.total)
            for name, one in self._of.items()
        )

    def checkpoint(self) -> dict[str, Any]:
        """Plain values; `resume` goes on from them."""
        return {
            "format": _FORMAT,
            "patterns": {probe.name: probe.pattern for probe in self.probes},
            "offset": self.offset,
            "pending": self._pending.hex(),
            "dropped": self._dropped,
            "clock": asdict(self._clock),
            "shapes": asdict(self._shapes),
            "series": {name: asdict(one) for name, one in self._of.items()},
        }

    @classmethod
    def resume(cls, probes: Sequence[Probe], saved: Any) -> ProbeReader | None:
        """None where the saved values are of other probes, or can't be read: then the log is read again."""
        reader = cls(probes)
        try:
            if saved["format"] != _FORMAT or saved["patterns"] != {one.name: one.pattern for one in reader.probes}:
                return None
            reader.offset = int(saved["offset"])
            reader._pending = bytearray.fromhex(saved["pending"])
            reader._dropped = int(saved["dropped"])
            reader._clock = LogClock(**saved["clock"])
            reader._shapes = Shapes(**saved["shapes"])
            for name, raw in saved["series"].items():
                reader._of[name] = _Growing(**{**raw, "buckets": [Bucket(**one) for one in raw["buckets"]]})
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        return reader


def _number(text: str | None) -> float | None:
    """None for what is no finite number; `1,234.5` is one."""
    try:
        value = float((text or "").strip().replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def window_means(probes: Sequence[Probe], window: bytes) -> dict[str, float]:
    """Mean of each probe over the bytes that were written within one window; what was not printed there is left out."""
    reader = ProbeReader(probes)
    reader.feed(window + b"\n")
    return {one.name: one.mean for one in reader.series() if one.mean is not None}


def sampled(series: Series, points: int) -> tuple[float, ...]:
    """At most so many means, evenly over what was read: for a small plot."""
    values = [bucket.mean for bucket in series.buckets]
    if len(values) <= points:
        return tuple(values)
    places = [round(n * len(values) / points) for n in range(points + 1)]
    return tuple(math.fsum(values[a:b]) / (b - a) for a, b in pairwise(places) if b > a)
