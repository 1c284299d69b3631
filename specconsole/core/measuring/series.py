"""What the plots show: named lines of points, from results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specconsole.core.measuring.metrics import METRICS
from specconsole.core.measuring.result import Result


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Plot:
    plot_id: str
    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]


PLOT_IDS = ("throughput", "decode", "pareto", "acceptance")


def plots(rows: Sequence[Result], wanted: Sequence[str] = PLOT_IDS) -> tuple[Plot, ...]:
    """Those of `wanted` that there is anything to draw for."""
    return tuple(plot for name in wanted if (plot := _plot(rows, name)).lines)


def _plot(rows: Sequence[Result], name: str) -> Plot:
    if name == "throughput":
        lines = tuple(Line(r.name, _by_load(r, "output_tok_s")) for r in rows)
        return _of(name, "Output throughput", "requests at once", "tok/s", lines)
    if name == "decode":
        lines = tuple(Line(r.name, _by_load(r, "decode_tok_s")) for r in rows)
        return _of(name, "Decode speed of a request", "requests at once", "tok/s", lines)
    if name == "pareto":
        lines = tuple(Line(r.name, _pareto(r)) for r in rows)
        title = "Throughput against the speed that one request sees"
        return _of(name, title, "decode tok/s of a request", "output tok/s of all", lines)
    lines = tuple(Line(r.name, _positions(r)) for r in rows)
    return _of(name, "Acceptance by position", "position in the draft", "% accepted", lines)


def _of(name: str, title: str, x: str, y: str, lines: tuple[Line, ...]) -> Plot:
    return Plot(name, title, x, y, tuple(line for line in lines if line.points))


def _mean(result: Result, load: float, metric_id: str) -> float | None:
    values = [v for point in result.at(load) if (v := METRICS[metric_id].value(point)) is not None]
    return sum(values) / len(values) if values else None


def _by_load(result: Result, metric_id: str) -> tuple[tuple[float, float], ...]:
    return tuple((load, v) for load in result.loads if (v := _mean(result, load, metric_id)) is not None)


def _pareto(result: Result) -> tuple[tuple[float, float], ...]:
    found = []
    for load in result.loads:
        x, y = _mean(result, load, "decode_tok_s"), _mean(result, load, "output_tok_s")
        if x is not None and y is not None:
            found.append((x, y))
    return tuple(found)


def _positions(result: Result) -> tuple[tuple[float, float], ...]:
    """Mean over the points that tell them."""
    told = [p.acceptance.per_position_ratio for p in result.points if p.acceptance.per_position_ratio]
    if not told:
        return ()
    width = max(map(len, told))
    columns = [[one[n] for one in told if n < len(one)] for n in range(width)]
    return tuple((float(n + 1), 100.0 * sum(c) / len(c)) for n, c in enumerate(columns))
