"""`specconsole profiles`: what can be launched, what it resolves to, and new ones."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specconsole.cli import adaptive
from specconsole.errors import EXIT_BAD_INPUT, EXIT_FAILED, EXIT_OK, BadInputError, SpecconsoleError

if TYPE_CHECKING:
    from collections.abc import Callable

    from specconsole.core.launching.preflight import Finding
    from specconsole.core.launching.profile import Profile

HELP = "list, show, check, compare and write launch profiles"
EPILOG = """exit status: 0 done (diff: no difference), 1 check: something forbids a start; diff: they differ, 2 a file
or an argument is wrong, 4 no such profile, 5 new, import: the file is there already, 6 check: warnings only"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    words = parser.add_subparsers(dest="what", metavar="WHAT", title="what")
    _word(words, "list", "every profile: the project's, yours, and those that ship (the default)")
    show = _word(words, "show", "what a profile resolves to: extends and variables applied, and its command line")
    show.add_argument("name", metavar="PROFILE", help="a profile's name, or a TOML file")
    show.add_argument("--host", help="as it is on this host")
    check = _word(words, "check", "files, rules and flags, without looking at a host")
    check.add_argument("names", nargs="*", metavar="PROFILE", help="default: all of them")
    check.add_argument("--host", help="as they are on this host")
    diff = _word(words, "diff", "every setting that two profiles do not share")
    diff.add_argument("left", metavar="A")
    diff.add_argument("right", metavar="B")
    diff.add_argument("--host", help="as they are on this host")
    new = _word(words, "new", "write a profile of your own")
    new.add_argument("name", metavar="NAME")
    new.add_argument("--extends", metavar="PROFILE", help="what it builds on")
    new.add_argument("--engine", help="sglang, vllm, llamacpp or other; needed without --extends")
    new.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="a setting")
    brought = _word(words, "import", "turn a pasted launch command into a profile")
    brought.add_argument(
        "command", nargs="?", metavar="COMMAND", help="the command as one word; default: standard input"
    )
    brought.add_argument("--name", help="write it as a profile of this name; default: print it")
    adaptive.add_arguments(_word(words, "adaptive", adaptive.HELP))


def _word(words: argparse._SubParsersAction[argparse.ArgumentParser], name: str, help_: str) -> argparse.ArgumentParser:
    parser = words.add_parser(name, help=help_, description=help_)
    parser.add_argument("--json", action="store_true", help="data on standard output (docs/json.md)")
    return parser


def run(args: argparse.Namespace) -> int:
    todo: dict[str, Callable[[argparse.Namespace], int]] = {
        "list": _list, "show": _show, "check": _check, "diff": _diff, "new": _new, "import": _import,
        "adaptive": adaptive.run,
    }  # fmt: skip
    if args.what is None:
        args.json = False
    return todo[args.what or "list"](args)


def _list(args: argparse.Namespace) -> int:
    from specconsole.cli.finding_text import plain
    from specconsole.wiring import profile_files

    files = profile_files()
    rows: list[dict[str, Any]] = []
    for name, path in sorted(files.paths().items()):
        row: dict[str, Any] = {"name": name, "source": str(path), "engine": None, "description": "", "tags": [],
                               "host": None, "extends": [], "problem": ""}  # fmt: skip
        try:
            profile = files.read(name)
        except SpecconsoleError as error:
            row["problem"] = str(error)
        else:
            row |= {"engine": profile.engine, "description": profile.description, "tags": list(profile.tags),
                    "host": profile.host, "extends": list(profile.extends)}  # fmt: skip
        rows.append(row)
    if args.json:
        print(json.dumps(rows))
    else:
        width = max((len(row["name"]) for row in rows), default=0)
        for row in rows:
            text = f"BROKEN: {row['problem']}" if row["problem"] else f"{row['engine']:8}  {row['description']}"
            print(plain(f"{row['name']:{width}}  {text}"))
    return EXIT_OK


def _read(name: str, host: str | None) -> Profile:
    from specconsole.wiring import profile_files

    profile = profile_files().read(name)
    return profile if host is None else profile.on(host)


def _show(args: argparse.Namespace) -> int:
    from specconsole.cli.profile_words import profile_json, profile_toml

    profile = _read(args.name, args.host)
    print(json.dumps(profile_json(profile)) if args.json else profile_toml(profile).rstrip())
    return EXIT_OK


