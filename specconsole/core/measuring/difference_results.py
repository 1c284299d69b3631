"""The measured part of two launches' difference: what both answered the same workload with, at the same load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from specconsole.core.launching.difference import DifferenceRow, Unit
from specconsole.core.measuring.compare import Cell, compare
from specconsole.core.measuring.metrics import METRICS
from specconsole.core.measuring.result import Result
from specconsole.core.measuring.rows import merge_launches

SHOWN: tuple[tuple[str, Unit], ...] = (
    ("output_tok_s", "tok/s"), ("accept_length", "tokens/step"), ("step_ms", "ms"), ("ttft_p50_ms", "ms"),
    ("tpot_p50_ms", "ms"),
)  # fmt: skip
_WORDS = {"better": "better", "worse": "worse", "noise": "within the noise", "unknown": "one run each says no more"}


def results_of(results: Sequence[Result], launch_id: str) -> tuple[Result, ...]:
    """What was measured of one launch, the oldest first; a result that spans launches gives its points of this one."""
    found = []
    for result in results:
        points = tuple(point for point in result.points if point.launch_id == launch_id)
        if points:
            found.append(replace(result, points=points))
    return tuple(found)


def result_rows(left: Sequence[Result], right: Sequence[Result]) -> tuple[tuple[DifferenceRow, ...], tuple[str, ...]]:
    """(rows, notes) of the newest results of each common workload."""
    if not left and not right:
        return (), ("neither was measured",)
    if not left or not right:
        return (), (f"the {'right' if right else 'left'} one alone was measured",)
    rows: list[DifferenceRow] = []
    notes: list[str] = []
    for one, other in _pairs(left, right):
        found, why_not = _pair_rows(one, other)
        rows += found
        notes += why_not
    if not rows and not notes:
        notes.append("both were measured, with no workload in common")
    return tuple(rows), tuple(notes)


def _pairs(left: Sequence[Result], right: Sequence[Result]) -> list[tuple[Result, Result]]:
    def by_workload(results: Sequence[Result]) -> dict[str, Result]:
        ordered = sorted(results, key=lambda r: r.started_at_s)
        return {r.conditions.workload_hash or r.conditions.workload: r for r in merge_launches(ordered)}

    ours, theirs = by_workload(left), by_workload(right)
    return [(ours[key], theirs[key]) for key in ours if key in theirs]


def _pair_rows(left: Result, right: Result) -> tuple[list[DifferenceRow], list[str]]:
    # Both may be of one result (its repeats span two launches): the table tells rows by id.
    one, other = replace(left, result_id="left"), replace(right, result_id="right")
    rows: list[DifferenceRow] = []
    notes: list[str] = []
    for metric_id, unit in SHOWN:
        table = compare([one, other], METRICS[metric_id], baseline_id="left")
        if not table.rows[1].comparable:
            why = "; ".join(f"{d.what}: {d.why or 'differs'}" for d in table.rows[1].unfair if d.weight == "refuses")
            return rows, [f"{left.conditions.workload}: not compared, {why}"]
        for a, b in zip(table.rows[0].cells, table.rows[1].cells, strict=True):
            row = _row((left, right), metric_id, unit, a, b)
            if row is not None:
                rows.append(row)
    rows.sort(key=lambda row: row.key)
    return rows, notes


_OF_DRAFTS = ("accept_length", "step_ms")
"""What a server that does not draft has none of."""


def _row(results: tuple[Result, Result], metric_id: str, unit: Unit, left: Cell, right: Cell) -> DifferenceRow | None:
    result = results[0]
    one = left.value.mean if left.value is not None else None
    other = right.value.mean if right.value is not None else None
    if one is None and other is None:
        return None
    at = next((p for p in result.points if p.load == left.load), None)
    load = f"{left.load:g}/s" if at is not None and at.concurrency is None else f"C={left.load:g}"
    none = [metric_id in _OF_DRAFTS and each.conditions.speculative is False for each in results]
    known = (one is not None or none[0], other is not None or none[1])
    remark = ""
    if right.against_baseline is not None:
        remark = f"{right.against_baseline.ratio:.2f} times, {_WORDS[right.tendency]}"
    differs = None if not all(known) else one != other and right.tendency != "noise"
    key = f"{result.conditions.workload} {load} {METRICS[metric_id].label}"
    return DifferenceRow("results", key, _short(one), _short(other), *known, differs, unit, remark)


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
