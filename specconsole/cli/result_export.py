"""Results as Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from specconsole.cli.result_text import comparison
from specconsole.core.measuring.figures_text import cell_text, load_text
from specconsole.core.measuring.marks import MARKS
from specconsole.core.measuring.metrics import METRICS, PROBE, probe_names
from specconsole.core.measuring.result import Result
from specconsole.core.measuring.verdict_text import pays_text, verdict_lines


def markdown(rows: Sequence[Result], metric_id: str, baseline_id: str | None) -> str:
    """The table with what it needs to be trusted: noise, marks, economics, conditions."""
    table = comparison(rows, metric_id, baseline_id)
    loads = [load_text(load, rows[0]) for load in table.loads] if rows else []
    lines = [f"**{table.metric.label}** [{table.metric.unit}]: {table.metric.definition}", ""]
    lines.append("| | " + " | ".join(loads) + " |")
    lines.append("|---|" + "---:|" * len(loads))
    for row in table.rows:
        name = row.result.name + (" (baseline)" if row.result.result_id == table.baseline_id else "")
        lines.append("| " + " | ".join([_cell(name), *(_cell(cell_text(cell)) for cell in row.cells)]) + " |")
    lines += ["", "± is the 95 % interval of the mean; ↑ ↓ differ from the baseline, ≈ is noise."]
    marks = dict.fromkeys(mark for row in table.rows for cell in row.cells for mark in cell.marks)
    lines += [f"- `{MARKS[m].sign}` {MARKS[m].meaning}" for m in marks if m in MARKS]
    for row in table.rows:
        told = [(cell, verdict_lines(cell)) for cell in row.cells]
        if any(texts for _, texts in told):
            lines += ["", f"### {_cell(row.result.name)} against the baseline", ""]
            lines += [f"- {load_text(cell.load, row.result)}: " + "; ".join(texts) for cell, texts in told if texts]
            if where := pays_text(row):
                lines.append(f"- decode is faster: {where}")
    lines += ["", "### Conditions", ""]
    for row in table.rows:
        c = row.result.conditions
        facts = [
            c.engine,
            c.version or "version unknown",
            c.host,
            *c.gpu_names,
            f"workload {c.workload} {c.workload_hash}",
        ]
        facts.append(f"repeats span {row.result.launches} start{'s' if row.result.launches != 1 else ''}")
        lines.append(f"- {_cell(row.result.name)}: " + ", ".join(_cell(fact) for fact in facts if fact))
        if c.command:
            lines.append(f"  `{c.command.replace('`', chr(39))}`")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def csv_text(results: Sequence[Result]) -> str:
    """A line a point; an empty field is unknown."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    head = [
        "result_id",
        "name",
        "workload",
        "workload_hash",
        "concurrency",
        "rate_per_s",
        "repeat",
        "launch_id",
        "at_s",
    ]
    more = ["succeeded", "failed", "acceptance_source", "marks"]
    probes = probe_names(results)
    writer.writerow([*head, *METRICS, *more, *(PROBE + name for name in probes)])
    for result in results:
        c = result.conditions
        for point in result.points:
            values = [metric.value(point) for metric in METRICS.values()]
            writer.writerow(
                [
                    result.result_id, result.name, c.workload, c.workload_hash, point.concurrency, point.rate_per_s,
                    point.repeat, point.launch_id, point.at_s, *("" if v is None else repr(v) for v in values),
                    point.metrics.succeeded, point.metrics.failed, point.acceptance.source, " ".join(point.all_marks),
                    *(repr(point.probes[name]) if name in point.probes else "" for name in probes),
                ]
            )  # fmt: skip
    return out.getvalue()
