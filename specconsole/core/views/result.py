"""What the window knows of measurements: immutable, built by `services`, drawn by the results pane."""

from __future__ import annotations

from typing import NamedTuple

# Named tuples: the window loads these before its first paint, and a data class takes five times as long to be made.


class ResultRow(NamedTuple):
    """One launch under one workload, over its concurrency levels."""

    name: str
    tok_s_by_concurrency: tuple[tuple[int, float | None], ...]
    """(concurrency, output tokens per second); None where the point failed or is still to come."""
    against_baseline: tuple[tuple[int, int], ...] = ()
    """(concurrency, -1 | 0 | 1): slower, no difference that the noise allows to call, faster than the baseline."""
    accept_length: float | None = None
    """Tokens per target step, bonus token included, at the pane's `detail_concurrency`."""
    step_ms: float | None = None
    breaks_even_at: str = ""
    """`2.8 · C<2`: the accept length that pays, and up to which concurrency it does; "" when unknown."""
    launch_id: str | None = None
    running: bool = False
    """A benchmark is still filling this row."""


class ResultsView(NamedTuple):
    """The table of the results pane."""

    workload: str = ""
    """What was run, for the pane's title; "" when nothing was measured."""
    concurrencies: tuple[int, ...] = ()
    detail_concurrency: int | None = None
    """The level that accept length, step time and break-even belong to."""
    rows: tuple[ResultRow, ...] = ()
    note: str = ""
    """Progress of a running benchmark, or why rows can't be compared; "" otherwise."""
