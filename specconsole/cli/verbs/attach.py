"""`specconsole attach`: watches a launch that runs, from whichever console it was started, until it answers or ends."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.cli.adopting import add_adopting_arguments, adopt, adopting_order, list_offers
from specconsole.cli.arguments import seconds
from specconsole.errors import EXIT_CANCELLED, EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from specconsole.core.views.launch import LaunchView
    from specconsole.wiring import Console

HELP = "watch a running launch until it answers, or adopt a server that was started by hand"
EPILOG = """exit status: 0 answers (with --to-end: stopped as asked), 1 failed, or no answer in time,
3 host not reachable, 4 no such launch, 130 interrupted (the server goes on)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("launch", nargs="?", metavar="LAUNCH", help="an id, the start of one, or a profile's name")
    parser.add_argument("--host", default="local", help="where (default: local)")
    parser.add_argument("--to-end", action="store_true", help="go on until it has ended")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="give up after (the server goes on)")
    parser.add_argument("--json", action="store_true", help="one JSON object at the end (docs/json.md)")
    add_adopting_arguments(parser)


def run(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_attach(args))
    except KeyboardInterrupt:
        print("specconsole attach: interrupted; the server goes on", file=sys.stderr)
        return EXIT_CANCELLED


async def _attach(args: argparse.Namespace) -> int:
    from specconsole.cli.launch_text import launch_json, state_text
    from specconsole.wiring import open_supervisor

    order = adopting_order(args)
    async with open_supervisor((), read_only=order is None or args.read_only, spare_store=True) as console:
        await console.supervisor.add_host(args.host)
        await console.supervisor.discovered(args.host)
        if order is not None:
            return await adopt(console, order, args)
        if not args.launch:
            return await list_offers(console, args)
        watch = console.supervisor.find(args.launch)
        await watch.settled()
        view = await _watch(console, watch.launch_id, args)
    print(json.dumps(launch_json(view)) if args.json else f"{view.launch_id}  {view.name}: {state_text(view)}")
    wanted = "stopped" if args.to_end else "answers"
    return EXIT_OK if view.state == wanted else EXIT_FAILED


async def _watch(console: Console, launch_id: str, args: argparse.Namespace) -> LaunchView:
    from specconsole.cli.wait_progress import WaitProgress
    from specconsole.core.launching.lifecycle import ENDED

    progress = WaitProgress()
    try:
        async with asyncio.timeout(args.timeout):
            while True:
                view = console.board.launches[launch_id]
                if view.state in ENDED or (view.state == "answers" and not args.to_end):
                    break
                progress.show(view)
                await asyncio.sleep(0.1)
    except TimeoutError:
        progress.say(f"not within {args.timeout:.0f} s; the server goes on")
    progress.clear()
    return console.board.launches[launch_id]
