"""`specconsole diff`: everything that differs between two launches."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_FAILED, EXIT_OK, SpecconsoleError

if TYPE_CHECKING:
    from specconsole.wiring import Console

HELP = "compare two launches: flags, settings, versions, environment, phases, memory, results"
EPILOG = """A launch is an id, the start of one, `last`, or a profile's name (its last launch).
`!` differs; `?` can't be told, because one side is unknown. Durations differ from half a second and a tenth on, memory
from 256 MiB on, results beyond the noise of their repeats.
exit status: 0 nothing differs, 1 something does, 4 no such launch"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("left", metavar="A")
    parser.add_argument("right", metavar="B")
    parser.add_argument("--all", action="store_true", help="also what is the same")
    parser.add_argument("--offline", action="store_true", help="ask no host; what this console keeps must do")
    parser.add_argument("--host", default="local", help="where to look for a launch that is not known yet")
    parser.add_argument("--json", action="store_true", help="one JSON object with every row (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_diff(args))


async def _diff(args: argparse.Namespace) -> int:
    from specconsole.cli.history_text import difference_lines
    from specconsole.cli.launch_words import meant_launch
    from specconsole.wiring import open_supervisor

    async with open_supervisor((), read_only=True) as console:
        rows = [await meant_launch(console, word, args.host) for word in (args.left, args.right)]
        for host in {row.host for row in rows} if not args.offline else ():
            await _open(console, host)
        found = await console.history.difference(rows[0].launch_id, rows[1].launch_id)
    if args.json:
        print(json.dumps(found.to_json()))
    else:
        for line in difference_lines(found, everything=args.all):
            print(line)
    return EXIT_FAILED if any(row.differs for row in found.rows) else EXIT_OK


async def _open(console: Console, host: str) -> None:
    try:
        await console.supervisor.host(host)
    except SpecconsoleError as error:
        print(f"specconsole diff: {error}", file=sys.stderr)
