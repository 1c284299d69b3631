"""`specconsole hosts`: which machines there are, whether they work, and whom to trust."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

from specconsole.errors import (
    EXIT_BAD_INPUT,
    EXIT_CANCELLED,
    EXIT_FAILED,
    EXIT_OK,
    EXIT_UNREACHABLE,
    BadInputError,
    HostKeyUnknownError,
    RefusedError,
    SpecconsoleError,
)

if TYPE_CHECKING:
    from specconsole.adapters.ssh import SshLink
    from specconsole.services.host_check import Checked

HELP = "list, add, remove, check and trust the hosts over SSH"
EPILOG = """Hosts are read from hosts.toml in the config folder (written by hand, never changed by the console) and from
hosts.added.toml beside it (what `add` added). Any alias of ~/.ssh/config and any user@host works without being added.

exit status: 0 done (check: nothing broken), 1 check found something broken, 2 a file or argument is wrong,
3 a host can't be reached, trusted or logged in to, 4 no such host, 5 refused"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listing = actions.add_parser("list", help="all hosts, and the aliases of ~/.ssh/config")
    add = actions.add_parser("add", help="remember a host")
    add.add_argument("name", metavar="NAME", help="what to call it")
    add.add_argument("--ssh", default="", metavar="TARGET", help="alias or user@host[:port] (default: the name itself)")
    add.add_argument("--host-read-only", action="store_true", help="never launch or stop there from this console")
    add.add_argument("--on-demand", action="store_true", help="connect only when asked to, not at the window's start")
    add.add_argument("--note", default="", help="a line of your own")
    remove = actions.add_parser("rm", help="forget a host that was added")
    remove.add_argument("name", metavar="NAME")
    check = actions.add_parser("check", help="what works on a host, what is missing, what to do")
    check.add_argument("names", nargs="*", metavar="NAME", help="default: all hosts of the files")
    trust = actions.add_parser("trust", help="show a host's key and add it to known_hosts")
    trust.add_argument("name", metavar="NAME")
    trust.add_argument("--fingerprint", metavar="SHA256:...", help="trust without asking, when this is its fingerprint")
    for one in (parser, listing, add, remove, check, trust):
        one.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="JSON (docs/json.md)")


def run(args: argparse.Namespace) -> int:
    args.json = getattr(args, "json", False)
    action = args.action or "list"
    if args.read_only and action in ("add", "rm", "trust"):
        raise RefusedError(f"`hosts {action}` changes something, and --read-only is given")
    try:
        if action == "list":
            return _list(args)
        if action == "add":
            return _add(args)
        if action == "rm":
            return _remove(args)
        return asyncio.run(_check(args) if action == "check" else _trust(args))
    except KeyboardInterrupt:
        print(f"specconsole hosts {action}: interrupted", file=sys.stderr)
        return EXIT_CANCELLED


def _list(args: argparse.Namespace) -> int:
    from specconsole.adapters.hosts_toml import ssh_aliases
    from specconsole.wiring import hosts_files

    listed = hosts_files().read()
    rows: list[dict[str, Any]] = [
        {"name": entry.name, "ssh": entry.target, "read_only": entry.read_only, "connect": entry.connect,
         "note": entry.note, "source": entry.place}
        for entry in listed.values()
    ]  # fmt: skip
    rows += [
        {"name": name, "ssh": name, "read_only": False, "connect": False, "note": "", "source": "~/.ssh/config"}
        for name in ssh_aliases()
        if name not in listed
    ]
    if args.json:
        print(json.dumps(rows))
        return EXIT_OK
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        marks = [row["ssh"] if row["ssh"] != row["name"] else "", "read-only" if row["read_only"] else "", row["note"]]
        print(f"{row['name']:<{width}}  {'  '.join(mark for mark in marks if mark)}".rstrip() + f"  ({row['source']})")
    if not rows:
        print("no hosts yet (try: specconsole hosts add NAME --ssh user@host)", file=sys.stderr)
    return EXIT_OK


def _add(args: argparse.Namespace) -> int:
    from specconsole.core.hosts.listing import HostEntry, decode_hosts, encode_hosts
    from specconsole.core.hosts.names import LOCAL
    from specconsole.wiring import hosts_files

    if args.name == LOCAL:
        raise BadInputError("`local` is this machine, and is always there", try_="another name")
    entry = HostEntry(
        args.name, ssh=args.ssh, read_only=args.host_read_only, connect=not args.on_demand, note=args.note
    )
    decode_hosts(encode_hosts({args.name: entry}), "", "the command line")
    files = hosts_files()
    files.add(entry)
    if args.json:
        print(json.dumps({"name": entry.name, "ssh": entry.target, "file": str(files.added_path)}))
    else:
        print(f"added {entry.name} (try: specconsole hosts check {entry.name})", file=sys.stderr)
    return EXIT_OK


def _remove(args: argparse.Namespace) -> int:
    from specconsole.wiring import hosts_files

    hosts_files().remove(args.name)
    if args.json:
        print(json.dumps({"removed": args.name}))
    else:
        print(f"removed {args.name}; nothing on the host was touched", file=sys.stderr)
    return EXIT_OK


