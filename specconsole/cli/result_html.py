"""Results as one HTML file that needs nothing else: no script, no link, plots as SVG inside."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from html import escape

from specconsole.cli.result_text import comparison
from specconsole.core.measuring.compare import Cell, Table
from specconsole.core.measuring.figures_text import cell_text, load_text, point_text
from specconsole.core.measuring.launch_spread import launch_spread, spread_text
from specconsole.core.measuring.marks import MARKS
from specconsole.core.measuring.metrics import Metric
from specconsole.core.measuring.result import Result
from specconsole.core.measuring.series import Plot, plots
from specconsole.core.measuring.verdict_text import left_out_text, pays_text, verdict_lines

_COLOURS = ("#1f5fa8", "#c2452d", "#2f7d4f", "#7d4fa3", "#b07a12", "#3f8f9b", "#6b6f76", "#a13c6e")
_SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --dim: #6a737d; --line: #d5dae0; --paper: #fff;
  --good: #15692f; --bad: #a3201d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e2e6ea; --dim: #98a2ad; --line: #3a424b; --paper: #14181c;
  --good: #6fce85; --bad: #ff938c; } figure { background: #fff; border-radius: 6px; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
summary h2 { display: inline } details { margin-top: 1.5rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
th:first-child, td:first-child, .facts td { text-align: left }
.facts td { white-space: normal } .facts td:first-child { white-space: nowrap }
.better { color: var(--good) } .worse { color: var(--bad) } .noise, .dim { color: var(--dim) }
.sim { color: var(--bad); font-weight: bold }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 1rem }
figure { margin: 0 } figure svg { width: 100%; height: auto } code { overflow-wrap: anywhere }
@media print { body { margin: 0; max-width: none } }
"""


def html_report(rows: Sequence[Result], metric_id: str, baseline_id: str | None, *, now_s: float) -> str:
    """The whole page."""
    table = comparison(rows, metric_id, baseline_id)
    # A row has the same colour in every plot.
    names = dict.fromkeys(row.name for row in rows)
    colours = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(names)}
    title = f"{rows[0].conditions.workload or 'results'}: {', '.join(r.name for r in rows)}" if rows else "results"
    parts = [
        "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        '<p class="dim">'
        f"{escape(table.metric.label)}: {escape(table.metric.definition)} [{escape(table.metric.unit)}]. "
        f"Made {time.strftime('%Y-%m-%d %H:%M %z', time.localtime(now_s))}.</p>",
        _table(table, rows), _marks(table), _economics(table),
        f'<h2>Plots</h2><div class="plots">{"".join(_figure(plot, colours) for plot in plots(rows))}</div>',
        _conditions(table), _points(rows), "</body></html>",
    ]  # fmt: skip
    return "\n".join(part for part in parts if part) + "\n"


def _table(table: Table, rows: Sequence[Result]) -> str:
    head = "".join(f"<th>{escape(load_text(load, rows[0]))}</th>" for load in table.loads)
    body = []
    for row in table.rows:
        name = escape(row.result.name)
        if row.result.result_id == table.baseline_id:
            name += ' <span class="dim">(baseline)</span>'
        if row.result.conditions.simulated:
            name += ' <span class="sim">SIMULATED</span>'
        body.append(f"<tr><td>{name}</td>{''.join(map(_td, row.cells))}</tr>")
    return f"<table><tr><th></th>{head}</tr>{''.join(body)}</table>"


def _td(cell: Cell) -> str:
    return f'<td class="{cell.tendency}">{escape(cell_text(cell))}</td>'


def _marks(table: Table) -> str:
    marks = dict.fromkeys(mark for row in table.rows for cell in row.cells for mark in cell.marks)
    items = [f"<li><b>{escape(MARKS[m].sign)}</b> {escape(MARKS[m].meaning)}</li>" for m in marks if m in MARKS]
    said = "± is the 95 % interval of the mean; ↑ ↓ differ from the baseline, ≈ is noise."
    return f'<p class="dim">{said}</p>' + (f"<ul>{''.join(items)}</ul>" if items else "")


