"""`specconsole bench`: measures a server, on its own host, and keeps the result."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specconsole.errors import EXIT_CANCELLED, EXIT_FAILED, EXIT_OK, BadInputError

if TYPE_CHECKING:
    from specconsole.core.measuring.result import Result
    from specconsole.core.measuring.run_plan import BenchOrder
    from specconsole.wiring import Console

HELP = "measure a launch, or any OpenAI-compatible server, at rising concurrency"
EPILOG = """The load generator runs on the server's host, detached: a cut link or a killed console stops no run, and any
console finds it again (bench --resume, results list). Ctrl-C ends the run and keeps what was measured.
exit status: 0 measured, 1 nothing could be measured, 2 a wrong argument, workload or model, 3 host not reachable,
4 no such launch, 5 refused (it does not answer), 130 interrupted (what was measured is kept)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "target", nargs="?", metavar="LAUNCH|URL", help="an id, a profile's name, or http[s]://HOST:PORT"
    )
    parser.add_argument("--workload", default="quick", metavar="W", help="a workload's name or TOML file (quick)")
    parser.add_argument("--concurrency", metavar="N,N", help="requests at once: 1,2,4 (default: the workload's)")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="of each point (3)")
    parser.add_argument(
        "--until-ci", metavar="P%", help="stop early once throughput is known to P%% (at most --repeats)"
    )
    parser.add_argument("--api", choices=("completions", "chat", "generate", "completion"), help="which endpoint")
    parser.add_argument("--model", help="the model's name in the requests (default: the first that is served)")
    parser.add_argument("--key-file", metavar="FILE", help="a file with the server's API key")
    parser.add_argument("--ca-file", metavar="FILE", help="for https: authorities (PEM) instead of the system's")
    parser.add_argument("--host", default="local", help="where the server runs, or from where URL is reached (local)")
    parser.add_argument("--from-here", action="store_true", help="send from this machine through the tunnel; marked so")
    parser.add_argument("--keep-text", action="store_true", help="keep the answers, for `results lossless`")
    parser.add_argument("--note", default="", help="stands with the result")
    parser.add_argument("--detach", action="store_true", help="start it, print its id, and leave")
    parser.add_argument("--resume", metavar="ID", help="watch a run that is there already")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    if (args.target is None) == (args.resume is None):
        raise BadInputError("name a launch or a URL, or --resume ID", try_="specconsole status")
    try:
        return asyncio.run(_bench(args))
    except asyncio.CancelledError:
        return EXIT_CANCELLED


async def _bench(args: argparse.Namespace) -> int:
    from specconsole.services.measuring_commands import budget_lines
    from specconsole.wiring import open_supervisor

    order = None if args.resume else order_of(args)
    key = "" if args.key_file is None else await asyncio.to_thread(_read_key, args.key_file)
    ca_pem = None if args.ca_file is None else await asyncio.to_thread(_read_text, args.ca_file)
    async with open_supervisor((), read_only=args.read_only) as console:
        await console.supervisor.add_host(args.host)
        if order is None:
            await console.benches.look(args.host)
            return await _follow(console, args.resume, args)
        if args.target.startswith(("http://", "https://")):
            prepared = await console.benches.prepare_url(
                args.target, args.host, order, key=key, model=args.model, ca_pem=ca_pem
            )
            host = args.host
        else:
            await console.supervisor.discovered(args.host)
            await console.supervisor.find(args.target).settled()
            prepared, host = await console.benches.prepare_launch(args.target, order, model=args.model)
        for line in budget_lines(prepared, host):
            print(line, file=sys.stderr)
        bench_id = await console.benches.start(prepared, host, from_here=args.from_here)
        if args.detach:
            print(json.dumps({"bench_id": bench_id, "host": host}) if args.json else bench_id)
            return EXIT_OK
        print(f"run {bench_id} on {host}; Ctrl-C ends it and keeps what was measured", file=sys.stderr)
        return await _follow(console, bench_id, args)


def order_of(args: argparse.Namespace) -> BenchOrder:
    """What was asked for. Raises BadInputError."""
    from specconsole.core.measuring.run_plan import BenchOrder
    from specconsole.core.measuring.statistics import FIRST_LOOK

    levels: tuple[int, ...] = ()
    if args.concurrency:
        words = [word.strip() for word in args.concurrency.split(",")]
        if not all(word.isdigit() and 1 <= int(word) <= 8192 for word in words):
            raise BadInputError(f"--concurrency can't be {args.concurrency}", try_="--concurrency 1,2,4,8")
        levels = tuple(dict.fromkeys(int(word) for word in words))
    if not 1 <= args.repeats <= 1000:
        raise BadInputError(f"--repeats can't be {args.repeats}", try_="1 to 1000")
    ratio = None
    if args.until_ci:
        try:
            ratio = float(args.until_ci.strip().rstrip("%")) / 100.0
        except ValueError:
            ratio = 0.0
        if not 0.0 < ratio <= 0.5:
            raise BadInputError(f"--until-ci can't be {args.until_ci}", try_="--until-ci 3%")
        if args.repeats <= FIRST_LOOK:
            raise BadInputError(f"--until-ci looks from the {FIRST_LOOK}th repeat on", try_="--repeats 20")
    return BenchOrder(args.workload, levels, args.repeats, ratio, args.api, args.note, args.keep_text)


def _read_text(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        raise BadInputError(f"can't be read: {reason}", where=path) from None


def _read_key(path: str) -> str:
    key = _read_text(path).strip()
    if not key or any(ord(c) < 32 for c in key):
        raise BadInputError("holds no usable key", where=path)
    return key


async def _follow(console: Console, bench_id: str, args: argparse.Namespace) -> int:
    from specconsole.cli.bench_progress import BenchProgress

    progress = BenchProgress()
    me = asyncio.current_task()
    assert me is not None
    status = EXIT_OK
    try:
        result = await console.benches.wait(bench_id, progress.show)
    except asyncio.CancelledError:
        me.uncancel()
        progress.say("interrupted: ending the run, keeping what was measured (Ctrl-C again leaves it running)")
        result = await console.benches.cancel(bench_id)
        status = EXIT_CANCELLED
    progress.clear()
    await _print(console, result, args)
    if status == EXIT_OK and (not result.points or result.ended in ("failed", "server-died")):
        status = EXIT_FAILED
    return status


async def _print(console: Console, result: Result, args: argparse.Namespace) -> None:
    from specconsole.cli.result_text import result_json, table_text
    from specconsole.core.measuring.rows import baseline_of, merge_launches

    if args.json:
        print(json.dumps(result_json(result)))
        return
    every: list[Any] = list(await console.benches.results())
    same = [
        r for r in every
        if r.conditions.workload_hash == result.conditions.workload_hash or r.result_id == result.result_id
    ]  # fmt: skip
    rows = merge_launches(same)
    for line in table_text(rows, "output_tok_s", baseline_of(rows)):
        print(line)
    print(f"kept as {result.result_id} ({result.ended}): specconsole results show {result.result_id}", file=sys.stderr)
