"""How busy a launch's own GPUs are: what a stall is judged by."""

from __future__ import annotations

from collections.abc import Iterable

from specconsole.core.reading.stall import GpuActivity
from specconsole.core.views.host import HostView

FRESH_S = 15.0
"""Figures older than this say nothing of the present: the tool hangs, or the link is down."""
_RECENT = 3
"""Means of the history beside the newest figure: one reading of 0 % between two kernels is not idleness."""


def gpu_activity(host: HostView | None, launch_id: str, now_s: float) -> GpuActivity | None:
    """The busiest of the GPUs that processes of this launch hold, over the last fifteen seconds or so.

    None where that is not known: no GPU tool, old figures, hidden pids, or no GPU held yet. `now_s` is the console's
    monotonic clock.
    """
    if host is None or host.stale_since_s is not None or host.gpu_as_of_s is None:
        return None
    if now_s - host.gpu_as_of_s > FRESH_S:
        return None
    ours = [gpu for gpu in host.gpus if not gpu.lost and any(p.launch_id == launch_id for p in gpu.processes)]
    if not ours:
        return None
    return GpuActivity(
        _most(figure for gpu in ours for figure in _recent(gpu.util_pct, gpu.util_history_pct)),
        _most(figure for gpu in ours for figure in _recent(gpu.memory_util_pct, gpu.memory_util_history_pct)),
    )


def _recent(now_pct: float | None, history_pct: tuple[float | None, ...]) -> tuple[float | None, ...]:
    return (now_pct, *history_pct[-_RECENT:])


def _most(figures: Iterable[float | None]) -> float | None:
    return max((figure for figure in figures if figure is not None), default=None)
