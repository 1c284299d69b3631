"""`specconsole launch`: starts servers from profiles, and waits until they answer when asked to."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.cli.arguments import seconds
from specconsole.errors import EXIT_CANCELLED, EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from specconsole.cli.wait_progress import WaitProgress
    from specconsole.core.views.launch import LaunchView
    from specconsole.services.commands import LaunchOrder
    from specconsole.wiring import Console

HELP = "start servers from profiles; with --wait until they answer"
EPILOG = """exit status: 0 started (with --wait: answers), 1 failed or does not answer, 2 profile or setting wrong,
3 host not reachable, 4 no such profile, 5 refused (port held, lock taken), 130 interrupted (the servers go on)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("profiles", nargs="+", metavar="PROFILE", help="a profile's name, or a TOML file")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="change a setting"
    )
    parser.add_argument("--host", help="where (default: the profile's host, else local)")
    parser.add_argument("--wait", action="store_true", help="until it answers: port, health and a request of 16 tokens")
    parser.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="with --wait: give up after (the server goes on)"
    )
    parser.add_argument(
        "--when-free",
        action="store_true",
        help="wait on the host until the GPUs and ports it needs are free, then start; goes on without this console",
    )
    parser.add_argument(
        "--look-every", type=seconds, default=10.0, metavar="SECONDS", help="with --when-free: between looks (10)"
    )
    parser.add_argument(
        "--allow-key-argument",
        action="store_true",
        help="let a key go as an argument, where everybody on the host sees it (`ps`)",
    )
    parser.add_argument(
        "--no-preflight", action="store_true", help="look at nothing before the start (see `specconsole check`)"
    )
    parser.add_argument("--dry-run", action="store_true", help="look at everything, start nothing")
    parser.add_argument("--json", action="store_true", help="one JSON list on standard output (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_launch(args))
    except KeyboardInterrupt:
        print("specconsole launch: interrupted; what was started goes on (specconsole status)", file=sys.stderr)
        return EXIT_CANCELLED


async def _launch(args: argparse.Namespace) -> int:
    from specconsole.cli.launch_text import launch_json
    from specconsole.cli.settings import parse_settings
    from specconsole.cli.wait_progress import WaitProgress
    from specconsole.services.commands import LaunchOrder
    from specconsole.wiring import open_supervisor, profile_files

    overrides = parse_settings(args.settings)
    files = profile_files()
    orders = [
        LaunchOrder(
            name,
            args.host or files.read(name).host or "local",
            overrides,
            not args.no_preflight,
            when_free=args.when_free,
            look_every_s=args.look_every,
            allow_key_argument=args.allow_key_argument,
        )
        for name in args.profiles
    ]
    progress = WaitProgress()
    async with open_supervisor((), read_only=args.read_only, spare_store=True) as console:
        if args.dry_run:
            return await _dry_run(console, orders, as_json=args.json)
        ids = [await console.commands.launch(order, progress.say) for order in orders]
        if args.wait:
            await _wait(console, ids, progress, args.timeout)
        views = [console.board.launches[launch_id] for launch_id in ids]
    if args.json:
        print(json.dumps([launch_json(view) for view in views]))
    else:
        for view in views:
            print(view.launch_id)
    if not args.wait:
        return EXIT_OK
    return EXIT_OK if all(view.state == "answers" for view in views) else EXIT_FAILED


async def _dry_run(console: Console, orders: list[LaunchOrder], *, as_json: bool) -> int:
    from dataclasses import asdict

    from specconsole.core.launching.preflight import stops

    bad = False
    shapes = []
    for order in orders:
        findings = await console.commands.preflight(order)
        bad = bad or bool(stops(findings))
        shapes.append({"profile": order.profile, "host": order.host, "findings": [asdict(one) for one in findings]})
        if not as_json:
            for one in findings:
                hint = f" (try: {one.try_})" if one.try_ else ""
                print(f"{order.profile} @ {order.host}: {one.severity}: {one.text}{hint}")
    if as_json:
        print(json.dumps(shapes))
    return EXIT_FAILED if bad else EXIT_OK


async def _wait(console: Console, ids: list[str], progress: WaitProgress, timeout_s: float | None) -> None:
    from specconsole.cli.launch_text import advice_text, failure_text
    from specconsole.core.launching.lifecycle import ENDED

    def over(view: LaunchView) -> bool:
        return view.state == "answers" or view.state in ENDED

    try:
        async with asyncio.timeout(timeout_s):
            while True:
                views = [console.board.launches[launch_id] for launch_id in ids]
                waiting = [view for view in views if not over(view)]
                for view in waiting[:1] if sys.stderr.isatty() else waiting:
                    progress.show(view)
                if not waiting:
                    break
                await asyncio.sleep(0.1)
    except TimeoutError:
        progress.say(f"no answer within {timeout_s:.0f} s; the server goes on (specconsole status)")
    progress.clear()
    for view in (console.board.launches[launch_id] for launch_id in ids):
        if view.state == "answers":
            after = "" if view.answered_after_s is None else f" after {view.answered_after_s:.1f} s"
            progress.say(f"{view.name}: answers{after} on port {view.port} ({view.health_detail})")
        elif view.state in ENDED:
            progress.say(f"{view.name}: {view.state}: {failure_text(view)}")
            if advice := advice_text(view):
                progress.say(f"{view.name}: try: {advice}")
