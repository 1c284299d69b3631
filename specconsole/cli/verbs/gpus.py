"""`specconsole gpus`: what the GPUs of several hosts do, and whose they are."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from specconsole.errors import EXIT_BAD_INPUT, EXIT_OK, EXIT_UNREACHABLE, BadInputError, SpecconsoleError

if TYPE_CHECKING:
    from specconsole.core.views.host import HostView

HELP = "show GPUs, their processes and the machine around them, for several hosts at once"


EPILOG = (
    "exit status: 0 all hosts told, 2 a name or argument is wrong, 3 a host can't be reached (the others are shown), "
    "130 interrupted, 143 ended by SIGTERM; "
    "a GPU tool that is missing or broken is a line of its host"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "hosts",
        nargs="*",
        metavar="HOST",
        help="names from hosts.toml or ssh_config, user@host, local (default: hosts.toml's and local)",
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON list; with --watch one JSON object a line and host"
    )
    parser.add_argument("--watch", action="store_true", help="go on until interrupted")
    parser.add_argument(
        "--every", type=int, metavar="SECONDS", help="with --watch: seconds between looks (default: by number of hosts)"
    )
    parser.add_argument("--history", action="store_true", help="with --json: also ten minutes of history")


def run(args: argparse.Namespace) -> int:
    if args.every is not None and not 1 <= args.every <= 3600:
        raise BadInputError("--every takes 1 to 3600 seconds")
    hosts = list(dict.fromkeys(args.hosts)) or _known_hosts()
    if not args.watch:
        return asyncio.run(_once(hosts, args))
    from specconsole.cli.ending import until_ended

    return asyncio.run(until_ended(_watch(hosts, args)))


def _known_hosts() -> list[str]:
    from specconsole import wiring

    return list(wiring.host_names())


def as_json(view: HostView, *, history: bool) -> dict[str, Any]:
    """A host's view as plain values (docs/json.md): ages instead of this console's clock, histories only when asked."""
    shape = asdict(view)
    now_s = view.as_of_s
    shape["gpu_age_s"] = None if view.gpu_as_of_s is None else round(now_s - view.gpu_as_of_s, 3)
    for key in ("since_s", "stale_since_s", "retry_at_s", "as_of_s", "gpu_as_of_s", "read_only", "detail", "state"):
        del shape[key]
    for gpu in shape["gpus"]:
        for key in [key for key in gpu if "_history" in key]:
            if not history:
                del gpu[key]
        for span in gpu.get("throttle_history", ()):
            start_s, end_s = span.pop("start_s"), span.pop("end_s")
            span |= {"started_ago_s": now_s - start_s, "ended_ago_s": None if end_s is None else now_s - end_s}
    return shape


async def _once(hosts: list[str], args: argparse.Namespace) -> int:
    from specconsole import wiring
    from specconsole.core.hardware.report import gpu_report
    from specconsole.services.host_sampler import look_once

    async def look(name: str) -> tuple[int, dict[str, Any]]:
        """(exit status, JSON of a host); the text for people is printed at once: one slow host holds up no other."""
        try:
            async with wiring.open_transport(name) as transport:
                view = await look_once(transport, wiring.system_clock(), wiring.hardware_tools())
                if not args.json:
                    print("\n".join(gpu_report(view)), flush=True)
                return EXIT_OK, as_json(view, history=args.history)
        except* SpecconsoleError as errors:
            error = errors.exceptions[0]
            status = EXIT_BAD_INPUT if isinstance(error, BadInputError) else EXIT_UNREACHABLE
            problem = str(error)
        except* TimeoutError:
            status, problem = EXIT_UNREACHABLE, f"{name}: no answer in time (try: specconsole hosts check {name})"
        print(f"specconsole gpus: {problem}", file=sys.stderr)
        return status, {"name": name, "error": problem}

    if sys.stderr.isatty():
        print(f"looking at {len(hosts)} host(s) ...", file=sys.stderr, flush=True)
    found = await asyncio.gather(*(look(name) for name in hosts))
    if args.json:
        print(json.dumps([shape for _, shape in found], indent=2))
    return max((status for status, _ in found), default=EXIT_OK)


async def _watch(hosts: list[str], args: argparse.Namespace) -> int:
    from specconsole import wiring
    from specconsole.core.hardware.pace import gpu_interval_s
    from specconsole.services.board import Board
    from specconsole.services.host_sampler import HostSampler

    board, clock = Board(), wiring.system_clock()
    every_s = args.every or gpu_interval_s(len(hosts))
    problems: dict[str, str] = {}

    async def sample(name: str) -> None:
        pause_s = 1.0
        while True:
            try:
                async with wiring.open_transport(name) as transport:
                    problems.pop(name, None)
                    sampler = HostSampler(transport, board, clock, wiring.hardware_tools(), gpu_every_s=every_s)
                    await sampler.run()
            except* SpecconsoleError as errors:
                problems[name] = str(errors.exceptions[0])
            print(f"specconsole gpus: {problems[name]}; trying again in {pause_s:.0f} s", file=sys.stderr)
            await clock.sleep(pause_s)
            pause_s = min(60.0, pause_s * 2)

    async with asyncio.TaskGroup() as group:
        for name in hosts:
            group.create_task(sample(name))
        group.create_task(_print_changes(hosts, board, every_s, args))
    return EXIT_OK


async def _print_changes(hosts: list[str], board: Any, every_s: int, args: argparse.Namespace) -> None:
    from specconsole.core.hardware.report import gpu_report

    shown: dict[str, HostView] = {}
    on_screen = sys.stdout.isatty() and not args.json
    while True:
        fresh = [board.hosts[name] for name in hosts if name in board.hosts and shown.get(name) != board.hosts[name]]
        # The first rounds are worth printing only once the GPU tool, or its absence, is known.
        fresh = [view for view in fresh if view.gpus or view.gpu_note]
        for view in fresh:
            shown[view.name] = view
            if args.json:
                print(json.dumps(as_json(view, history=args.history)), flush=True)
        if fresh and not args.json:
            lines = [line for name in hosts if name in shown for line in gpu_report(shown[name])]
            print(("\x1b[H\x1b[2J" if on_screen else "") + "\n".join(lines), flush=True)
        await asyncio.sleep(every_s)
