"""The command line: finds the verb's module by its name, imports that one only, and turns errors into one line.

A verb is one module in `specconsole/cli/verbs/` (`hosts.py` is `specconsole hosts`; `_` in a file name is `-`)
with `HELP` (one line), `add_arguments(parser)` and `run(args) -> int`. Its top level imports argparse and
other cheap things only, so that `--help` stays fast; what it needs to work is imported inside `run`.
Standard output carries data, standard error narration.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from specconsole import __version__
from specconsole.cli import streams, verbs
from specconsole.errors import EXIT_CANCELLED, EXIT_FAILED, SpecconsoleError

if TYPE_CHECKING:
    import argparse


def verb_names() -> list[str]:
    """Every verb, by listing the folder."""
    # Not by pkgutil, which loads inspect for it: a quarter of `--help`. Nor pathlib below.
    files = os.listdir(verbs.__path__[0])
    return sorted(name[:-3].replace("_", "-") for name in files if name.endswith(".py") and name[0] != "_")


def load_verb(name: str) -> ModuleType:
    """The module of a verb. Raises ModuleNotFoundError for an unknown one."""
    return importlib.import_module(f"{verbs.__name__}.{name.replace('-', '_')}")


def help_line(name: str) -> str:
    """A verb's `HELP`, read from its source without importing it; imported where it is no plain string."""
    import re

    try:
        with open(os.path.join(verbs.__path__[0], f"{name.replace('-', '_')}.py"), encoding="utf-8") as source:
            found = re.search(r'^HELP = "([^"\\]*)"$', source.read(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found is not None else str(load_verb(name).HELP)


def build_parser(argv: list[str]) -> argparse.ArgumentParser:
    """A parser that knows all verbs by name, and only the one that `argv` names by its arguments."""
    import argparse

    parser = argparse.ArgumentParser(
        prog="specconsole",
        description="Control console for tuning speculative decoding on GPU hosts. Without a verb: the window.",
    )
    parser.add_argument("--version", action="version", version=f"specconsole {__version__}")
    parser.add_argument("--read-only", action="store_true", help="turn off every verb and key that changes something")
    wanted = next((word for word in argv if not word.startswith("-")), None)
    names = verb_names()
    from specconsole.cli.read_only import hidden as hides
    from specconsole.cli.read_only import trim

    sub = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    read_only = "--read-only" in argv[: argv.index(wanted) if wanted is not None else None]
    for name in names:
        if read_only and name != wanted and hides(name):
            continue
        if name != wanted:
            # Only named: what every verb imports would make `--help` three times as long.
            sub.add_parser(name, help=help_line(name), add_help=False)
            continue
        module = load_verb(name)
        child = sub.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(child)
        if read_only:
            trim(name, child)
        child.set_defaults(run=module.run)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit status (see `specconsole.errors`)."""
    streams.open_missing()
    argv = sys.argv[1:] if argv is None else argv
    verb = "" if argv else "window"
    try:
        if not argv:
            # The window by its name alone: a parser of all verbs would be a tenth of the time to its first paint.
            status = int(load_verb("window").run())
        else:
            args = build_parser(argv).parse_args(argv)
            if args.read_only and args.verb:
                from specconsole.cli.read_only import refuse

                refuse(args)
            run = getattr(args, "run", None) or load_verb("window").run
            verb = args.verb or "window"
            status = int(run(args))
        sys.stdout.flush()
        return status
    except SystemExit:
        # argparse has printed its help or a complaint.
        try:
            sys.stdout.flush()
        except OSError as error:
            return _say(verb, error)
        raise
    except BaseExceptionGroup as group:
        expected, bugs = group.split(_is_expected)
        if bugs is not None or expected is None:
            raise
        return max(_say(verb, error) for error in _leaves(expected))
    except (SpecconsoleError, KeyboardInterrupt, OSError) as error:
        if not _is_expected(error):
            raise
        return _say(verb, error)


def _is_expected(error: BaseException) -> bool:
    return isinstance(error, SpecconsoleError | KeyboardInterrupt) or streams.output_gone(error)


def _say(verb: str, error: BaseException) -> int:
    """One line on standard error; returns the exit status that belongs to it."""
    who = f"specconsole {verb}".rstrip()
    if isinstance(error, SpecconsoleError):
        status, text = error.exit_code, f"{who}: {error}"
    elif isinstance(error, BrokenPipeError):
        # The reader of our output left (`| head`): nothing to say, and nobody to say it to.
        status, text = 128 + 13, ""
    elif isinstance(error, OSError):
        status, text = EXIT_FAILED, f"{who}: can't write the output: {error.strerror}"
    else:
        status, text = EXIT_CANCELLED, f"{who}: interrupted"
    if isinstance(error, OSError):
        streams.drop(sys.stdout)
    if text:
        try:
            print(text, file=sys.stderr, flush=True)
        except OSError:
            streams.drop(sys.stderr)
    return status


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """The errors inside a task group's group, however deep: several hosts may fail at once."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
