"""`specconsole results`: what was measured, compared, plotted, exported."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_FAILED, EXIT_OK, BadInputError, RefusedError, SpecconsoleError

if TYPE_CHECKING:
    from specconsole.core.measuring.compare import Cell
    from specconsole.core.measuring.result import Result
    from specconsole.services.bench_store import BenchStore
    from specconsole.wiring import Console

HELP = "measured results: list, show, compare, plot, export, import, note, remove"
EPILOG = """  list                     every result; runs that ended while no console looked are finished first
  show ID                  one result: points, marks, economics
  compare [ID...]          side by side (default: all of the newest workload); --baseline ID, --metric M
  plot [ID...]             as text: --plot throughput, decode, pareto or acceptance
  spread [NAME...]         starts of a profile beside each other; --metric M
  lossless ID ID           greedy runs with --keep-text: the same tokens? the first difference
  export [ID...]           --format markdown, csv, json or html; to --out FILE, else standard output
  import FILE...           of sglang.bench_serving, vllm bench serve, guidellm or aiperf; marked as theirs
  note ID TEXT...          stands with the result
  rm ID...                 with the run's folder on --host (local); asks first, or --yes
an ID may be its beginning, or a profile's name (its newest result).
exit status: 0 done, 1 lossless: they differ, 2 a wrong argument or file, 4 no such result, 5 rm without --yes"""
_ACTIONS = ("list", "show", "compare", "plot", "spread", "lossless", "export", "import", "note", "rm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", nargs="?", default="list", choices=_ACTIONS)
    parser.add_argument("words", nargs="*", metavar="ID|FILE|TEXT")
    parser.add_argument("--workload", help="only results of this workload")
    parser.add_argument(
        "--baseline",
        metavar="ID",
        help="compare with this (default: what is pinned, else the newest plain one)",
    )
    parser.add_argument(
        "--metric", default="output_tok_s", metavar="M", help="output_tok_s, decode_tok_s, ttft_p99_ms ..."
    )
    parser.add_argument("--plot", action="append", metavar="P", help="throughput, decode, pareto, acceptance (all)")
    parser.add_argument(
        "--format",
        choices=("markdown", "csv", "json", "html", "schema"),
        help="default: by the name of --out; schema: the JSON Schema of json",
    )
    parser.add_argument("--out", metavar="FILE", help="write there")
    parser.add_argument("--host", action="append", metavar="HOST", help="where runs may have ended unseen (local)")
    parser.add_argument("--yes", action="store_true", help="rm: without asking")
    parser.add_argument("--json", action="store_true", help="JSON on standard output (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_results(args))


async def _results(args: argparse.Namespace) -> int:
    from specconsole.core.measuring.metrics import METRICS, PROBE
    from specconsole.wiring import open_supervisor

    if args.metric not in METRICS and not args.metric.startswith(PROBE):
        raise BadInputError(f"--metric can't be {args.metric}", try_=f"{', '.join(METRICS)}, {PROBE}NAME")
    if args.read_only and args.action in ("import", "note", "rm"):
        raise RefusedError("this console is read-only", try_="without --read-only")
    async with open_supervisor((), read_only=args.read_only) as console:
        for host in args.host or ["local"]:
            for bench_id in await console.benches.look(host, follow=False):
                # One that measured nothing is told in the list.
                with suppress(SpecconsoleError):
                    await console.benches.wait(bench_id)
        known = await console.benches.results()
        if args.action == "import":
            return await _import(console, args)
        if args.action == "note":
            return await _note(console, known, args)
        if args.action == "rm":
            return await _remove(console, known, args)
        if args.action == "export" and args.format == "schema":
            return _schema(args)
        if args.action == "lossless":
            return await _lossless(console, known, args)
        pinned = (await console.benches.choice()).baseline_id
        return await asyncio.to_thread(_show, known, args, pinned)


def _show(known: Sequence[Result], args: argparse.Namespace, pinned: str | None) -> int:
    """`pinned`: the baseline that was pinned in a window."""
    from specconsole.cli.result_text import list_text, result_json, show_text, table_text
    from specconsole.core.measuring.rows import baseline_of, chosen_rows, merge_launches, unique

    if args.action == "list":
        chosen = [r for r in known if args.workload in (None, r.conditions.workload)]
        if args.json:
            print(json.dumps([result_json(r) for r in chosen]))
        else:
            _print_lines(list_text(chosen))
        return EXIT_OK
    if args.action == "show" and len(args.words) != 1:
        raise BadInputError("show wants one result", try_="specconsole results list")
    rows = _chosen(known, args) if args.words else chosen_rows(known, args.workload)
    if not rows:
        raise BadInputError("nothing was measured yet", try_="specconsole bench LAUNCH")
    if args.action == "show":
        result = rows[0]
        if args.json:
            print(json.dumps(result_json(result)))
            return EXIT_OK
        around = [*chosen_rows(known, result.conditions.workload), result]
        baseline = _baseline(known, args) or baseline_of(around, pinned, known)
        cells = _cells(around, result, args.metric, baseline)
        _print_lines(show_text(result, cells))
        return EXIT_OK
    if args.action == "spread":
        return _spread(known, rows, args)
    rows = merge_launches(unique(rows))
    baseline = _baseline(known, args)
    if baseline is not None and all(r.result_id != baseline for r in rows):
        rows = (next(r for r in known if r.result_id == baseline), *rows)
    baseline = baseline or baseline_of(rows, pinned, known)
    if args.action == "compare":
        if args.json:
            print(json.dumps(_table_json(rows, args.metric, baseline)))
        else:
            _print_lines(table_text(rows, args.metric, baseline))
        return EXIT_OK
    if args.action == "plot":
        return _plot(rows, args)
    return _export(rows, args, baseline)


def _spread(known: Sequence[Result], chosen: Sequence[Result], args: argparse.Namespace) -> int:
    from specconsole.cli.result_spread import spread_json, spread_lines
    from specconsole.core.measuring.rows import chosen_rows, row_with

    # A name or an id means the row that it went into, with all its starts.
    every = chosen_rows(known, args.workload or chosen[0].conditions.workload)
    rows = [row for one in chosen if (row := row_with(every, one.result_id, known)) is not None] or list(chosen)
    rows = list({row.result_id: row for row in rows}.values())
    if args.json:
        print(json.dumps(spread_json(rows, args.metric)))
    else:
        _print_lines(spread_lines(rows, args.metric))
    return EXIT_OK


def _chosen(known: Sequence[Result], args: argparse.Namespace) -> tuple[Result, ...]:
    from specconsole.core.measuring.rows import unique
    from specconsole.services.bench_store import find_result

    return unique([find_result(known, word) for word in args.words])


def _baseline(known: Sequence[Result], args: argparse.Namespace) -> str | None:
    from specconsole.services.bench_store import find_result

    return find_result(known, args.baseline).result_id if args.baseline else None


def _cells(around: Sequence[Result], result: Result, metric_id: str, baseline: str | None) -> list[Cell]:
    """The result's own cells against the baseline."""
    from specconsole.cli.result_text import comparison
    from specconsole.core.measuring.rows import unique

    table = comparison(unique(around), metric_id, baseline)
    return [cell for row in table.rows if row.result.result_id == result.result_id for cell in row.cells]


