"""Speeds that were measured before, for the time budget of a run to come."""

from __future__ import annotations

from collections.abc import Sequence

from specconsole.core.measuring.result import Result


def speeds_seen(results: Sequence[Result], name: str, workload: str) -> dict[int, float]:
    """Output tok/s by concurrency of the newest results of this profile, under this workload before others.

    A concurrency between two known ones is interpolated by nothing: what was not measured is not there.
    """
    found: dict[int, float] = {}
    mine = [r for r in results if r.name == name and not r.imported_from]
    for result in sorted(mine, key=lambda r: (r.conditions.workload == workload, r.started_at_s)):
        for point in result.points:
            if point.concurrency is not None and point.metrics.output_tok_s:
                found[point.concurrency] = point.metrics.output_tok_s
    return found
