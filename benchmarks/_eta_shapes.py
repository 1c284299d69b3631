"""SYNTHETIC bars with known truth, for shapes that the recorded starts hold few of.

Item times are drawn from a seeded generator and printed as tqdm prints them: at most ten updates a second, whole
seconds, and the exponentially smoothed rate that makes its `remaining` wrong after a slow first item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from random import Random

from specconsole.core.reading.bars import Bar, find_bars


@dataclass(frozen=True, slots=True)
class RecordedBar:
    """One whole bar: what was printed when, and when it was done."""

    name: str
    synthetic: bool
    updates: tuple[tuple[float, Bar], ...]
    """(arrival in seconds, update), in order."""
    start_s: float
    """From here on it is measured: when the bar that ran to its end began."""
    turns_at_s: float = 0.0
    """From here on nothing changes that could not have been seen: before it, no estimate can know what comes."""

    @property
    def end_s(self) -> float:
        return next(at for at, bar in self.updates if bar.done == bar.total)


@dataclass(frozen=True, slots=True)
class Guess:
    """One estimate beside the truth; all in seconds."""

    name: str
    moment: float
    foreseeable: bool
    """False before a change that nothing announced (synthetic shapes only, where the turn is known)."""
    truth_s: float
    whole_s: float
    low_s: float | None
    mid_s: float | None
    high_s: float | None
    own_s: float | None
    """The bar's own remaining time at that moment, less what has passed since it was printed."""

    @property
    def covered(self) -> bool:
        return self.low_s is not None and self.high_s is not None and self.low_s <= self.truth_s <= self.high_s

    @property
    def error_ratio(self) -> float | None:
        return None if self.mid_s is None else abs(self.mid_s - self.truth_s) / self.whole_s

    @property
    def own_error_ratio(self) -> float | None:
        return None if self.own_s is None else abs(self.own_s - self.truth_s) / self.whole_s


Shape = tuple[list[float], float]
"""Seconds of each item, and the time from which on the future is like the past."""


def page_cache_then_cold(rng: Random) -> Shape:
    """The first part of the shards comes from memory, the rest from disk, three to eight times slower."""
    total, cached = rng.choice([30, 49, 64, 126]), rng.uniform(0.1, 0.4)
    fast = rng.uniform(0.4, 4.0)
    slow = fast * rng.uniform(3.0, 8.0)
    times_s = [_noisy(rng, fast if i < cached * total else slow, 0.15) for i in range(total)]
    return times_s, sum(times_s[: ceil(cached * total) + 2])


def steady_cold(rng: Random) -> Shape:
    """A network disk: every shard alike, with some spread."""
    pace = rng.uniform(1.0, 40.0)
    spread = rng.choice([0.05, 0.2, 0.4])
    return [_noisy(rng, pace, spread) for _ in range(rng.choice([13, 49, 96, 163]))], 0.0


def bursts(rng: Random) -> Shape:
    """64 shards read by eight threads: nothing for a while, then eight at once."""
    pace = rng.uniform(0.5, 8.0)
    return [_noisy(rng, 8 * pace, 0.25) if i % 8 == 0 else _noisy(rng, pace / 50, 0.5) for i in range(64)], 0.0


def slow_first_item(rng: Random) -> Shape:
    """Graph capture on a machine without compiled kernels: the first takes minutes, the others a fraction."""
    total, first, rest = rng.choice([12, 23, 36, 58]), rng.uniform(5.0, 240.0), rng.uniform(0.05, 1.5)
    return [first, *(_noisy(rng, rest * (1.3 - 0.6 * i / total), 0.25) for i in range(1, total))], first


def slow_then_fast(rng: Random) -> Shape:
    """Cold at first, then the read-ahead or another rank has filled the cache."""
    total, pace = rng.choice([30, 55, 80]), rng.uniform(2.0, 12.0)
    switch = rng.randint(3, total // 3)
    times_s = [_noisy(rng, pace if i < switch else pace / rng.uniform(6, 14), 0.2) for i in range(total)]
    return times_s, sum(times_s[: switch + 2])


def stragglers(rng: Random) -> Shape:
    """Mostly steady; one item in fifteen takes five to ten times as long (a busy disk, a compiled kernel)."""
    pace = rng.uniform(0.3, 6.0)
    times_s = [
        _noisy(rng, pace * (rng.uniform(5, 10) if rng.random() < 1 / 15 else 1.0), 0.15)
        for _ in range(rng.choice([40, 64, 96]))
    ]
    return times_s, 0.0


SHAPES: tuple[Callable[[Random], Shape], ...] = (
    page_cache_then_cold, steady_cold, bursts, slow_first_item, slow_then_fast, stragglers,
)  # fmt: skip


def synthetic_bars(count_each: int, seed: int = 1) -> Iterator[RecordedBar]:
    """`count_each` bars of each shape, and as many that are restarted half-way (the target's bar, then the draft's)."""
    for shape in SHAPES:
        for index in range(count_each):
            rng = Random(f"{seed} {shape.__name__} {index}")
            times_s, turns_at_s = shape(rng)
            desc = "Capturing batches" if shape is slow_first_item else "Loading safetensors checkpoint shards"
            updates = tuple(print_like_tqdm(times_s, desc=desc))
            # Of a slow first item's bar only the way after that item is measured: before it nothing can be known.
            start_s = turns_at_s if shape is slow_first_item else 0.0
            yield RecordedBar(f"{shape.__name__}-{index}", True, updates, start_s, turns_at_s)
    for index in range(count_each):
        rng = Random(f"{seed} restarted {index}")
        broken, _ = steady_cold(rng)
        before = list(print_like_tqdm(broken[: len(broken) // 2], total=len(broken)))
        again_s = before[-1][0] + rng.uniform(1, 20)
        after = tuple((again_s + at, bar) for at, bar in print_like_tqdm([t * rng.uniform(0.1, 0.5) for t in broken]))
        yield RecordedBar(f"restarted-{index}", True, (*before, *after), again_s)


def print_like_tqdm(
    item_s: list[float], total: int | None = None, desc: str = "Loading safetensors checkpoint shards"
) -> Iterator[tuple[float, Bar]]:
    """(time, update) pairs of a tqdm bar in SGLang's and vLLM's format over items that take `item_s` seconds."""
    total = total or len(item_s)
    count_average, time_average = 0.0, 0.0
    now_s, printed_s, printed_done, steps = 0.0, 0.0, 0, 0
    yield 0.0, _parsed(f"{desc}:   0% Completed | 0/{total} [00:00<?, ?it/s]")
    for done, seconds in enumerate(item_s, 1):
        now_s += seconds
        if now_s - printed_s < 0.1 and done < total:
            continue
        steps += 1
        count_average = 0.7 * count_average + 0.3 * (done - printed_done)
        time_average = 0.7 * time_average + 0.3 * (now_s - printed_s)
        rate = count_average / time_average if done < total else done / now_s
        left_s = (total - done) / rate
        pace = f"{rate:5.2f}it/s" if rate >= 1 else f"{1 / rate:5.2f}s/it"
        text = f"{100 * done // total:3d}% Completed | {done}/{total} [{_span(now_s)}<{_span(left_s)}, {pace}]"
        yield now_s, _parsed(f"{desc}: {text}")
        printed_s, printed_done = now_s, done


def _parsed(text: str) -> Bar:
    (bar,) = find_bars(text)
    return bar


def _span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def _noisy(rng: Random, mean: float, relative: float) -> float:
    return mean * max(0.05, rng.lognormvariate(0.0, relative))
