"""`specconsole check`: everything that can be known of a start before it is made."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

from specconsole.errors import EXIT_CANCELLED, EXIT_OK, BadInputError

if TYPE_CHECKING:
    from specconsole.core.launching.preflight import Finding
    from specconsole.core.launching.profile import Profile
    from specconsole.services.commands import LaunchOrder
    from specconsole.wiring import Console

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
    parser.add_argument(
        "--compare-draft", metavar="PATH", help="how far the tokens of this other draft's map are the same (a note)"
    )
    parser.add_argument(
        "--write-config-copy",
        metavar="DIR",
        help="make DIR on the host: links to the draft's files, and a config.json with as many positions as the "
        "context needs; nothing else is checked",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    try:
        return asyncio.run(_check(args))
    except KeyboardInterrupt:
        print("specconsole check: interrupted", file=sys.stderr)
        return EXIT_CANCELLED


async def _check(args: argparse.Namespace) -> int:
    from specconsole.cli.finding_text import finding_json, finding_line, mends_line, summary_line
    from specconsole.cli.settings import parse_settings
    from specconsole.core.launching.findings import exit_status, gravest_first, mended_by
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

    if args.compare_draft:
        _draft_of(_ordered(order))  # raises where there is none, before the looks
    async with open_supervisor((), read_only=args.read_only, spare_store=True) as console:
        if args.write_config_copy:
            return await _copy(console, order, args)
        findings = await console.commands.preflight(order, found, told)
        if args.compare_draft:
            overlap = await _overlap(console, order, args.compare_draft)
            found(overlap)
            findings = gravest_first((*findings, overlap))
    status = exit_status(findings)
    if args.json:
        fix, whole = mended_by(findings)
        print(json.dumps({"profile": args.profile, "host": host, "exit_status": status,
                          "findings": [finding_json(one) for one in findings], "fix": fix or None,
                          "fix_is_whole": whole}))  # fmt: skip
        return status
    print(f"{args.profile} @ {host}: {summary_line(findings)}")
    if mends := mends_line(findings, args.profile, args.settings, args.host):
        print(mends)
    return status


def _ordered(order: LaunchOrder) -> Profile:
    """The profile as it would be launched."""
    from specconsole.core.launching.command import override
    from specconsole.wiring import profile_files

    return override(profile_files().read(order.profile).on(order.host), order.overrides)


def _draft_of(profile: Profile) -> str:
    from specconsole.core.launching.model_check import draft_path

    path = draft_path(profile)
    if path is None:
        raise BadInputError("the profile names no draft", where=profile.source, try_="--set draft_model=PATH")
    return path


async def _overlap(console: Console, order: LaunchOrder, other: str) -> Finding:
    from specconsole.services.draft_copy import compare_drafts

    tools = await console.supervisor.host(order.host)
    return await compare_drafts(tools.transport, _draft_of(_ordered(order)), other)


async def _copy(console: Console, order: LaunchOrder, args: argparse.Namespace) -> int:
    """A copy of the draft's folder that knows the context, and the setting that takes it."""
    from specconsole.core.launching.findings import fix_text
    from specconsole.core.launching.model_check import context_asked, draft_setting
    from specconsole.services.draft_copy import target_context, write_config_copy

    profile = _ordered(order)
    draft = _draft_of(profile)
    tools = await console.supervisor.host(order.host)
    console.supervisor.may_change(order.host)
    context = context_asked(profile) or await target_context(tools.transport, profile)
    if context is None:
        raise BadInputError("no context length is known", where=profile.source, try_="--set context_length=N")
    path = await write_config_copy(tools.transport, draft, args.write_config_copy, context)
    fix = draft_setting(profile, path)
    if args.json:
        print(json.dumps({"path": path, "positions_for_context": context, "fix": fix}))
    else:
        print(f"{path} knows {context} positions; take it with: {fix_text(fix)}")
        print("what the draft has not learnt it will draft badly: compare the acceptance of long prompts")
    return EXIT_OK
