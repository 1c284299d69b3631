"""`specconsole history`: every launch that this console knows of, searched and filtered."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.cli.since import since
from specconsole.errors import EXIT_OK, SpecconsoleError

if TYPE_CHECKING:
    from specconsole.core.views.history import HistoryQuery, HistoryRow
    from specconsole.wiring import Console

HELP = "list and search earlier launches: outcome, cause, times, results, tags, notes"
EPILOG = """QUERY: every word must stand somewhere in profile, arguments, names of environment variables, model, owner,
host, tags, notes or the cause of a failure (after `--` it may begin with dashes).
Launches on this machine that were not seen to end are looked at first; those of other hosts stand as they were last
seen (--refresh asks the hosts).
exit status: 0 shown (also when nothing fits), 2 usage"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("query", nargs="*", metavar="QUERY", help="words to look for")
    parser.add_argument("--host", help="only launches on this host")
    parser.add_argument("--profile", help="only launches of this profile")
    parser.add_argument("--engine", help="only this engine: sglang, vllm, llamacpp")
    parser.add_argument("--outcome", help="stopped, failed, a cause such as gpu-oom, or open: not seen to end")
    parser.add_argument("--tag", help="only launches with this tag")
    parser.add_argument("--since", type=since, metavar="WHEN", help="90m, 3h, 2d, today, 2026-11-28")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="at most so many, the newest (default: 50)")
    parser.add_argument("--refresh", action="store_true", help="ask the hosts of launches that were not seen to end")
    parser.add_argument("--json", action="store_true", help="one JSON object (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_history(args))


async def _history(args: argparse.Namespace) -> int:
    from specconsole.cli.history_text import history_lines
    from specconsole.core.views.history import HistoryQuery
    from specconsole.wiring import open_supervisor

    query = HistoryQuery(
        " ".join(args.query), args.host, args.profile, args.engine, args.outcome, args.tag, args.since,
        limit=max(1, min(args.limit, 100_000)),
    )  # fmt: skip
    async with open_supervisor((), read_only=args.read_only) as console:
        stale = await _look(console, query, refresh=args.refresh)
        page = await console.history.page(query)
    if args.json:
        print(json.dumps({"schema": 1, "launches": [row.to_json() for row in page.rows], "more": page.more}))
        return EXIT_OK
    for line in history_lines(page.rows) if page.rows else ["no launch fits" if _asked(args) else "no launches yet"]:
        print(line)
    if page.more:
        print(f"only the newest {len(page.rows)} are shown (--limit)", file=sys.stderr)
    if stale:
        print(f"not seen to end on {', '.join(sorted(stale))} (--refresh asks there)", file=sys.stderr)
    return EXIT_OK


def _asked(args: argparse.Namespace) -> bool:
    wanted = (args.query, args.host, args.profile, args.engine, args.outcome, args.tag, args.since)
    return any(value for value in wanted)


async def _look(console: Console, query: HistoryQuery, *, refresh: bool) -> set[str]:
    """Looks at what was not seen to end; the hosts that were not asked."""
    from dataclasses import replace

    from specconsole.core.hosts.names import LOCAL

    # An outcome that is asked for may be the very thing that is not known yet.
    page = await console.history.page(replace(query, outcome="open", limit=200))
    asked: dict[str, bool] = {}
    for row in page.rows:
        if row.host not in asked:
            asked[row.host] = (refresh or row.host == LOCAL) and await _open(console, row)
        if asked[row.host]:
            try:
                await console.history.look(row.launch_id)
            except SpecconsoleError as error:
                print(f"specconsole history: {error}", file=sys.stderr)
                asked[row.host] = False
    return {host for host, done in asked.items() if not done and not refresh}


async def _open(console: Console, row: HistoryRow) -> bool:
    try:
        await console.supervisor.host(row.host)
    except SpecconsoleError as error:
        print(f"specconsole history: {error}", file=sys.stderr)
        return False
    return True
