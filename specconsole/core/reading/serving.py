"""Windows of serving to metrics: the last full window, summed over data-parallel ranks, idle time left out.

What is kept per rank is its last windows only, so that a run of ordinary decode lines has the same result whether
all of them are looked at or the first and the last `KEPT_WINDOWS` of each rank (the pipeline relies on it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from specconsole.core.reading.events import Busy, Event, Idle, Line, Prefill, Window
from specconsole.core.reading.model import Metrics

KEPT_WINDOWS = 4
"""How many windows of a rank are kept, and how many `speculation-useless` looks back."""
IDLE_GAP_S = 2.0
"""A pause of at least this between two pieces of work is idle time (stamps have whole seconds)."""
INTERVAL_S = 90.0
"""Ranks whose last window is older than this, seen from the newest, are not part of the sum."""
MAX_GROUPS = 1024
USELESS_BELOW = 1.2


@dataclass(slots=True)
class Seen:
    """One window."""

    line_no: int
    stamp_s: float | None
    full: bool
    accept_length: float | None = None
    gen_throughput_tok_s: float | None = None
    running: int | None = None
    queued: int | None = None
    kv_usage: float | None = None


@dataclass(slots=True)
class Group:
    """One data-parallel rank."""

    windows: list[Seen] = field(default_factory=list)
    idle: bool = False
    """The next window spans idle time."""
    work_stamp_s: float | None = None
    """Last prefill or decode line."""
    running: int | None = None
    probing: bool = False
    """Health probes came to an empty server, and nothing else since."""


@dataclass(slots=True)
class Serving:
    """State of the reducer; plain data."""

    groups: dict[str, Group] = field(default_factory=dict)
    last_group: str = ""
    """Whose window was opened last."""
    windows: int = 0
    """0 none, 1 one, 2 more: an exact count is not needed and would forbid skipping lines."""

    def begin(self) -> None:
        """The server became ready: what comes first spans the time before it."""
        for group in self.groups.values():
            group.idle = True

    def see(self, line: Line, event: Event, now_s: float | None, was_ready: bool) -> str | None:
        """One event; answers `serving` or `ready` where it tells whether requests are being worked on."""
        if isinstance(event, Window):
            return self._window(line, event, now_s, was_ready)
        if isinstance(event, Prefill):
            return self._prefill(event, now_s, was_ready)
        if isinstance(event, Busy):
            return "serving"
        if isinstance(event, Idle):
            for group in self.groups.values():
                group.idle, group.running = True, 0
            return "ready"
        return None

    def _group(self, name: str, was_ready: bool) -> Group:
        group = self.groups.get(name)
        if group is None:
            group = Group(idle=was_ready)
            if len(self.groups) < MAX_GROUPS:
                self.groups[name] = group
        return group

    def _prefill(self, event: Prefill, now_s: float | None, was_ready: bool) -> str | None:
        group = self._group(event.group, was_ready)
        probe = event.new_tokens <= 1 and event.running == 0
        if probe:
            group.running, group.probing = 0, True
            return "ready" if not self._any_running() else None
        group.probing = False
        if event.running == 0:
            gap = None if now_s is None or group.work_stamp_s is None else now_s - group.work_stamp_s
            # The first work line that is seen, taken in by an empty server, ends idle time too.
            first = not group.windows and group.work_stamp_s is None
            if first or (gap is not None and gap >= IDLE_GAP_S):
                group.idle = True
        group.work_stamp_s = now_s if now_s is not None else group.work_stamp_s
        group.running = max(1, event.running)
        return "serving"

    def _window(self, line: Line, event: Window, now_s: float | None, was_ready: bool) -> str | None:
        joins = not event.opens and not event.group
        group = self._group(self.last_group if joins else event.group, was_ready)
        if group.probing and event.empty:
            return None  # forty health probes make a decode line too (seen with SGLang 0.5.17)
        group.probing = False
        said = (event.accept_length, event.gen_throughput_tok_s, event.running, event.queued, event.kv_usage)
        if not event.opens and group.windows:
            last = group.windows[-1]
            self._fill(last, event)
        elif any(value is not None for value in said):
            spans_idle = event.spans_idle if event.spans_idle is not None else group.idle
            seen = Seen(line.no, now_s, not spans_idle)
            self._fill(seen, event)
            group.windows = [*group.windows[1 - KEPT_WINDOWS :], seen]
            self.last_group = event.group
            group.idle = False
            self.windows = min(2, self.windows + 1)
        if event.running is None:
            return None
        group.running = event.running
        if event.running > 0:
            group.work_stamp_s = now_s if now_s is not None else group.work_stamp_s
            return "serving"
        group.idle = True
        return "ready" if not self._any_running() else None

    @staticmethod
    def _fill(seen: Seen, event: Window) -> None:
        if event.accept_length is not None:
            seen.accept_length = event.accept_length
        if event.gen_throughput_tok_s is not None:
            seen.gen_throughput_tok_s = event.gen_throughput_tok_s
        if event.running is not None:
            seen.running = event.running
        if event.queued is not None:
            seen.queued = event.queued
        if event.kv_usage is not None:
            seen.kv_usage = event.kv_usage

    def at_work(self, name: str) -> None:
        """Requests were being worked on in lines that are not looked at."""
        if name in self.groups:
            self.groups[name].probing = False

    def others_running(self, group: str) -> bool:
        """Whether any other data-parallel rank is at work."""
        return any(other.running for name, other in self.groups.items() if name != group)

    def _any_running(self) -> bool:
        return any(group.running for group in self.groups.values())

    # ------------------------------------------------------------------ results

    def metrics(self) -> Metrics | None:
        """The last full window; None before any window.

        Before the first full one it is the newest, without its rate: accept length, counts of requests and use
        of the KV cache hold for a window that spans idle time too.
        """
        groups = self._current()
        if not groups:
            return None
        full = [window for window in map(_last_full, groups) if window is not None]
        windows = full or [group.windows[-1] for group in groups]
        rates = [w.gen_throughput_tok_s for w in full if w.gen_throughput_tok_s is not None]
        accepts = [(w.accept_length, w.running) for w in windows]
        if all(length is None for length, _ in accepts):
            # A short request may end without a draft: the window before it still says how well drafts fit.
            accepts = [(w.accept_length, w.running) for w in map(_last_drafted, groups) if w is not None]
        return Metrics(
            accept_length=_weighted(accepts),
            gen_throughput_tok_s=round(sum(rates), 4) if rates else None,
            running=_total([w.running for w in windows]),
            queued=_total([w.queued for w in windows]),
            kv_usage=_mean([w.kv_usage for w in windows]),
        )

    @property
    def rhythm_s(self) -> float | None:
        """The longest time between two decode lines of uninterrupted work, of those kept; None before two."""
        waits = [
            later.stamp_s - earlier.stamp_s
            for group in self.groups.values()
            for earlier, later in pairwise(group.windows)
            if later.full and earlier.stamp_s is not None and later.stamp_s is not None
        ]
        return max(waits, default=None)

    @property
    def worked_at_s(self) -> float | None:
        """The log's time at the newest line of work; None without a stamped one."""
        return max((g.work_stamp_s for g in self.groups.values() if g.work_stamp_s is not None), default=None)

    @property
    def last_line_no(self) -> int:
        """Line of the newest window; 0 before any."""
        return max((group.windows[-1].line_no for group in self.groups.values() if group.windows), default=0)

    @property
    def accepts(self) -> bool:
        """Whether any of the last windows had an accept length."""
        return any(window.accept_length is not None for group in self.groups.values() for window in group.windows)

    def useless(self) -> tuple[int, float] | None:
        """Line and accept length when the last windows all show that drafts are hardly ever accepted."""
        groups = self._current()
        lows: list[tuple[int, float]] = []
        for group in groups:
            lengths = [(w.line_no, w.accept_length) for w in group.windows if w.accept_length is not None]
            if not lengths or any(length >= USELESS_BELOW for _, length in lengths):
                return None
            lows.append((lengths[-1][0], lengths[-1][1]))
        if not lows or sum(len(group.windows) for group in groups) < 2:
            return None
        return max(lows)

    def _current(self) -> list[Group]:
        groups = [group for group in self.groups.values() if group.windows]
        stamps = [group.windows[-1].stamp_s for group in groups]
        newest = max((s for s in stamps if s is not None), default=None)
        if newest is None:
            return groups
        return [g for g, s in zip(groups, stamps, strict=True) if s is None or newest - s <= INTERVAL_S]


def _last_full(group: Group) -> Seen | None:
    return next((window for window in reversed(group.windows) if window.full), None)


def _last_drafted(group: Group) -> Seen | None:
    return next((window for window in reversed(group.windows) if window.accept_length is not None), None)


def _weighted(pairs: list[tuple[float | None, int | None]]) -> float | None:
    known = [(value, max(1, weight or 1)) for value, weight in pairs if value is not None]
    if not known:
        return None
    return round(sum(value * weight for value, weight in known) / sum(weight for _, weight in known), 4)


def _total(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 5) if known else None
