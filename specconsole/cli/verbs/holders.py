"""`specconsole holders`: who holds a host's ports and GPUs, in full."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from specconsole.errors import EXIT_OK

if TYPE_CHECKING:
    from specconsole.core.hardware.holders import Holder

HELP = "show who holds the ports and GPUs of a host: user, age, command, parent, launch, container"
EPILOG = """exit status: 0 shown (also when nobody holds it), 2 no such GPU or port, 3 host not reachable.
To end one of them: specconsole evict PID"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("host", nargs="?", default="local", metavar="HOST", help="where (default: local)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--port", type=port_number, metavar="N", help="only who listens on this port")
    what.add_argument("--gpu", type=int, metavar="N", help="only who holds memory of this GPU")
    parser.add_argument("--json", action="store_true", help="one JSON object (docs/json.md)")


def port_number(text: str) -> int:
    """From 1 to 65535. Raises argparse.ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 1 to 65535")
    return int(text)


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_look(args))


async def _look(args: argparse.Namespace) -> int:
    from specconsole.errors import SpecconsoleError
    from specconsole.wiring import open_supervisor

    async with open_supervisor((), read_only=True, spare_store=True) as console:
        if console.commands.holders is None:
            raise SpecconsoleError("hosts can't be looked at")
        picture = await console.commands.holders.look(args.host, port=args.port, gpu=args.gpu)
    if args.json:
        shape = {"host": args.host, "holders": [holder_json(one) for one in picture.holders], "notes": picture.notes}
        print(json.dumps(shape))
        return EXIT_OK
    for holder in picture.holders:
        print("\n".join(holder_lines(holder)))
    for note in picture.notes:
        print(f"note: {note}")
    if not picture.holders:
        what = f"port {args.port}" if args.port else f"GPU {args.gpu}" if args.gpu is not None else "a port or a GPU"
        print(f"nobody that can be seen holds {what}")
    return EXIT_OK


def holder_json(holder: Holder) -> dict[str, Any]:
    """The object `holder` of docs/json.md."""
    shape = asdict(holder)
    shape["gpus"] = [{"index": index, "memory_bytes": held} for index, held in holder.gpus]
    return shape


def holder_lines(holder: Holder) -> list[str]:
    """What it holds, who it is, and all around it."""
    from specconsole.core.hardware.holders import holder_line, whose

    lines = [holder_line(holder), f"  {whose(holder)}"]
    if holder.container:
        lines.append(f"  in {holder.container}")
    lines.append(f"  started by pid {holder.ppid}{f': {holder.parent}' if holder.parent else ''}")
    if holder.cwd:
        lines.append(f"  in folder {holder.cwd}")
    if holder.why_not:
        lines.append(f"  can't be ended from here: {holder.why_not}")
    return lines