def _table_json(rows: Sequence[Result], metric_id: str, baseline: str | None) -> dict[str, object]:
    """The object `comparison` of docs/json.md."""
    from dataclasses import asdict

    from specconsole.cli.result_text import comparison

    table = comparison(rows, metric_id, baseline)
    return {
        "schema": 1,
        "metric": metric_id,
        "unit": table.metric.unit,
        "baseline": table.baseline_id,
        "loads": list(table.loads),
        "rows": [
            {
                "result_id": row.result.result_id,
                "name": row.result.name,
                "comparable": row.comparable,
                "cells": [asdict(cell) for cell in row.cells],
                "crossings": [asdict(one) for one in row.crossings],
                "unfair": [asdict(one) for one in row.unfair],
            }
            for row in table.rows
        ],
    }


def _plot(rows: Sequence[Result], args: argparse.Namespace) -> int:
    from specconsole.cli.result_plot import plot_text
    from specconsole.core.measuring.series import PLOT_IDS, plots

    wanted = args.plot or list(PLOT_IDS)
    for name in wanted:
        if name not in PLOT_IDS:
            raise BadInputError(f"--plot can't be {name}", try_=", ".join(PLOT_IDS))
    width = shutil.get_terminal_size().columns
    drawn = plots(rows, wanted)
    for plot in drawn:
        _print_lines([*plot_text(plot, width=width), ""])
    if not drawn:
        raise BadInputError("there is nothing to draw", try_="specconsole results show ID")
    return EXIT_OK


