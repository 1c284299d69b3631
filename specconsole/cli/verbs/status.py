"""`specconsole status`: every launch of a host, as it stands."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_FAILED, EXIT_OK, EXIT_UNREACHABLE, SpecconsoleError

if TYPE_CHECKING:
    from specconsole.core.launching.annotations import Annotations
    from specconsole.core.views.launch import LaunchView

HELP = "show the launches of hosts: state, phase, ETA, owner"
EPILOG = """exit status: 0 shown (with a LAUNCH: it answers), 1 the LAUNCH named does not answer,
3 a host is not reachable, 4 no such launch"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("launch", nargs="?", metavar="LAUNCH", help="only this one: id, start of an id, or profile")
    parser.add_argument("--host", action="append", metavar="HOST", help="where; may be repeated (default: local)")
    parser.add_argument("--all", action="store_true", help="also those that have ended")
    parser.add_argument("--json", action="store_true", help="one JSON list (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_status(args))


async def _status(args: argparse.Namespace) -> int:
    from specconsole.cli.launch_text import launch_json
    from specconsole.core.launching.account_text import account_lines
    from specconsole.wiring import open_supervisor

    hosts = tuple(dict.fromkeys(args.host or ["local"]))
    worst = EXIT_OK
    async with open_supervisor((), read_only=args.read_only, spare_store=True) as console:
        for host in hosts:
            try:
                await console.supervisor.add_host(host)
                await console.supervisor.discovered(host)
            except SpecconsoleError as error:
                print(f"specconsole status: {error}", file=sys.stderr)
                worst = EXIT_UNREACHABLE
        chosen = (
            [console.supervisor.find(args.launch).launch_id]
            if args.launch
            else [watch.launch_id for watch in console.supervisor.watches.values() if args.all or not watch.record.over]
        )
        for launch_id in chosen:
            await console.supervisor.watches[launch_id].settled()
            if args.launch:
                await console.supervisor.watches[launch_id].account.settled()
        views = [console.board.launches[launch_id] for launch_id in sorted(chosen)]
        said = {view.launch_id: await console.history.notes.of(view.launch_id) for view in views}
    views = [replace(view, tags=said[view.launch_id].tags(view.tags)) for view in views]
    if args.json:
        shapes = [{**launch_json(view), "notes": [asdict(n) for n in said[view.launch_id].notes]} for view in views]
        print(json.dumps(shapes))
    else:
        for line in _table(views, said):
            print(line)
        for view in views if args.launch else []:
            for line in account_lines(view.account):
                print(f"  {line}")
        if not views and worst == EXIT_OK:
            print("no launch runs here" if not args.all else "no launches here")
    if args.launch and not any(view.state == "answers" for view in views):
        return worst or EXIT_FAILED
    return worst


def _table(views: list[LaunchView], said: Mapping[str, Annotations]) -> list[str]:
    from specconsole.cli.launch_text import advice_text, state_text, when_text

    lines: list[str] = []
    for view in views:
        mine = "" if view.ours else f"  by {view.owner or 'unknown'}"
        lines.append(
            f"{view.launch_id}  {view.name} @ {view.host}:{view.port or '-'}  {state_text(view)}"
            f"  since {when_text(view.started_at_s or view.ended_at_s)}{mine}"
        )
        lines += [f"  tags: {' '.join(view.tags)}"] if view.tags else []
        lines += [f"  note: {' '.join(note.text.split())}" for note in said[view.launch_id].notes]
        lines += [f"  left over: {one}" for one in view.left_over]
        if view.state == "failed" and (advice := advice_text(view)):
            lines.append(f"  try: {advice}")
    return lines