def _economics(table: Table) -> str:
    """For each row that is compared: the verdict at each load, or why there is none."""
    parts: list[str] = []
    plain = next((row for row in table.rows if row.result.result_id == table.baseline_id), None)
    for row in table.rows:
        if plain is None or row is plain or not row.comparable or row.result.conditions.speculative is False:
            continue
        items = []
        for cell in row.cells:
            other = next((one for one in plain.cells if one.load == cell.load), None)
            said = "; ".join(verdict_lines(cell)) or left_out_text(cell, other)
            if said:
                items.append(f"<li><b>{escape(load_text(cell.load, row.result))}</b>: {escape(said)}</li>")
        where = pays_text(row)
        last = f"<p>Decode is faster: <b>{escape(where)}</b></p>" if where else ""
        if items or last:
            parts.append(f"<h2>{escape(row.result.name)} against the baseline</h2><ul>{''.join(items)}</ul>{last}")
    return "".join(parts)


def _figure(plot: Plot, colours: Mapping[str, str]) -> str:
    import pygal
    from pygal.style import CleanStyle

    # pygal 3.1 leaves an import hook of the old kind behind, for plugins that nobody here has; Python warns of it at
    # every later import.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]

    style = CleanStyle(
        font_family="sans-serif", background="#ffffff", plot_background="#ffffff", guide_stroke_color="#e1e5ea",
        major_guide_stroke_color="#c9d0d8", guide_stroke_dasharray="none", major_guide_stroke_dasharray="none",
        colors=tuple(colours[line.name] for line in plot.lines), title_font_size=15,
        label_font_size=11, major_label_font_size=11, legend_font_size=12,
    )  # fmt: skip
    chart = pygal.XY(
        js=(), style=style, width=640, height=380, disable_xml_declaration=True, no_prefix=True, explicit_size=False,
        title=plot.title, x_title=plot.x_label, y_title=plot.y_label, legend_at_bottom=True, dots_size=3,
        include_x_axis=True, truncate_legend=-1,
    )  # fmt: skip
    for line in plot.lines:
        # One point alone would leave an axis without a length.
        chart.add(line.name, list(line.points))
    if plot.plot_id != "pareto":
        chart.x_labels = sorted({x for line in plot.lines for x, _ in line.points})
    drawn = chart.render(is_unicode=True)
    text = drawn if isinstance(drawn, str) else drawn.decode()
    # Without its tooltips' code the drawing still carries their configuration.
    return f"<figure>{_SCRIPT.sub('', text)}</figure>"


def _conditions(table: Table) -> str:
    parts = ["<h2>Conditions</h2>"]
    for row in table.rows:
        c = row.result.conditions
        facts = {
            "engine": f"{c.engine} {c.version or '(version unknown)'}", "host": c.host, "GPUs": ", ".join(c.gpu_names),
            "client on": c.client_host + (", through the tunnel" if c.through_tunnel else ""), "model": c.model or "?",
            "draft": c.draft_model or ("none" if c.speculative is False else "not known"),
            "workload": f"{c.workload} {c.workload_hash}", "cache": c.cache,
            "build": ", ".join(f"{k} {v}" for k, v in c.build.items()), "simulated": c.simulated,
            "starts": str(row.result.launches),
            "noise": _noise(row.result, table.metric), "measured by": row.result.imported_from, "note": row.result.note,
        }  # fmt: skip
        cells = "".join(f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in facts.items() if v)
        command = f"<p><code>{escape(c.command)}</code></p>" if c.command else ""
        unfair = "".join(
            f"<li>{escape(d.what)}: {escape(str(d.a))} / {escape(str(d.b))} {escape(d.why)}</li>"
            for d in row.unfair
            if d.weight != "notes"
        )
        differs = f"<p>Differs from the baseline in:</p><ul>{unfair}</ul>" if unfair else ""
        parts.append(f"<h3>{escape(row.result.name)}</h3><table class='facts'>{cells}</table>{command}{differs}")
    return "".join(parts)


def _noise(result: Result, metric: Metric) -> str:
    told = [(load, spread_text(launch_spread(result.at(load), metric))) for load in result.loads]
    return "; ".join(f"{load_text(load, result)}: {text}" for load, text in told if text)


def _points(rows: Sequence[Result]) -> str:
    items = [
        f"<li>{escape(f'{result.name} {load_text(p.load, result)} repeat {p.repeat + 1}: {point_text(p)}')}</li>"
        for result in rows
        for p in result.points
    ]
    return f"<details><summary><h2>Every point</h2></summary><ul>{''.join(items)}</ul></details>"
