"""Time stamps as logs print them, and the one clock of a log that is made of them.

A file may carry several kinds of stamps: with and without a date, in two time zones, counted from the start. Each
kind has its own offset, found when it first appears, so that durations are right within and across kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_DAY_S = 86_400
_DAYS_BEFORE = (0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}


@dataclass(frozen=True, slots=True)
class Stamp:
    """Seconds on the scale of its kind: `date` since the year 2000, `month` since the year's begin, `clock` since
    midnight, `run` since the process began."""

    kind: str
    seconds: float


def month_number(name: str) -> int:
    """1 to 12 for an English short name, 0 for anything else."""
    return _MONTHS.get(name, 0)


def of_date(year: int, month: int, day: int, seconds: float) -> Stamp:
    """`year` 0 where the stamp has none (vLLM, syslog). Zones are left out: only differences are used."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = _DAYS_BEFORE[month] + day + (1 if leap and month > 2 else 0) if 1 <= month <= 12 else day
    if year:
        before = year - 1
        # Days since 2000-01-01, so that microseconds survive in a float.
        days += before * 365 + before // 4 - before // 100 + before // 400 - 730_119
        return Stamp("date", days * _DAY_S + seconds)
    return Stamp("month", days * _DAY_S + seconds)


def of_clock(text: str) -> float:
    """Seconds of `HH:MM:SS` with an optional fraction behind `.` or `,`."""
    return int(text[0:2]) * 3600 + int(text[3:5]) * 60 + float(text[6:].replace(",", "."))


@dataclass(slots=True)
class LogClock:
    """Turns stamps into seconds since the first one."""

    offsets: dict[str, float] = field(default_factory=dict)
    """Source of stamps -> what to add to them."""
    last: dict[str, float] = field(default_factory=dict)
    """Source -> its last raw value."""
    now_s: float | None = None
    """The latest time that was seen; None before the first stamp."""
    newest_source: str = ""

    def read(self, source: str, stamp: Stamp) -> float:
        """The log's time of a stamp from `source` (a prefix form: two programs may write in two zones)."""
        key = f"{source}/{stamp.kind}"
        raw = stamp.seconds
        if key in self.last:
            raw = self._unwrapped(stamp.kind, raw, self.last[key])
        else:
            self.offsets[key] = self._first_offset(key, stamp)
        self.last[key] = raw
        at = raw + self.offsets[key]
        if self.now_s is not None and not -2 * _DAY_S < at - self.now_s < 60 * _DAY_S:
            # A clock that was set, or a start much later in the same file: go on from here.
            self.offsets[key] = self.now_s - raw
            at = self.now_s
        self.now_s = at if self.now_s is None else max(self.now_s, at)
        self.newest_source = key
        return at

    def read_row(self, source: str, kind: str, row: list[float]) -> list[float]:
        """The same for several stamps of one source in a row, given as `Stamp.seconds`."""
        key = f"{source}/{kind}"
        if kind == "date" and self.now_s is not None and key in self.last:
            offset = self.offsets[key]
            low, high = min(row) + offset, max(row) + offset
            latest = max(self.now_s, high)
            if low - latest > -2 * _DAY_S and high - self.now_s < 60 * _DAY_S:  # none of them a jump
                self.last[key], self.now_s, self.newest_source = row[-1], latest, key
                return [raw + offset for raw in row]
        return [self.read(source, Stamp(kind, raw)) for raw in row]

    def _unwrapped(self, kind: str, raw: float, last: float) -> float:
        if kind == "clock":
            days = round((last - raw) / _DAY_S)
            return raw + days * _DAY_S
        if kind == "month" and raw < last - 180 * _DAY_S:
            return raw + 365 * _DAY_S * max(1, round((last - raw) / (365 * _DAY_S)))
        return raw

    def _first_offset(self, key: str, stamp: Stamp) -> float:
        if self.now_s is None:
            return -stamp.seconds
        other = self.newest_source
        if other and stamp.kind != "run" and not other.endswith("/run"):
            # Same zone, most likely, if the times of day agree to the hour; then the gap is real.
            gap = (stamp.seconds - self.last[other]) % _DAY_S
            gap = gap - _DAY_S if gap > _DAY_S / 2 else gap
            if -60 <= gap <= 1500:
                return self.last[other] + self.offsets[other] + gap - stamp.seconds
        return self.now_s - stamp.seconds
