"""Plots of results as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specconsole.core.measuring.series import Plot

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MARKERS = ("braille", "sd", "*", "o", "x", "+")


def plot_text(plot: Plot, *, width: int, height: int = 16) -> list[str]:
    """One plot without colours; lines are told apart by their marker."""
    import plotext

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(max(40, width), height)
    ticks: list[float] = []
    for number, line in enumerate(plot.lines):
        xs, ys = [x for x, _ in line.points], [y for _, y in line.points]
        ticks += xs
        plotext.plot(xs, ys, label=line.name, marker=_MARKERS[number % len(_MARKERS)])
    plotext.title(f"{plot.title} [{plot.y_label}]")
    plotext.xlabel(plot.x_label)
    plotext.ylim(0, None)
    shown: Sequence[float] = sorted(set(ticks))
    if plot.plot_id != "pareto" and len(shown) <= 12:
        plotext.xticks(list(shown), [f"{x:g}" for x in shown])
    text = _COLOURS.sub("", str(plotext.build()))
    plotext.clear_figure()
    return [line.rstrip() for line in text.splitlines()]
