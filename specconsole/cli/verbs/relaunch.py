"""`specconsole relaunch`: starts an earlier launch again, as it was launched or with settings changed."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.cli.arguments import seconds
from specconsole.errors import EXIT_CANCELLED, EXIT_FAILED, EXIT_OK, RefusedError

if TYPE_CHECKING:
    from specconsole.core.views.launch import LaunchView
    from specconsole.wiring import Console

HELP = "start an earlier launch again: exactly as launched, with --set, or with what its failure card proposes"
EPILOG = """A launch is an id, the start of one, `last`, or a profile's name (its last launch). One that runs is stopped
first, after its owner, running requests and benchmarks were named.
exit status: 0 started (with --wait: answers), 1 failed or does not answer, 2 a setting is wrong, 3 host not reachable,
4 no such launch, 5 refused (somebody else's server without --theirs NAME, running benchmarks or requests without
--busy, its host does not have it any more), 130 interrupted (the server goes on)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("launch", metavar="LAUNCH")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="change a setting"
    )
    parser.add_argument("--as-proposed", action="store_true", help="with the change that its failure card proposes")
    parser.add_argument("--host", default="local", help="where to look for a launch that is not known yet")
    parser.add_argument(
        "--theirs", metavar="NAME", help="stop a server that somebody else started, by its profile's name"
    )
    parser.add_argument("--busy", action="store_true", help="also stop one that serves requests or is being measured")
    parser.add_argument("--wait", action="store_true", help="until it answers")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="with --wait: give up after")
    parser.add_argument("--json", action="store_true", help="one JSON object, the launch (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_relaunch(args))
    except KeyboardInterrupt:
        print("specconsole relaunch: interrupted; what was started goes on (specconsole status)", file=sys.stderr)
        return EXIT_CANCELLED


async def _relaunch(args: argparse.Namespace) -> int:
    from specconsole.cli.launch_text import launch_json, state_text
    from specconsole.cli.launch_words import meant_launch
    from specconsole.cli.settings import parse_settings
    from specconsole.core.launching.lifecycle import ENDED
    from specconsole.wiring import open_supervisor

    changes = parse_settings(args.settings)
    async with open_supervisor((), read_only=args.read_only) as console:
        row = await meant_launch(console, args.launch, args.host)
        console.supervisor.may_change(row.host)
        await console.supervisor.host(row.host)
        launch_id = await console.history.watched(row.launch_id)
        watch = console.supervisor.watches[launch_id]
        await watch.settled()
        if watch.state not in ENDED:
            await _may_stop(console, launch_id, args)
        if args.as_proposed:
            changes = {**_proposed(console.board.launches[launch_id]), **changes}
        new_id = await console.commands.relaunch(launch_id, changes, _say)
        view = await _waited(console, new_id, args.timeout) if args.wait else console.board.launches[new_id]
    print(json.dumps(launch_json(view)) if args.json else view.launch_id)
    if args.wait and view.state != "answers":
        _say(f"{view.name}: {state_text(view)}")
        return EXIT_FAILED
    return EXIT_OK


def _say(text: str) -> None:
    print(text, file=sys.stderr)


async def _may_stop(console: Console, launch_id: str, args: argparse.Namespace) -> None:
    """Names what the stop would hit. Raises RefusedError for what was not agreed to."""
    plan = await console.commands.stop_plan(launch_id)
    name = console.board.launches[launch_id].name
    requests = "unknown" if plan.running_requests is None else str(plan.running_requests)
    _say(f"{name} runs: owner {plan.owner or 'unknown'}, {requests} requests, {plan.running_benches} benchmarks")
    if not plan.ours and plan.processes and args.theirs != name:
        raise RefusedError(
            f"{name} was started by {plan.owner or 'somebody unknown'}", where=launch_id,
            try_=f"--theirs {name} when it is meant",
        )  # fmt: skip
    if (plan.running_requests or plan.running_benches) and not args.busy:
        raise RefusedError(
            f"{name} serves {requests} requests and {plan.running_benches} benchmarks", where=launch_id,
            try_="--busy when it is meant",
        )  # fmt: skip


def _proposed(view: LaunchView) -> dict[str, object]:
    failure = view.reading.failure if view.reading is not None else None
    change = failure.advice.set if failure is not None and failure.advice is not None else None
    if not change:
        raise RefusedError("no change is proposed for it", where=view.launch_id, try_="--set KEY=VALUE")
    _say(f"{view.name}: with " + ", ".join(f"{name} = {value}" for name, value in change.items()))
    return dict(change)


async def _waited(console: Console, launch_id: str, timeout_s: float | None) -> LaunchView:
    from specconsole.cli.wait_progress import WaitProgress
    from specconsole.core.launching.lifecycle import ENDED

    progress = WaitProgress()
    try:
        async with asyncio.timeout(timeout_s):
            while (view := console.board.launches[launch_id]).state not in ENDED and view.state != "answers":
                progress.show(view)
                await asyncio.sleep(0.1)
    except TimeoutError:
        progress.say("no answer in time; the server goes on (specconsole status)")
    progress.clear()
    return console.board.launches[launch_id]