def _export(rows: Sequence[Result], args: argparse.Namespace, baseline: str | None) -> int:
    from specconsole.cli.result_export import csv_text, markdown
    from specconsole.cli.result_html import html_report
    from specconsole.cli.result_text import result_json

    endings = {".md": "markdown", ".csv": "csv", ".json": "json", ".html": "html", ".htm": "html"}
    kind = args.format or endings.get(Path(args.out).suffix.lower() if args.out else "", "markdown")
    if kind == "csv":
        text = csv_text(rows)
    elif kind == "json":
        text = json.dumps([result_json(r) for r in rows], indent=1) + "\n"
    elif kind == "html":
        text = html_report(rows, args.metric, baseline, now_s=time.time())
    else:
        text = markdown(rows, args.metric, baseline)
    return _write(text, args.out, f"{kind}, {len(rows)} results")


def _schema(args: argparse.Namespace) -> int:
    from specconsole.cli.result_schema import result_schema

    return _write(json.dumps(result_schema(), indent=1) + "\n", args.out, "the schema")


def _write(text: str, out: str | None, what: str) -> int:
    if not out:
        sys.stdout.write(text)
        return EXIT_OK
    try:
        Path(out).expanduser().write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInputError(error.strerror or "can't be written", where=out) from None
    print(f"{out}: {what}", file=sys.stderr)
    return EXIT_OK


async def _import(console: Console, args: argparse.Namespace) -> int:
    from specconsole.adapters.foreign_results import read_documents
    from specconsole.core.measuring.importing import import_results
    from specconsole.services.ordering import new_launch_id

    if not args.words:
        raise BadInputError("import wants files", try_="specconsole results import bench.jsonl")
    made: list[Result] = []
    for word in args.words:
        documents, at_s = await asyncio.to_thread(read_documents, Path(word))
        made += import_results(documents, source=word, result_id=new_launch_id(time.time()), at_s=at_s)
    store = _store(console)
    for result in made:
        await store.put_whole(result)
        print(f"{result.result_id}  {result.name}: {len(result.points)} points of {result.imported_from}")
    return EXIT_OK


async def _note(console: Console, known: Sequence[Result], args: argparse.Namespace) -> int:
    from specconsole.services.bench_store import find_result

    if len(args.words) < 2:
        raise BadInputError("note wants a result and a text", try_="specconsole results note ID it ran on a warm GPU")
    result = find_result(known, args.words[0])
    await _store(console).add_note(result.result_id, " ".join(args.words[1:]), time.time())
    return EXIT_OK


async def _remove(console: Console, known: Sequence[Result], args: argparse.Namespace) -> int:
    from specconsole.cli.result_removal import remove_results

    chosen = _chosen(known, args)
    if not chosen:
        raise BadInputError("rm wants results", try_="specconsole results list")
    return await remove_results(console, chosen, args.host or ["local"], yes=args.yes)


async def _lossless(console: Console, known: Sequence[Result], args: argparse.Namespace) -> int:
    from specconsole.core.measuring.lossless import compare_answers

    chosen = _chosen(known, args)
    if len(chosen) != 2:
        raise BadInputError("lossless wants two results", try_="specconsole results list")
    a, b = chosen
    for result in chosen:
        if result.conditions.sampling.get("temperature") != 0:
            raise BadInputError("was not greedy: its answers differ by chance", where=result.result_id)
    if a.conditions.workload_hash != b.conditions.workload_hash:
        raise BadInputError("they sent other requests", where=f"{a.result_id}, {b.result_id}")
    lines = [[line for part in (await _store(console).requests(r)).values() for line in part] for r in chosen]
    found = compare_answers(*lines)
    if args.json:
        from dataclasses import asdict

        print(json.dumps({"schema": 1, "a": a.result_id, "b": b.result_id, **asdict(found)}))
        return EXIT_OK if not found.differing else EXIT_FAILED
    print(f"{found.equal} of {found.compared} answers are the same")
    if found.unstable:
        print(f"{found.unstable} were not even the same within one run, and say nothing")
    for one in found.differing[:5]:
        if one.at is None:
            print(f"request {one.body} differs (measure with --keep-text to see where)")
        else:
            print(f"request {one.body} differs from character {one.at} on:")
            print(f"  {a.name}: ...{one.a!r}")
            print(f"  {b.name}: ...{one.b!r}")
    if not found.compared:
        raise BadInputError("no request was answered in both", where=f"{a.result_id}, {b.result_id}")
    return EXIT_OK if not found.differing else EXIT_FAILED


def _store(console: Console) -> BenchStore:
    store = console.benches.store
    assert store is not None
    return store


def _print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        print(line)
