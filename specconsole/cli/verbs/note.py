"""`specconsole note`: what a person has to say about a launch, and its tags."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_OK, RefusedError, SpecconsoleError

if TYPE_CHECKING:
    from specconsole.wiring import Console

HELP = "write a note on a launch, tag it, or show what was written"
EPILOG = """A note is kept in this console's store first, and then in the launch's folder on its host, where every
console of the account finds it; while the host can't be reached it waits here. Without a text and tags: shows them.
exit status: 0 kept (also when the host could not be told yet), 2 no note or tag can be that, 4 no such launch,
5 this console is read-only"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("launch", metavar="LAUNCH", help="an id, the start of one, `last`, or a profile's name")
    parser.add_argument("text", nargs="*", metavar="TEXT", help="the note")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", help="put a tag on; may be repeated")
    parser.add_argument("--untag", action="append", default=[], metavar="TAG", help="take a tag off; may be repeated")
    parser.add_argument("--undo", action="store_true", help="take back your last note or tag on it")
    parser.add_argument("--host", default="local", help="where to look for a launch that is not known yet")
    parser.add_argument("--offline", action="store_true", help="do not tell the host now")
    parser.add_argument("--json", action="store_true", help="one JSON object (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_note(args))


async def _note(args: argparse.Namespace) -> int:
    from specconsole.cli.launch_words import meant_launch
    from specconsole.core.hosts.plain_text import one_line
    from specconsole.core.launching.annotations import checked_tag
    from specconsole.wiring import open_supervisor

    text = " ".join(args.text)
    on, off = [checked_tag(word) for word in args.tag], [checked_tag(word) for word in args.untag]
    changes = bool(args.text or on or off or args.undo)
    if changes and args.read_only:
        raise RefusedError("this console is read-only", try_="start it without --read-only")
    async with open_supervisor((), read_only=args.read_only) as console:
        launch_id = (await meant_launch(console, args.launch, args.host)).launch_id
        notes = console.history.notes
        if args.undo:
            await notes.undo(launch_id)
        if args.text:
            await notes.note(launch_id, text)
        await notes.tag(launch_id, on, off)
        why_not = ""
        if changes:
            # From here on it is kept, whatever becomes of the rest.
            print(f"kept: {launch_id}", file=sys.stderr, flush=True)
            why_not = "" if args.offline else await _tell_host(console, launch_id)
        row = await console.history.find(launch_id)
        waiting = launch_id in await console.history.store.annotations_to_send()
    if why_not:
        print(f"specconsole note: the launch's folder has it not yet: {why_not}", file=sys.stderr)
    if args.json:
        shape = {"schema": 1, "launch_id": launch_id, "tags": list(row.tags), "on_host": not waiting,
                 "notes": [asdict(note) for note in row.annotations.notes]}  # fmt: skip
        print(json.dumps(shape))
        return EXIT_OK
    print(one_line(f"{row.launch_id}  {row.profile} @ {row.host}  {row.state_text}"))
    if row.tags:
        print("tags: " + " ".join(row.tags))
    for note in row.annotations.notes:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(note.at_s))
        print(f"{when}  {note.by}: {note.text}")
    return EXIT_OK


async def _tell_host(console: Console, launch_id: str) -> str:
    row = await console.history.find(launch_id)
    try:
        await console.supervisor.host(row.host)
        return await console.history.send(launch_id)
    except SpecconsoleError as error:
        return str(error)
