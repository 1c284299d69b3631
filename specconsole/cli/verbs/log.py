"""`specconsole log`: what a server's log means, of a file, of standard input, or of a file on a host."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_OK, BadInputError

if TYPE_CHECKING:
    from specconsole.core.reading.model import Reading
    from specconsole.core.reading.reading import Reader

HELP = "read a server's log and say what it means"
_BLOCK_BYTES = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE, -, HOST:PATH and how to read them."""
    parser.add_argument("log", metavar="FILE", help="a file, - for standard input, or HOST:/path on that host")
    parser.add_argument("--json", action="store_true", help="print the reading as JSON (with --follow one a line)")
    parser.add_argument(
        "--at-end",
        choices=("live", "dead"),
        default="live",
        help="live: the file is still being written (default); dead: the process is known to be gone",
    )
    parser.add_argument("--exit-code", type=int, default=None, metavar="N", help="the server's exit status, if known")
    parser.add_argument("--engine", default=None, metavar="E", help="read as this engine's log, do not find out")
    parser.add_argument("--follow", action="store_true", help="go on reading as the file grows; Ctrl-C ends it")


def run(args: argparse.Namespace) -> int:
    """Exit status 0: read; 2: it can't be read."""
    from specconsole.core.reading.dialect import folder_names, load
    from specconsole.core.reading.reading import Reader

    if args.engine is not None and load(args.engine) is None:
        raise BadInputError(
            f"no engine of that name: {args.engine!r}", try_=", ".join(folder_names()).replace("_", "-")
        )
    reader = Reader(engine=args.engine)
    remote = _remote(args.log)
    if args.log == "-":
        _read_stdin(reader, args)
    elif remote is not None:
        import asyncio

        from specconsole.cli.log_sources import read_from_host

        asyncio.run(read_from_host(*remote, reader, _Narrator(args, reader)))
    else:
        _read_local(args.log, reader, args)
    if not args.follow:
        _print(_reading(reader, args), args)
    return EXIT_OK


def _remote(name: str) -> tuple[str, str] | None:
    """HOST and PATH; None for a file of this machine (also one with a colon in its name that exists)."""
    import os

    if ":" not in name or os.path.exists(name):
        return None
    from specconsole.core.hosts.names import split_host_path

    return split_host_path(name)


def _reading(reader: Reader, args: argparse.Namespace, now_s: float | None = None) -> Reading:
    dead = args.at_end == "dead" or args.exit_code is not None
    return reader.reading(now_s, dead=dead, exit_code=args.exit_code)


def _print(reading: Reading, args: argparse.Namespace) -> None:
    if args.json:
        print(json.dumps(reading.to_json(), ensure_ascii=False, allow_nan=False), flush=args.follow)
        return
    import os
    import shutil

    from specconsole.cli.reading_text import describe

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 120
    print(describe(reading, width=max(60, width), colour=colour))


class _Narrator:
    """Says what is new while a file is followed: a line when the phase changes or a second has passed."""

    def __init__(self, args: argparse.Namespace, reader: Reader) -> None:
        self.follow: bool = args.follow
        self._args, self._reader = args, reader
        self._last = ""
        self._said_at_s = -1e9

    def say(self, now_s: float) -> None:
        """Called whenever bytes came or time passed."""
        if not self.follow or now_s - self._said_at_s < 1.0:
            return
        self._said_at_s = now_s
        reading = _reading(self._reader, self._args, now_s)
        if self._args.json:
            # What only says how long nothing happened is no news.
            shape = {**reading.to_json(), "silent_s": None, "ranks": None}
            text = json.dumps(shape, sort_keys=True, default=str)
            if text != self._last:
                _print(reading, self._args)
        else:
            from specconsole.cli.reading_text import one_line

            text = one_line(reading)
            if text != self._last:
                print(text, flush=True)
        self._last = text


def _read_stdin(reader: Reader, args: argparse.Namespace) -> None:
    import os
    import time

    narrator = _Narrator(args, reader)
    # Raw reads: what a pipe has now, not a full block.
    while data := os.read(sys.stdin.fileno(), _BLOCK_BYTES):
        reader.feed(data, time.monotonic() if args.follow else None)
        narrator.say(time.monotonic())
    if args.follow:
        _print(_reading(reader, args), args)


def _read_local(path: str, reader: Reader, args: argparse.Namespace) -> None:
    try:
        with open(path, "rb", buffering=0) as file:
            while data := file.read(_BLOCK_BYTES):
                reader.feed(data)
    except OSError as error:
        raise BadInputError(error.strerror or str(error), where=path, try_="the path of a log file, or -") from error
    if args.follow:
        from specconsole.cli.log_sources import follow_local

        follow_local(path, reader, _Narrator(args, reader))
