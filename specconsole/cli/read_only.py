"""Which verbs change something, and what `--read-only` leaves of each: it hides what changes, and refuses it.

Every verb stands in `VERBS`; a test looks that none is missing. To change is to write anything but this console's own
caches: on a host, in the person's files, in notes and results.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Literal, NamedTuple

from specconsole.errors import RefusedError

if TYPE_CHECKING:
    import argparse


class Rule(NamedTuple):  # no dataclass: that module and what it loads would be half of `--help`
    """What of one verb changes something."""

    changes: Literal["never", "always", "partly"]
    words: tuple[str, ...] = ()
    """Values of its first word that change: `hosts add`."""
    options: tuple[str, ...] = ()
    """Names (as argparse keeps them) that change when they are given: `write_config_copy`; of one of several first
    words: `import.name`."""
    looks_with: tuple[str, ...] = ()
    """Names that make a verb that changes one that only looks: `dry_run`."""

    def asked(self, args: argparse.Namespace) -> str:
        """What of it changes something, in words; "" when it only looks."""
        if any(getattr(args, name, None) for name in self.looks_with):
            return ""
        if self.changes == "always":
            return str(args.verb)
        word = next((value for name in _FIRST_WORDS if isinstance(value := getattr(args, name, None), str)), None)
        if word in self.words:
            return f"{args.verb} {word}"
        for option in self.options:
            of, _, name = option.rpartition(".")
            if of in ("", word) and getattr(args, name, None) not in (None, "", False, []):
                return " ".join(part for part in (args.verb, of, f"--{name.replace('_', '-')}") if part)
        return ""


_FIRST_WORDS = ("action", "what")
_LOOKS = Rule("never")
_CHANGES = Rule("always")

VERBS: Mapping[str, Rule] = {
    "attach": Rule("partly", options=("pid", "port", "log", "log_command")),
    "bench": Rule("always", looks_with=("resume",)),
    "check": Rule("partly", options=("write_config_copy",)),
    "demo": Rule("always", looks_with=("replay",)),
    "diff": _LOOKS,
    "evict": _CHANGES,
    "gpus": _LOOKS,
    "history": _LOOKS,
    "holders": _LOOKS,
    "hosts": Rule("partly", words=("add", "rm", "trust")),
    "launch": Rule("always", looks_with=("dry_run",)),
    "log": _LOOKS,
    "logs": _LOOKS,
    "note": Rule("partly", options=("text", "tag", "untag", "undo")),
    "profiles": Rule("partly", words=("new",), options=("import.name", "adaptive.save", "adaptive.out")),
    "relaunch": _CHANGES,
    "results": Rule("partly", words=("import", "note", "rm")),
    "status": _LOOKS,
    "stop": _CHANGES,
    "window": _LOOKS,
}


def hidden(verb: str) -> bool:
    """Whether `--read-only` leaves nothing of it worth showing. A verb that nobody has judged counts as changing."""
    rule = VERBS.get(verb, _CHANGES)
    return rule.changes == "always" and not rule.looks_with


def trim(verb: str, parser: argparse.ArgumentParser) -> None:
    """Takes what changes out of a verb's help; giving it all the same is refused in words, not as unknown."""
    rule = VERBS.get(verb, _CHANGES)
    parser.description = f"{parser.description} (read-only: what changes something is turned off)"
    _trim(parser, set(rule.words), set(rule.options))


def _trim(parser: argparse.ArgumentParser, words: AbstractSet[str], options: AbstractSet[str]) -> None:
    import argparse

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            action._choices_actions = [one for one in action._choices_actions if one.dest not in words]
            action.metavar = action.metavar or "{" + ",".join(one for one in action.choices if one not in words) + "}"
            for name, child in action.choices.items():
                own = {option.partition(".")[2] for option in options if option.startswith(f"{name}.")}
                _trim(child, words, own)
        elif action.choices and words & set(action.choices):
            action.metavar = "{" + ",".join(str(one) for one in action.choices if one not in words) + "}"
        elif action.dest in options:
            action.help = argparse.SUPPRESS


def refuse(args: argparse.Namespace) -> None:
    """Raises RefusedError for what changes something. For `--read-only` only."""
    asked = VERBS.get(args.verb, _CHANGES).asked(args)
    if asked:
        raise RefusedError(f"`{asked}` changes something, and this console is read-only", try_="without --read-only")
