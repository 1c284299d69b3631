"""`specconsole stop`: ends launches and proves that nothing of them is left."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.cli.arguments import seconds
from specconsole.errors import EXIT_CANCELLED, EXIT_FAILED, EXIT_OK, RefusedError

if TYPE_CHECKING:
    from specconsole.core.launching.stopping import StopEvent
    from specconsole.services.commands import StopPlan
    from specconsole.wiring import Console

HELP = "stop launches, verified: no process left, port free"
EPILOG = """exit status: 0 nothing is left, 1 something survived (named), 3 host not reachable, 4 no such launch,
5 refused (somebody else's launch without --theirs NAME, a name that several have),
130 interrupted (the stop is given up)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("launches", nargs="*", metavar="LAUNCH", help="an id, the start of one, or a profile's name")
    parser.add_argument("--all", action="store_true", help="every running launch that this person started")
    parser.add_argument("--host", default="local", help="where (default: local)")
    parser.add_argument(
        "--grace", type=seconds, metavar="SECONDS", help="between TERM and KILL (default: the profile's)"
    )
    parser.add_argument(
        "--theirs", metavar="NAME", help="confirm a launch that somebody else started, by its profile's name"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a launch (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_stop(args))
    except KeyboardInterrupt:
        print("specconsole stop: interrupted, the stop is given up (specconsole status)", file=sys.stderr)
        return EXIT_CANCELLED


async def _stop(args: argparse.Namespace) -> int:
    from specconsole.core.launching.lifecycle import ENDED
    from specconsole.errors import BadInputError
    from specconsole.wiring import open_supervisor

    if bool(args.launches) == bool(args.all):
        raise BadInputError("name launches, or give --all", try_="specconsole status")
    async with open_supervisor((), read_only=args.read_only, spare_store=True) as console:
        await console.supervisor.add_host(args.host)
        await console.supervisor.discovered(args.host)
        for watch in list(console.supervisor.watches.values()):
            await watch.settled()
        if args.all:
            chosen = [
                view.launch_id for view in console.board.launches.values() if view.ours and view.state not in ENDED
            ]
        else:
            chosen = list(dict.fromkeys(_the_one(console, word) for word in args.launches))
        worst = EXIT_OK
        for launch_id in chosen:
            plan = await console.commands.stop_plan(launch_id)
            _check_owner(console, plan, args.theirs)
            worst = max(worst, await _stop_one(console, launch_id, args))
    return worst


def _the_one(console: Console, word: str) -> str:
    """The launch that is meant. Raises RefusedError for a name that several running launches have."""
    found = console.supervisor.find(word).launch_id
    running = sorted(
        watch.launch_id
        for watch in console.supervisor.watches.values()
        if watch.record.alive and watch.record.spec is not None and watch.record.spec.profile == word
    )
    if len(running) > 1 and not found.startswith(word):
        raise RefusedError(f"{len(running)} launches of {word} run", try_=f"one of {', '.join(running[-5:])}, or --all")
    return found


def _check_owner(console: Console, plan: StopPlan, theirs: str | None) -> None:
    name = console.board.launches[plan.launch_id].name
    if not plan.ours and plan.processes and theirs != name:
        raise RefusedError(
            f"{name} was started by {plan.owner or 'somebody unknown'}",
            where=plan.launch_id,
            try_=f"--theirs {name} when it is meant",
        )


async def _stop_one(console: Console, launch_id: str, args: argparse.Namespace) -> int:
    from specconsole.cli.launch_text import stop_json

    name = console.board.launches[launch_id].name
    last_text = ""

    def told(event: StopEvent) -> None:
        nonlocal last_text
        if event.phase == "grace" and not sys.stderr.isatty():
            return
        if event.text != last_text and event.phase != "finished":
            last_text = event.text
            print(f"{name}: {event.text}", file=sys.stderr)

    last = await console.commands.stop_telling(launch_id, told, grace_s=args.grace)
    if args.json:
        print(json.dumps({"launch_id": launch_id, "name": name, **stop_json(last)}))
    else:
        print(f"{name} {launch_id}: {last.text}")
        for one in last.left_over:
            print(f"  left over: {one}")
    return EXIT_OK if last.clean else EXIT_FAILED
