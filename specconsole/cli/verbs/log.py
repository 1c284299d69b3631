"""`specconsole log`: what a server's log means."""

from __future__ import annotations

import argparse

HELP = "read a server's log and say what it means"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE, -, HOST:PATH and how to read them."""
    parser.add_argument("log", metavar="FILE", help="a file, - for standard input, or HOST:/path on that host")
    parser.add_argument("--json", action="store_true", help="print the reading as JSON")
    parser.add_argument(
        "--at-end",
        choices=("live", "dead"),
        default="live",
        help="live: the file is still being written (default); dead: the process is known to be gone",
    )
    parser.add_argument("--exit-code", type=int, default=None, metavar="N", help="the known exit status")
    parser.add_argument("--engine", default=None, metavar="E", help="read as this engine's log instead of finding out")
    parser.add_argument("--follow", action="store_true", help="go on reading as the file grows")


def run(args: argparse.Namespace) -> int:
    import json

    from specconsole.core.reading.reading import read_bytes

    with open(args.log, "rb") as file:
        data = file.read()
    reading = read_bytes(data, dead=args.at_end == "dead" or args.exit_code is not None, exit_code=args.exit_code)
    print(json.dumps(reading.to_json()))
    return 0
