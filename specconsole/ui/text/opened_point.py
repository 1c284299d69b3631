"""One measured point taken apart: where its requests lie, acceptance as it went, what stands out, and the log then."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textual.content import Content

from specconsole.core.measuring.figures_text import load_text, point_text
from specconsole.core.measuring.marks import MARKS
from specconsole.core.measuring.request_figures import (
    Outlier,
    acceptance_over_time,
    histogram,
    outliers,
    records_of,
)
from specconsole.core.measuring.requests import RequestRecord
from specconsole.core.measuring.result import MeasuredPoint, Result
from specconsole.ui.formatters import bar, fit, row, styled, wrapped

_SPARKS = "▁▂▃▄▅▆▇█"
MOST_OUTLIERS = 20


@dataclass(slots=True)
class OpenPoint:
    """The point that is looked at, and where in it."""

    result: Result
    """The row that it was opened from."""
    repeats: tuple[MeasuredPoint, ...]
    """All points of that cell."""
    place: int = 0
    """Which of the repeats."""
    requests: Sequence[Mapping[str, Any]] = ()
    chosen: int = 0
    """Which of the outliers."""
    log_lines: Sequence[str] | None = None
    """What the server's log said while the chosen one was out; None: not asked for."""
    log_first_line: int | None = None
    log_cut: bool = False
    records: tuple[RequestRecord, ...] = field(default=(), init=False)
    strange: tuple[Outlier, ...] = field(default=(), init=False)

    @property
    def point(self) -> MeasuredPoint:
        return self.repeats[self.place]

    @property
    def outlier(self) -> Outlier | None:
        return self.strange[self.chosen] if self.strange else None

    def take(self, requests: Sequence[Mapping[str, Any]]) -> None:
        """The request lines of the present repeat."""
        self.requests = requests
        self.records = records_of(requests)
        self.strange = outliers(self.records)[:MOST_OUTLIERS]
        self.chosen = 0
        self.close_log()

    def choose(self, step: int) -> None:
        """Another outlier."""
        if self.strange:
            self.chosen = max(0, min(self.chosen + step, len(self.strange) - 1))
            self.close_log()

    def close_log(self) -> None:
        self.log_lines, self.log_first_line, self.log_cut = None, None, False


def point_lines(opened: OpenPoint, width: int) -> list[Content]:
    """The whole view."""
    point, count = opened.point, len(opened.repeats)
    where = f"{opened.result.name}, {load_text(point.load, opened.result)}, repeat {opened.place + 1} of {count}"
    lines = [row((where, "bold"), ("   ← → another repeat" if count > 1 else "", "$muted"))]
    lines += [line for part in point_text(point).split("; ") for line in wrapped(part, width)]
    lines += [row((f"{MARKS[m].sign:<3}", "$warning"), MARKS[m].meaning) for m in point.all_marks if m in MARKS]
    if not opened.records:
        lines.append(styled("its requests are not kept here", "$muted"))
    else:
        lines += [*_strange(opened), *_histograms(opened.records, width), *_over_time(opened.records, width)]
    return [fit(line, width) for line in lines]


def _strange(opened: OpenPoint) -> list[Content]:
    keys = "   ↑ ↓ choose  ⏎ the log then" if opened.strange else ""
    lines = [Content(""), row(("what stands out", "bold"), (keys, "$muted"))]
    if not opened.strange:
        lines.append(styled("nothing: no failure, none far slower than the rest", "$muted"))
    for number_, outlier in enumerate(opened.strange):
        chosen = number_ == opened.chosen
        record = outlier.record
        text = f"{'▸' if chosen else ' '} request {record.body} at {record.start_s:.2f} s: {outlier.what}"
        lines.append(styled(text, "bold $warning" if chosen else "$warning"))
        if chosen and opened.log_lines is not None:
            lines += _log(opened)
    return lines


def _log(opened: OpenPoint) -> list[Content]:
    said = opened.log_lines or ()
    if not said:
        return [styled("    the server's log said nothing while it was out", "$muted")]
    first = opened.log_first_line
    lines = [
        row((f"    {'' if first is None else first + 1 + n:>7} ", "$muted"), text) for n, text in enumerate(said[:40])
    ]
    if len(said) > 40 or opened.log_cut:
        lines.append(styled("            ... and more; o opens the log there", "$muted"))
    else:
        lines.append(styled("            o opens the log there", "$muted"))
    return lines


def _histograms(records: Sequence[RequestRecord], width: int) -> list[Content]:
    good = [record for record in records if record.error is None]
    lines: list[Content] = []
    for label, values, unit in (
        ("TTFT", [r.ttft_s for r in good], "requests"),
        ("ITL", [gap for r in good for gap, count in r.token_gaps() for _ in range(round(count))], "tokens"),
        ("TPOT", [r.tpot_s for r in good], "requests"),
        ("E2E", [r.e2e_s for r in good], "requests"),
    ):
        known = [value * 1e3 for value in values if value is not None]
        bins = histogram(known, 8)
        if not bins:
            continue
        lines += [Content(""), styled(f"{label} of {len(known)} {unit} [ms]", "bold")]
        most = max(one.count for one in bins)
        step = bins[0].high - bins[0].low
        places = max(0, 1 - math.floor(math.log10(step))) if step > 0 else 3
        for one in bins:
            span = f"{one.low:>8,.{places}f} to {one.high:<8,.{places}f}"
            drawn = bar(one.count / most, max(8, width - 30))
            lines.append(row((span, "$muted"), " ", (drawn, "$primary"), f" {one.count}"))
    return lines


def _over_time(records: Sequence[RequestRecord], width: int) -> list[Content]:
    told = acceptance_over_time(records, max(8, min(48, width - 40)))
    if not told:
        return []
    heights = [value for _, value in told]
    low, high = min(heights), max(heights)
    drawn = "".join(_SPARKS[round((v - low) / ((high - low) or 1.0) * (len(_SPARKS) - 1))] for v in heights)
    text = row(("accept length over time ", "bold"), (drawn, "$primary"), f" {low:.2f} to {high:.2f}")
    return [Content(""), text]
