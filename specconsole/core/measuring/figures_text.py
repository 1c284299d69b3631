"""Numbers of results as short text, the same on every screen and in every export."""

from __future__ import annotations

from specconsole.core.measuring.compare import Cell
from specconsole.core.measuring.gpu_clocks import gpu_text
from specconsole.core.measuring.marks import MARKS
from specconsole.core.measuring.result import MeasuredPoint, Result

TENDENCY_SIGNS = {"better": "↑", "worse": "↓", "noise": "≈", "unknown": " "}


def load_text(load: float, result: Result | None = None) -> str:
    """`C=4`, or `2.5/s` for an arrival rate."""
    if result is not None and all(p.concurrency is None for p in result.points):
        return f"{load:g}/s"
    return f"C={load:g}"


def number(value: float | None) -> str:
    """Three or four digits that matter; `–` for unknown."""
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 100 else f"{value:.3g}"


def cell_text(cell: Cell) -> str:
    """`1,234 ±2%↑`: the mean, its noise, and which way it differs from the baseline (≈: no difference seen)."""
    if cell.value is None:
        return "–"
    text = number(cell.value.mean)
    width = cell.value.half_width_ratio
    text += f" ±{100 * width:.0f}%" if width is not None and width >= 0.005 else " ±0%" if width is not None else ""
    if cell.against_baseline is not None:
        text += TENDENCY_SIGNS[cell.tendency]
    signs = "".join(MARKS[mark].sign for mark in cell.marks if mark in MARKS)
    return f"{text} {signs}".rstrip()


def point_text(point: MeasuredPoint) -> str:
    """One point's numbers in two lines' worth of text."""
    m, a = point.metrics, point.acceptance
    parts = [
        f"{number(m.output_tok_s)} tok/s out, {number(m.total_tok_s)} in all, {number(m.request_rate_per_s)} answers/s",
        f"TTFT p50 {_ms(m.ttft_s.p50)} p99 {_ms(m.ttft_s.p99)}",
        f"TPOT p50 {_ms(m.tpot_s.p50)} p99 {_ms(m.tpot_s.p99)}",
        f"ITL p99 {_ms(m.itl_s.p99)}",
        f"E2E p50 {_ms(m.e2e_s.p50)}",
        f"{m.succeeded} answers, running {number(m.running_mean)}",
    ]
    if m.failed:
        parts.append(f"{m.failed} failed ({', '.join(f'{n} {kind}' for kind, n in m.failures.items())})")
    if a.accept_length is not None:
        text = f"accept length {a.accept_length:.2f} by {a.source}"
        if a.engine_figure is not None:
            text += f" (the engine's own {a.engine_figure:.2f}: {a.engine_figure_is})"
        if a.per_position_ratio:
            text += f", by position {' '.join(f'{100 * r:.0f}%' for r in a.per_position_ratio)}"
        parts.append(text)
    elif a.why_not:
        parts.append(f"acceptance unknown: {a.why_not}")
    parts += [f"{name} {number(value)} (probe, mean)" for name, value in point.probes.items()]
    if told := gpu_text(point.gpus):
        parts.append(told)
    return "; ".join(parts)


def _ms(value_s: float | None) -> str:
    return "–" if value_s is None else f"{number(value_s * 1e3)} ms"
