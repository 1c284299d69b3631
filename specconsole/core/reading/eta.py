"""How long a bar still takes: a track of its updates, and the estimate drawn from it.

The track is a small serialisable value that grows by one bar update at a time; the same updates give the same track
however the bytes were cut. The clock is the bar's own elapsed time; log stamps where the bar has none; arrival times
last. A bar's own `remaining` is never used: it is the smoothed rate times what is left, and one slow first item
makes it wrong a thousandfold. How sure an estimate is comes from how uneven the bar was so far (`eta_spread`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from specconsole.core.reading.bars import Bar
from specconsole.core.reading.eta_spread import pace_s, remaining_range
from specconsole.core.reading.model import EtaRange, Progress

ClockName = Literal["bar", "stamps", "arrival"]

_TQDM_SMOOTHING = 0.3
"""tqdm's default weight of the newest update in its exponential average (tqdm 4.x, `smoothing`)."""
_MAX_POINTS = 64
_KEPT_HEAD = 2
_KEPT_RECENT = 32


@dataclass(frozen=True, slots=True)
class BarTrack:
    """What one bar has said so far."""

    desc: str
    unit: str
    done: int
    total: int | None
    clock: ClockName
    points: tuple[tuple[int, float], ...]
    """(count, seconds on `clock`) at each change of the count, oldest first, thinned in the middle. On the bar's
    clock the first is (0, 0.0) unless the bar began elsewhere."""
    printed_rate_per_s: float | None = None
    slowest_wait_s: float = 0.0
    """The longest time between two changes of the count, the first one left out: kernels compile in it."""
    changes: int = 0
    last_change_s: float | None = None
    """Arrival time of the newest change of the count; None where arrivals were not given."""
    ema_steps: int = 0
    ema_count: float = 0.0
    ema_seconds: float = 0.0
    ema_done: int = 0

    @property
    def complete(self) -> bool:
        return self.total is not None and self.done >= self.total

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` takes them back."""
        return asdict(self) | {"points": [list(point) for point in self.points]}

    @classmethod
    def from_json(cls, shape: dict[str, Any]) -> BarTrack:
        points = tuple((int(done), float(at_s)) for done, at_s in shape["points"])
        return cls(**{**shape, "points": points})


def track(
    state: BarTrack | None, bar: Bar, *, stamp_s: float | None = None, arrival_s: float | None = None
) -> BarTrack:
    """The track after one more update.

    `stamp_s` is the log stamp in force and `arrival_s` the time of receipt, given only for bytes that came while the
    reader was caught up; both on any scale that does not jump. A bar of another name or total, or one whose count or
    clock went back, starts a new track.
    """
    if state is None or _is_other(state, bar):
        return _begun(bar, stamp_s, arrival_s)
    if not bar.finished and bar.unit == "percent" and state.unit != "percent":
        return state  # the head of an update of this bar whose counts have not arrived yet
    if bar.desc and not state.desc:
        state = replace(state, desc=bar.desc, unit=bar.unit)
    if bar.done == state.done:
        return state if bar.printed_rate_per_s is None else replace(state, printed_rate_per_s=bar.printed_rate_per_s)
    at_s, state = _clock_time(state, bar, stamp_s, arrival_s)
    if at_s is None:
        return replace(state, done=bar.done, last_change_s=_first_known(arrival_s, state.last_change_s))
    last_at_s = state.points[-1][1] if state.points else at_s
    at_s = max(at_s, last_at_s)
    wait_s = at_s - last_at_s
    return replace(
        state,
        done=bar.done,
        points=_thinned((*state.points, (bar.done, at_s))),
        printed_rate_per_s=bar.printed_rate_per_s or state.printed_rate_per_s,
        slowest_wait_s=max(state.slowest_wait_s, wait_s) if state.changes else 0.0,
        changes=state.changes + 1,
        last_change_s=_first_known(arrival_s, state.last_change_s),
    )


def rate_per_s(state: BarTrack) -> float | None:
    """Units per second at the moment, the same pace that the estimate uses; None before the first update.

    The rate that the bar prints is an exponential average that one slow item poisons for a dozen updates: it stands
    in only where there are no times.
    """
    pace = pace_s(state.points, unit=state.unit)
    return state.printed_rate_per_s if pace is None else 1.0 / pace


def bar_eta(state: BarTrack, *, now_s: float | None = None) -> EtaRange | None:
    """Seconds to the bar's end.

    `now_s` is on the scale of the arrivals; None reads the newest update as the present. None comes back for a bar
    without a total, before the first item, and after a single slow item that says nothing about the others.
    """
    if state.total is None:
        return None
    if state.complete:
        return EtaRange(0.0, 0.0, 0.0, state.clock)
    waiting_s = 0.0
    if now_s is not None and state.last_change_s is not None:
        waiting_s = max(0.0, now_s - state.last_change_s)
    found = remaining_range(
        state.points, left=state.total - state.done, unit=state.unit, waiting_s=waiting_s,
        slowest_wait_s=state.slowest_wait_s,
    )  # fmt: skip
    return EtaRange(*found, basis=state.clock) if found else None


def progress(state: BarTrack, *, now_s: float | None = None) -> Progress:
    """The contract's progress object of this bar."""
    return Progress(state.done, state.total, state.unit, rate_per_s(state), bar_eta(state, now_s=now_s))


def _is_other(state: BarTrack, bar: Bar) -> bool:
    if bar.desc and state.desc and bar.desc != state.desc:
        return True
    if not bar.finished and bar.unit == "percent" and state.unit != "percent":
        return False
    if bar.total != state.total or bar.done < state.done:
        return True
    if state.clock == "bar" and bar.elapsed_s is not None and state.points:
        return bar.elapsed_s + 1.0 < state.points[-1][1]
    return False


def _begun(bar: Bar, stamp_s: float | None, arrival_s: float | None) -> BarTrack:
    if bar.elapsed_s is not None:
        start: tuple[tuple[int, float], ...] = ((0, 0.0),)
        clock: ClockName = "bar"
    elif stamp_s is not None:
        start, clock = ((bar.done, stamp_s),), "stamps"
    elif arrival_s is not None:
        start, clock = ((bar.done, arrival_s),), "arrival"
    else:
        start, clock = (), "bar"
    blank = BarTrack(bar.desc, bar.unit, 0, bar.total, clock, start, last_change_s=arrival_s)
    if clock != "bar" or bar.done == 0:
        return replace(blank, done=bar.done, printed_rate_per_s=bar.printed_rate_per_s)
    return track(blank, bar, stamp_s=stamp_s, arrival_s=arrival_s)


def _clock_time(
    state: BarTrack, bar: Bar, stamp_s: float | None, arrival_s: float | None
) -> tuple[float | None, BarTrack]:
    """When this count was reached, on the track's clock; None where this update does not say."""
    if state.clock == "stamps":
        return stamp_s, state
    if state.clock == "arrival":
        return arrival_s, state
    if bar.elapsed_s is None:
        return None, state
    state, refined_s = _refined(state, bar, bar.elapsed_s)
    return refined_s, state


def _refined(state: BarTrack, bar: Bar, elapsed_s: float) -> tuple[BarTrack, float]:
    """The bar's elapsed time to a fraction of a second.

    tqdm prints whole seconds, but the rate beside them is the ratio of two exponential averages (of counts and of
    seconds), so the newest wait follows from the sequence of rates. The result never leaves the printed second.
    """
    last_s = state.points[-1][1] if state.points else 0.0
    rate = bar.printed_rate_per_s
    if rate is None or rate <= 0:
        return state, max(last_s, elapsed_s)
    keep, step = 1.0 - _TQDM_SMOOTHING, state.ema_steps + 1
    count = keep * state.ema_count + _TQDM_SMOOTHING * (bar.done - state.ema_done)
    seconds = count / rate
    wait_s = max(0.0, (seconds - keep * state.ema_seconds) / _TQDM_SMOOTHING)
    since_s = last_s if state.ema_done == state.done else _time_of(state.points, state.ema_done)
    refined_s = since_s + wait_s
    if bar.total is not None and bar.done >= bar.total and not elapsed_s <= refined_s < elapsed_s + 1.0:
        refined_s = bar.done / rate  # printed at the bar's end: the plain mean
    refined_s = min(max(refined_s, last_s, elapsed_s), max(last_s, elapsed_s + 0.999))
    wait_s = refined_s - since_s
    return replace(
        state,
        ema_steps=step,
        ema_count=count,
        ema_seconds=keep * state.ema_seconds + _TQDM_SMOOTHING * wait_s,
        ema_done=bar.done,
    ), refined_s


def _time_of(points: tuple[tuple[int, float], ...], done: int) -> float:
    for at_done, at_s in reversed(points):
        if at_done <= done:
            return at_s
    return 0.0


def _thinned(points: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
    if len(points) <= _MAX_POINTS:
        return points
    middle = points[_KEPT_HEAD:-_KEPT_RECENT]
    return points[:_KEPT_HEAD] + middle[1::2] + points[-_KEPT_RECENT:]


def _first_known(*times_s: float | None) -> float | None:
    return next((t for t in times_s if t is not None), None)
