"""`specconsole profiles adaptive`: the engines' adaptive speculation, written from measured results."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

from specconsole.errors import EXIT_OK, BadInputError, FileMissingError, RefusedError

if TYPE_CHECKING:
    from specconsole.core.launching.profile import Profile
    from specconsole.core.measuring.batch_schedule import BatchSchedule
    from specconsole.wiring import Console

HELP = "write the engine's own adaptive speculation (steps by batch size) from measured results"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="PROFILE", help="the SGLang or vLLM profile that it is for")
    parser.add_argument(
        "--from", dest="results", nargs="+", required=True, metavar="RESULT",
        help="results of chains of different lengths, and of plain decoding, of the same workload",
    )  # fmt: skip
    parser.add_argument(
        "--slack", type=float, default=0.05, metavar="RATIO",
        help="SGLang may choose among lengths that are slower than the fastest by this share (0.05)",
    )  # fmt: skip
    parser.add_argument("--out", metavar="PATH", help="write SGLang's file there, on the host")
    parser.add_argument("--host", help="where --out is (default: the profile's host, else local)")
    parser.add_argument("--save", metavar="NEW", help="write a profile of this name that builds on PROFILE and uses it")


def run(args: argparse.Namespace) -> int:
    if not 0 <= args.slack <= 1:
        raise BadInputError(f"--slack can't be {args.slack:g}", try_="0 to 1")
    return asyncio.run(_adaptive(args))


async def _adaptive(args: argparse.Namespace) -> int:
    from specconsole.cli.profile_words import new_file
    from specconsole.core.launching.adaptive import adaptive_settings, sglang_config
    from specconsole.core.launching.findings import fix_text
    from specconsole.core.measuring.batch_schedule import batch_schedule
    from specconsole.services.bench_store import find_result
    from specconsole.wiring import open_supervisor, profile_files

    profile = profile_files().read(args.name)
    host = args.host or profile.host or "local"
    profile = profile.on(host)
    new = new_file(args.save) if args.save else None
    if profile.engine == "vllm" and args.out:
        raise BadInputError("vLLM has no such file: it is a setting", try_="without --out")
    if profile.engine == "sglang" and args.save and not args.out:
        raise BadInputError("SGLang reads a file that must be on the host", try_="--out PATH")
    async with open_supervisor((), read_only=args.read_only) as console:
        known = await console.benches.results()
        schedule = batch_schedule([find_result(known, word) for word in args.results], slack_ratio=args.slack)
        config = sglang_config(schedule) if profile.engine == "sglang" else None
        settings = adaptive_settings(profile, schedule, args.out)
        if args.out:
            await _write(console, host, args.out, json.dumps(config, indent=2) + "\n", read_only=args.read_only)
    if new is not None:
        _save(new, args.name, profile, settings)
    if args.json:
        print(json.dumps({"engine": profile.engine, "tiers": _tiers(schedule), "notes": list(schedule.notes),
                          "config": config, "path": args.out, "settings": settings,
                          "profile": args.save}))  # fmt: skip
        return EXIT_OK
    for tier in schedule.tiers:
        what = f"{tier.steps} draft steps" if tier.steps else "no draft"
        near = [str(one) for one in tier.candidates if one != tier.steps]
        print(f"batch {tier.first} to {tier.last}: {what}" + (f" (near: {', '.join(near)})" if near else ""))
    for note in schedule.notes:
        print(f"specconsole profiles: note: {note}", file=sys.stderr)
    if config is not None and not args.out:
        print(json.dumps(config, indent=2))
    print(str(new) if new is not None else fix_text({k: v for k, v in settings.items() if v is not None}))
    return EXIT_OK


def _tiers(schedule: BatchSchedule) -> list[dict[str, Any]]:
    return [{"first": tier.first, "last": tier.last, "steps": tier.steps, "candidates": list(tier.candidates)}
            for tier in schedule.tiers]  # fmt: skip


async def _write(console: Console, host: str, path: str, text: str, *, read_only: bool) -> None:
    tools = await console.supervisor.host(host)
    view = console.board.hosts.get(host)
    if read_only or (view is not None and view.read_only):
        raise RefusedError("this console may change nothing there", where=host, try_="without --read-only")
    try:
        await (await tools.transport.open_file(path)).aclose()
    except FileMissingError:
        await tools.transport.write_file(path, text.encode(), mode=0o644)
        return
    raise RefusedError("there is such a file, and files are not overwritten", where=f"{host}:{path}",
                       try_="another name")  # fmt: skip


def _save(path: Any, extends: str, profile: Profile, settings: dict[str, Any]) -> None:
    """A profile of its own with what differs."""
    from specconsole.cli.profile_words import write_new

    table: dict[str, Any] = {"extends": extends, "description": "steps by batch size, as measured"}
    gone = [f"args.{key}" for key, value in settings.items() if value is None and key in profile.args]
    if gone:
        table["unset"] = gone
    table["args"] = {key: value for key, value in settings.items() if value is not None}
    write_new(path, table)