def _check(args: argparse.Namespace) -> int:
    from specconsole.cli.finding_text import finding_json, finding_line
    from specconsole.core.launching.findings import exit_status
    from specconsole.wiring import profile_files

    shapes: list[dict[str, Any]] = []
    everything: list[Finding] = []
    broken = False
    for name in args.names or sorted(profile_files().paths()):
        try:
            found = _offline(_read(name, args.host))
        except BadInputError as error:
            broken = True
            shapes.append({"profile": name, "problem": str(error), "findings": []})
            if not args.json:
                print(f"{name}: STOP    {error}")
            continue
        everything += found
        shapes.append({"profile": name, "problem": "", "findings": [finding_json(one) for one in found]})
        if not args.json:
            for one in found:
                print(f"{name}: {finding_line(one)}")
            if not found:
                print(f"{name}: ok")
    if args.json:
        print(json.dumps(shapes))
    return EXIT_BAD_INPUT if broken else exit_status(everything)


def _offline(profile: Profile) -> list[Finding]:
    """What files alone can tell: the command line, the engine's rules, and the built-in list of its flags."""
    from specconsole.adapters.flag_store import built_in_catalogue
    from specconsole.core.launching.command import build_argv
    from specconsole.core.launching.engine_flags import check_flags
    from specconsole.core.launching.engine_settings import ENGINE_FLAGS, judge_profile
    from specconsole.core.launching.findings import gravest_first, in_its_words, of_flag, of_verdict
    from specconsole.core.launching.versions import parse_version

    build_argv(profile, profile.port)
    version = parse_version(profile.engine_version)
    found = [of_verdict(verdict) for verdict in judge_profile(profile, version)]
    if (flags := ENGINE_FLAGS.get(profile.engine)) is not None:
        catalogue = built_in_catalogue(flags)
        same = version is not None and version == flags.built_in_version
        problems = check_flags(flags, catalogue, profile.args, certain=same)
        found += [of_flag(problem, catalogue.source) for problem in problems]
    return [in_its_words(profile, one) for one in gravest_first(found)]


def _diff(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from specconsole.cli.profile_words import difference_line
    from specconsole.core.launching.profile_table import differences

    found = differences(_read(args.left, args.host), _read(args.right, args.host))
    if args.json:
        print(json.dumps([asdict(one) for one in found]))
    else:
        for one in found:
            print(difference_line(one))
    return EXIT_FAILED if found else EXIT_OK


def _new(args: argparse.Namespace) -> int:
    from specconsole.cli.profile_words import new_file, write_new
    from specconsole.cli.settings import parse_settings

    path = new_file(args.name)
    if args.extends is None and args.engine is None:
        raise BadInputError("a new profile needs --extends or --engine", try_="--extends sglang-baseline")
    table: dict[str, Any] = {}
    if args.extends is not None:
        table["extends"] = args.extends
        _read(args.extends, None)
    if args.engine is not None:
        table["engine"] = args.engine
    _settings_into(table, parse_settings(args.settings))
    return _written(args, write_new(path, table))


def _settings_into(table: dict[str, Any], settings: dict[str, Any]) -> None:
    from specconsole.core.launching.inherit import OWN_KEYS
    from specconsole.core.launching.profile import KEYS

    for key, value in settings.items():
        head, dot, rest = key.partition(".")
        if value is None:
            table.setdefault("unset", []).append(key if dot or key in KEYS else f"args.{key}")
        elif dot and head in ("args", "env", "secrets", "health", "variables"):
            table.setdefault(head, {})[rest] = value
        elif key in KEYS or key in OWN_KEYS:
            table[key] = value
        else:
            table.setdefault("args", {})[key] = value


def _import(args: argparse.Namespace) -> int:
    from specconsole.cli.profile_words import new_file, write_new
    from specconsole.core.launching.import_command import import_command
    from specconsole.core.launching.profile_table import imported_table

    path = new_file(args.name) if args.name else None
    text = args.command if args.command is not None else sys.stdin.read()
    found = import_command(text)
    for note in found.notes:
        print(f"specconsole profiles: note: {note}", file=sys.stderr)
    table = imported_table(found, args.name or "imported")
    if path is not None:
        return _written(args, write_new(path, table))
    if args.json:
        print(json.dumps(table))
    else:
        import tomli_w

        print(tomli_w.dumps(table).rstrip())
    return EXIT_OK


def _written(args: argparse.Namespace, path: Path) -> int:
    try:
        profile = _read(str(path), None)
    except SpecconsoleError:
        # What can't be launched does not stay: nobody asked for a broken file.
        path.unlink(missing_ok=True)
        raise
    print(json.dumps({"name": profile.name, "source": str(path)}) if args.json else str(path))
    return EXIT_OK
