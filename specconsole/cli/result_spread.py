"""`specconsole results spread`: one profile's starts beside each other, and how much of the noise is theirs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from specconsole.core.measuring.figures_text import load_text, number
from specconsole.core.measuring.launch_spread import launch_spread, spread_text
from specconsole.core.measuring.metrics import METRICS

if TYPE_CHECKING:
    from specconsole.core.measuring.result import Result


def spread_lines(rows: Sequence[Result], metric_id: str) -> list[str]:
    """A block a row: its starts, the oldest first, a column a load; then what the noise is made of."""
    metric = METRICS[metric_id]
    lines = [f"{metric.label} [{metric.unit}]: mean of each start's repeats"]
    for row in rows:
        spreads = [(load, launch_spread(row.at(load), metric)) for load in row.loads]
        starts = {s.launch_id: s.at_s for _, one in spreads if one is not None for s in one.starts}
        lines += ["", f"{row.name}: {len(starts)} start{'s' if len(starts) != 1 else ''} of the server"]
        head = f"  {'start':<20}" + "".join(f"{load_text(load, row):>12}" for load, _ in spreads)
        lines.append(head)
        for launch_id in sorted(starts, key=starts.__getitem__):
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(starts[launch_id]))
            cells = []
            for _, one in spreads:
                mine = next((s for s in one.starts if s.launch_id == launch_id), None) if one is not None else None
                cells.append(f"{number(None if mine is None else mine.mean):>12}")
            lines.append(f"  {when:<20}{''.join(cells)}")
        for load, one in spreads:
            if told := spread_text(one):
                lines.append(f"  {load_text(load, row)}: {told}")
    return lines


def spread_json(rows: Sequence[Result], metric_id: str) -> dict[str, Any]:
    """The object `spread` of docs/json.md."""
    metric = METRICS[metric_id]
    found = []
    for row in rows:
        loads = [{"load": load, **asdict(one)} for load in row.loads if (one := launch_spread(row.at(load), metric))]
        found.append({"result_id": row.result_id, "name": row.name, "loads": loads})
    return {"schema": 1, "metric": metric_id, "unit": metric.unit, "rows": found}
