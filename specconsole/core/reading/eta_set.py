"""Several bars at once: a hub download draws one a file and one for all files, interleaved on the same lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specconsole.core.reading.bars import Bar
from specconsole.core.reading.eta import BarTrack, bar_eta, rate_per_s, track
from specconsole.core.reading.model import EtaRange, Progress

_MOST = 24
"""Bars kept; a download of more files at once forgets those that moved longest ago."""


@dataclass(frozen=True, slots=True)
class BarSet:
    """The bars of one phase, the one that moved last at the end."""

    tracks: tuple[BarTrack, ...] = ()

    def with_bar(self, bar: Bar, *, stamp_s: float | None = None, arrival_s: float | None = None) -> BarSet:
        """The set after one more update of any of its bars."""
        name = bar.desc or (self.tracks[-1].desc if self.tracks else "")
        before = next((t for t in reversed(self.tracks) if t.desc in (name, "")), None)
        after = track(before, bar, stamp_s=stamp_s, arrival_s=arrival_s)
        others = tuple(t for t in self.tracks if t is not before)
        return BarSet((*others, after)[-_MOST:])

    def main(self) -> BarTrack | None:
        """The bar that stands for the phase: the count of files where there is one, else an unfinished one that
        moved last, else the last."""
        open_ones = [t for t in self.tracks if not t.complete]
        of_all = [t for t in open_ones if t.unit == "file"]
        if of_all:
            return of_all[-1]
        bars = open_ones or list(self.tracks)
        return bars[-1] if bars else None

    def progress(self, *, now_s: float | None = None) -> Progress | None:
        """Of the main bar, or, where there are only bars of single files, of all that were seen: their sum must not
        jump from file to file. Its end is not before that of any bar that still runs. None without bars."""
        main = self.main()
        if main is None:
            return None
        eta = bar_eta(main, now_s=now_s)
        for other in self.tracks:
            if other is not main and not other.complete:
                eta = _later(eta, bar_eta(other, now_s=now_s))
        parts = [t for t in self.tracks if t.unit == "byte"]
        if len(parts) < 2 or main.unit != "byte":
            return Progress(main.done, main.total, main.unit, rate_per_s(main), eta)
        totals = [t.total for t in parts if t.total is not None]
        rates = [rate for t in parts if not t.complete and (rate := rate_per_s(t)) is not None]
        return Progress(
            sum(t.done for t in parts),
            sum(totals) if len(totals) == len(parts) else None,
            "byte",
            sum(rates) if rates else None,
            eta,
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Plain JSON values; `from_json` takes them back."""
        return [t.to_json() for t in self.tracks]

    @classmethod
    def from_json(cls, shape: list[dict[str, Any]]) -> BarSet:
        return cls(tuple(BarTrack.from_json(item) for item in shape))


def _later(one: EtaRange | None, other: EtaRange | None) -> EtaRange | None:
    if one is None or other is None:
        return one  # the main bar's silence is not filled by a part's estimate
    return EtaRange(max(one.low, other.low), max(one.mid, other.mid), max(one.high, other.high), one.basis)
