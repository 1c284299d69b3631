"""`specconsole logs`: a launch's log, as it is on its host."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_CANCELLED, EXIT_OK, BadInputError

if TYPE_CHECKING:
    from specconsole.services.launch import LaunchWatch
    from specconsole.services.spool import Spool

HELP = "print a launch's log; with -f follow it"
EPILOG = """exit status: 0 printed, 3 host not reachable, 4 no such launch, 130 interrupted.
Escape sequences are taken out; --raw prints the bytes as they are (secrets stay masked)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("launch", metavar="LAUNCH", help="an id, the start of one, or a profile's name")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the launch ends")
    parser.add_argument(
        "-n", "--lines", type=int, metavar="N", help="begin N lines before the end (default: the start)"
    )
    parser.add_argument("--host", default="local", help="where (default: local)")
    parser.add_argument(
        "--probe",
        action="append",
        metavar="NAME",
        help="instead: the numbers that a probe of its profile has read (`all`: of every probe); may be repeated",
    )
    parser.add_argument("--raw", action="store_true", help="bytes instead of clean lines")
    parser.add_argument("--json", action="store_true", help='one object a line: {"line_no": 1, "text": "..."}')


def run(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_logs(args))
    except KeyboardInterrupt:
        return EXIT_CANCELLED


async def _logs(args: argparse.Namespace) -> int:
    from specconsole.wiring import open_supervisor

    if args.raw and args.json:
        raise BadInputError("--raw and --json can't both be given")
    if args.probe and (args.raw or args.follow):
        raise BadInputError("--probe prints what was read so far: not with --raw or --follow")
    if args.lines is not None and args.lines < 0:
        raise BadInputError("--lines takes 0 or more")
    async with open_supervisor((), read_only=True, spare_store=True) as console:
        await console.supervisor.add_host(args.host)
        await console.supervisor.discovered(args.host)
        watch = console.supervisor.find(args.launch)
        await watch.settled()
        if args.probe:
            return _print_probes(watch, args)
        await _print(watch, args)
    return EXIT_OK


def _print_probes(watch: LaunchWatch, args: argparse.Namespace) -> int:
    from specconsole.cli.probe_text import chosen, series_lines, summary_line

    reader = watch.intake.probes
    series = chosen(reader.series() if reader is not None else (), args.probe)
    print("\n".join(series_lines(series, as_json=args.json)))
    if not args.json:
        sys.stdout.flush()
        for one in series:
            print(summary_line(one), file=sys.stderr)
    return EXIT_OK


async def _print(watch: LaunchWatch, args: argparse.Namespace) -> None:
    from specconsole.core.launching.lifecycle import ENDED

    spool = watch.intake.spool
    if spool is None:
        return
    line = max(0, spool.line_count - args.lines) if args.lines is not None else 0
    offset = spool.offset_of(line)
    while True:
        over = watch.state in ENDED
        if over:
            await watch.settled()
        if args.raw:
            offset = _print_raw(spool, offset)
        else:
            # An unfinished last line may still change (a bar): it is printed when it is whole, or nothing follows.
            whole = spool.line_count if over or not args.follow else spool.whole_lines
            line = _print_lines(spool, line, whole, as_json=args.json)
        sys.stdout.flush()
        if over or not args.follow:
            return
        await asyncio.sleep(0.1)


def _print_raw(spool: Spool, offset: int) -> int:
    while data := spool.raw(offset, offset + 65536):
        sys.stdout.buffer.write(data)
        offset += len(data)
    return offset


def _print_lines(spool: Spool, line: int, stop: int, *, as_json: bool) -> int:
    while line < stop:
        for text in spool.lines(line, min(stop, line + 1000)):
            line += 1
            print(json.dumps({"line_no": line, "text": text}) if as_json else text)
    return line
