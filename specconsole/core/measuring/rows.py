"""Which results belong side by side, and which of them is the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specconsole.core.measuring.result import Result


def same_workload(results: Sequence[Result], workload: str | None = None) -> tuple[Result, ...]:
    """Those that sent what the newest sent (of `workload`, when it is given), the oldest first."""
    fitting = [r for r in results if workload is None or r.conditions.workload == workload]
    if not fitting:
        return ()
    newest = max(fitting, key=lambda r: r.started_at_s).conditions
    return tuple(
        r
        for r in fitting
        if (r.conditions.workload_hash or r.conditions.workload) == (newest.workload_hash or newest.workload)
    )


def merge_launches(results: Sequence[Result]) -> tuple[Result, ...]:
    """Results of one profile under one set of conditions become one row, whose repeats span its launches.

    The row keeps the newest's id; the order is that of each row's first result.
    """
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        c = result.conditions
        key = (
            result.name, result.imported_from, c.host, c.engine, c.version, c.workload_hash, c.workload, c.cache,
            c.through_tunnel, c.simulated, c.num_steps, c.running_cap, repr(sorted(c.settings.items())),
        )  # fmt: skip
        groups.setdefault(key, []).append(result)
    return tuple(_merged(group) for group in groups.values())


def _merged(group: Sequence[Result]) -> Result:
    newest = max(group, key=lambda r: r.started_at_s)
    if len(group) == 1:
        return newest
    ordered = sorted(group, key=lambda r: r.started_at_s)
    points = []
    seen: dict[float, int] = {}
    for result in ordered:
        for point in result.points:
            number = seen.get(point.load, 0)
            seen[point.load] = number + 1
            points.append(replace(point, repeat=number))
    notes = dict.fromkeys(r.note for r in ordered if r.note)
    return replace(
        newest,
        points=tuple(points),
        started_at_s=ordered[0].started_at_s,
        note="; ".join(notes),
        until_ci_ratio=max((r.until_ci_ratio for r in ordered if r.until_ci_ratio), default=None),
    )


def baseline_of(rows: Sequence[Result], pinned: str | None = None, results: Sequence[Result] = ()) -> str | None:
    """The pinned row's id when it is there; else the newest that runs without speculation; None without one.

    `results` are the rows before they were merged: one that was pinned is found in the row that it went into.
    """
    if pinned is not None and (row := row_with(rows, pinned, results)) is not None:
        return row.result_id
    plain = [row for row in rows if row.conditions.speculative is False]
    return max(plain, key=lambda r: r.started_at_s).result_id if plain else None


def row_with(rows: Sequence[Result], result_id: str, results: Sequence[Result] = ()) -> Result | None:
    """The row that is a result, or that it was merged into; None when it is in none of them."""
    if (same := next((row for row in rows if row.result_id == result_id), None)) is not None:
        return same
    wanted = next((result for result in results if result.result_id == result_id), None)
    if wanted is None or not wanted.points:
        return None
    first = replace(wanted.points[0], repeat=0)
    return next((row for row in rows if any(replace(point, repeat=0) == first for point in row.points)), None)


def chosen_rows(results: Sequence[Result], workload: str | None = None) -> tuple[Result, ...]:
    """What a table shows when nobody says: the newest workload's results, a row a profile and conditions."""
    return merge_launches(same_workload(results, workload))


def unique(results: Sequence[Result]) -> tuple[Result, ...]:
    """Each result once, in order."""
    return tuple({result.result_id: result for result in results}.values())