async def _check(args: argparse.Namespace) -> int:
    from specconsole.wiring import host_names

    names = list(dict.fromkeys(args.names)) or [name for name in host_names() if name != "local"]
    if not names:
        raise BadInputError("no host is named, and none is in the files", try_="specconsole hosts check NAME")
    # One after the other: a question on the terminal must belong to the host that is spoken of.
    worst = EXIT_OK
    reports = []
    for name in names:
        status, report = await _check_one(name, as_json=args.json)
        worst = max(worst, status)
        reports.append(report)
    if args.json:
        print(json.dumps(reports))
    return worst


async def _check_one(name: str, *, as_json: bool) -> tuple[int, dict[str, Any]]:
    from specconsole.core.hosts.link_state import state_of
    from specconsole.services.host_check import check
    from specconsole.wiring import open_transport, system_clock

    if sys.stderr.isatty():
        # A line of its own: a question for a passphrase may come next.
        print(f"{name}: connecting and looking around ...", file=sys.stderr, flush=True)
    try:
        async with open_transport(name) as transport:
            checked = await check(transport, system_clock())
    except TimeoutError:
        return _unreachable(name, "unreachable", SpecconsoleError("logged in, but commands get no answer", where=name))
    except SpecconsoleError as error:
        return _unreachable(name, state_of(error), error)
    if not as_json:
        _print_report(checked)
    broken = any(one.level == "broken" for one in checked.findings)
    return (EXIT_FAILED if broken else EXIT_OK), _report_json(checked)


def _unreachable(name: str, state: str, error: SpecconsoleError) -> tuple[int, dict[str, Any]]:
    print(f"specconsole hosts check: {error}", file=sys.stderr)
    status = EXIT_BAD_INPUT if isinstance(error, BadInputError) else EXIT_UNREACHABLE
    return status, {"host": name, "state": state, "error": error.what, "try": error.try_, "findings": []}


_SIGNS = {"works": "ok     ", "limited": "limited", "broken": "BROKEN "}


def _print_report(checked: Checked) -> None:
    print(f"{checked.host}:")
    width = max(len(one.what) for one in checked.findings)
    for one in checked.findings:
        print(f"  {_SIGNS[one.level]}  {one.what:<{width}}  {one.detail}")
        if one.try_:
            print(f"  {'':7}  {'':<{width}}  try: {one.try_}")


def _report_json(checked: Checked) -> dict[str, Any]:
    from dataclasses import asdict

    findings = [
        {"level": one.level, "what": one.what, "detail": one.detail, "try": one.try_} for one in checked.findings
    ]
    connection = None if checked.connection is None else asdict(checked.connection)
    return {
        "host": checked.host, "state": "up", "error": None, "try": None, "findings": findings,
        "facts": asdict(checked.facts), "connection": connection,
    }  # fmt: skip


async def _trust(args: argparse.Namespace) -> int:
    from specconsole.wiring import ssh_link

    if args.name == "local":
        raise BadInputError("`local` is this machine: there is no key to trust")
    link = ssh_link(args.name)
    try:
        return await _trust_link(link, args)
    finally:
        await link.aclose()


async def _trust_link(link: SshLink, args: argparse.Namespace) -> int:
    try:
        await link.connect()
    except HostKeyUnknownError as error:
        offered = link.offered_key
        if offered is None:
            raise  # a jump host's, which has to be trusted by its own name first
        if args.fingerprint is None:
            await _ask_to_trust(error)
        elif args.fingerprint != offered.fingerprint:
            raise RefusedError(
                f"the host shows {offered.fingerprint}, not {args.fingerprint}", where=args.name, try_="do not go on"
            ) from None
        await link.trust(offered.fingerprint)
        _say(args, f"trusted: {offered.fingerprint} is now in {offered.known_file}", offered.fingerprint)
        return EXIT_OK
    except SpecconsoleError as error:
        if link.key_trusted:
            # Whatever else stands in the way (a password, a refused log-in), the key is not what is missing.
            _say(args, f"the key is known already; {error}", None)
            return EXIT_OK
        raise
    _say(args, "the key is known already", None)
    return EXIT_OK


async def _ask_to_trust(error: HostKeyUnknownError) -> None:
    from specconsole.wiring import asker_on_terminal

    asker = asker_on_terminal()
    if asker is None:
        raise BadInputError(
            f"nobody can be asked here; the host shows {error.fingerprint}", where=error.where,
            try_="compare it, then give --fingerprint",
        )  # fmt: skip
    asker.tell(error.where, error.what)
    answer = await asker.ask(error.where, "trust this key? Type yes, or its fingerprint", secret=False)
    if answer is None or answer.strip() not in ("yes", error.fingerprint):
        raise RefusedError("not trusted", where=error.where)


def _say(args: argparse.Namespace, text: str, fingerprint: str | None) -> None:
    if args.json:
        print(json.dumps({"name": args.name, "trusted": True, "added": fingerprint}))
    else:
        print(f"{args.name}: {text}", file=sys.stderr)
