"""`specconsole evict`: ends one process that holds a port or a GPU and is not ours, after it was typed."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.cli.arguments import seconds
from specconsole.errors import EXIT_CANCELLED, EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from specconsole.core.hardware.holders import Holder

HELP = "end one process that holds a port or a GPU and is not ours; it must be typed to confirm"
EPILOG = """exit status: 0 it is gone, 1 it survived, 3 host not reachable, 5 refused (not confirmed, holds nothing, not
to be ended from here, another user's), 130 interrupted. Launches of yours: specconsole stop"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("pid", type=int, metavar="PID", help="as `specconsole holders` shows it")
    parser.add_argument("--host", default="local", help="where (default: local)")
    parser.add_argument(
        "--confirm", metavar="PID", help="for scripts: its pid or short name once more, instead of typing it"
    )
    parser.add_argument(
        "--grace", type=seconds, default=10.0, metavar="SECONDS", help="between TERM and KILL (default: 10)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_evict(args))
    except KeyboardInterrupt:
        print("specconsole evict: interrupted; what was sent was sent (specconsole holders)", file=sys.stderr)
        return EXIT_CANCELLED


async def _evict(args: argparse.Namespace) -> int:
    from specconsole.cli.verbs.holders import holder_json, holder_lines
    from specconsole.errors import RefusedError, SpecconsoleError
    from specconsole.wiring import open_supervisor

    def told(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    async with open_supervisor((), read_only=args.read_only, spare_store=True) as console:
        commands = console.commands.holders
        if commands is None:
            raise SpecconsoleError("hosts can't be looked at")
        picked = await commands.one(args.host, args.pid)
        print("\n".join(holder_lines(picked)), file=sys.stderr, flush=True)
        if picked.why_not:
            raise RefusedError(f"pid {picked.pid}: {picked.why_not}", where=args.host)
        typed = args.confirm if args.confirm is not None else await _ask(picked)
        done = await commands.evict(args.host, picked, typed, told, grace_s=args.grace)
    if args.json:
        shape = {"pid": picked.pid, "gone": done.gone, "killed": done.killed, "text": done.text}
        print(json.dumps({**shape, "left": [holder_json(one) for one in done.left]}))
    else:
        print(done.text)
    return EXIT_OK if done.gone else EXIT_FAILED


async def _ask(holder: Holder) -> str:
    """What the person types; Ctrl-C ends the wait. Raises RefusedError where nobody can be asked."""
    import os

    from specconsole.errors import RefusedError

    if not sys.stdin.isatty():
        raise RefusedError(
            f"ending pid {holder.pid} must be confirmed", try_=f"--confirm {holder.pid} when it is meant"
        )
    print(f"type {holder.pid} or {holder.name} to end it: ", end="", file=sys.stderr, flush=True)
    # A terminal gives whole lines; read in a thread, it would keep the process after Ctrl-C.
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), there.set)
    try:
        await there.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return os.read(sys.stdin.fileno(), 4096).decode("utf-8", "replace")
