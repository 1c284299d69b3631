"""`specconsole check`: everything that can be known of a start before it is made."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_CANCELLED

if TYPE_CHECKING:
    from specconsole.core.launching.preflight import Finding

HELP = "look at everything that could forbid a start: rules, flags, files, draft, ports, memory"
EPILOG = """exit status: 0 nothing stands against the start, 1 something forbids it, 2 profile or setting wrong, 3 host
not reachable, 4 no such profile, 6 warnings only (it will start, but not quite as asked, or something is not known)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("profile", metavar="PROFILE", help="a profile's name, or a TOML file")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="change a setting"
    )
    parser.add_argument("--host", help="where (default: the profile's host, else local)")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_check(args))
    except KeyboardInterrupt:
        print("specconsole check: interrupted", file=sys.stderr)
        return EXIT_CANCELLED


async def _check(args: argparse.Namespace) -> int:
    from specconsole.cli.finding_text import finding_json, finding_line, summary_line
    from specconsole.cli.settings import parse_settings
    from specconsole.core.launching.findings import exit_status
    from specconsole.services.commands import LaunchOrder
    from specconsole.wiring import open_supervisor, profile_files

    overrides = parse_settings(args.settings)
    host = args.host or profile_files().read(args.profile).host or "local"
    order = LaunchOrder(args.profile, host, overrides)

    def found(finding: Finding) -> None:
        # A person sees each as it comes in; the whole list is short.
        if not args.json:
            print(finding_line(finding), flush=True)

    def told(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    async with open_supervisor((), read_only=args.read_only, spare_store=True) as console:
        findings = await console.commands.preflight(order, found, told)
    if args.json:
        status = exit_status(findings)
        print(json.dumps({"profile": args.profile, "host": host, "exit_status": status,
                          "findings": [finding_json(one) for one in findings]}))  # fmt: skip
    else:
        print(f"{args.profile} @ {host}: {summary_line(findings)}")
    return exit_status(findings)
