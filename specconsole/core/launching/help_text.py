"""A server's own `--help` -> its flags: names, values, choices, defaults, help text.

Reads argparse's layout (SGLang, vLLM: an option at column 2, its text from column 24 on) and llama.cpp's (`-m, --model
FNAME` at column 0). Colours are taken out first. What is not understood is left out, so a flag that is missing here
is "not in the help that was read", which `complete` qualifies.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# "  --speculative-attention-mode {prefill,decode}", "  -tp TP, --tensor-parallel-size TP" (argparse, two spaces).
# "-m,    --model FNAME                    model path to load", "--port PORT  ..." (llama.cpp, column 0).
_OPTION = re.compile(r"^(?: {2})?(?P<spec>--?[A-Za-z0-9].*)$")
_NAME = re.compile(r"(?<![\w-])(--?[A-Za-z0-9][\w.-]*)")
_CHOICES = re.compile(r"\{([^{}]*)\}")
_DEFAULT = re.compile(r"\((?:default|env default): *([^()]*(?:\([^()]*\)[^()]*)*)\)")
_DEPRECATED = re.compile(r"\bdeprecated\b|\bremoved\b|no longer (?:used|has)|is an alias", re.IGNORECASE)
_REPLACEMENT = re.compile(
    r"(?:[Uu]se|[Aa]lias (?:of|for)|instead(?: of)?,? use|replaced by)\s+[`'\"]?(--[a-z0-9][\w-]*)"
)
_SEE_INSTEAD = re.compile(r"[`'\"]?(--[a-z0-9][\w-]*)[`'\"]? instead")


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag as the server describes it."""

    name: str
    """The longest name, with its dashes."""
    aliases: tuple[str, ...] = ()
    """All names, the longest included."""
    metavar: str = ""
    """What stands for the value; "" for a bare switch."""
    choices: tuple[str, ...] = ()
    default: str | None = None
    """None: the help does not say."""
    help: str = ""
    deprecated: bool = False
    replacement: str | None = None
    many: bool = False
    """Takes several values."""

    @property
    def takes_value(self) -> bool:
        return bool(self.metavar) or bool(self.choices)


@dataclass(frozen=True, slots=True)
class FlagCatalogue:
    """All flags of one server."""

    flags: tuple[Flag, ...]
    source: str = ""
    """`sglang 0.5.17 on gpu-a:/opt/venv`, or `built in, sglang 0.5.17`."""
    abbreviates: bool = True
    """argparse's prefix matching: a removed flag may silently be taken for a longer one."""

    def find(self, word: str) -> Flag | None:
        """The flag of that exact name (dashes and underscores are one)."""
        # llama.cpp has `-c` and `-C`: the same case goes first.
        exact = word.lstrip("-").replace("_", "-")
        found = next((f for f in self.flags if any(a.lstrip("-").replace("_", "-") == exact for a in f.aliases)), None)
        wanted = _plain(word)
        return found or next((f for f in self.flags if any(_plain(a) == wanted for a in f.aliases)), None)

    def abbreviated(self, word: str) -> tuple[Flag, ...]:
        """Flags that the server would take an incomplete long name for; several: it would call it ambiguous."""
        if not self.abbreviates or self.find(word):
            return ()
        wanted = _plain(word)
        return tuple(
            f for f in self.flags if any(a.startswith("--") and _plain(a).startswith(wanted) for a in f.aliases)
        )

    def nearest(self, word: str) -> str | None:
        """The name that was probably meant."""
        names = {_plain(a): a for f in self.flags for a in f.aliases if a.startswith("--")}
        close = difflib.get_close_matches(_plain(word), list(names), n=1, cutoff=0.6)
        return names[close[0]] if close else None

    def complete(self, start: str) -> tuple[Flag, ...]:
        """Flags for completion: those that begin with `start`, then those that hold it."""
        wanted = _plain(start)
        begins = [f for f in self.flags if _plain(f.name).startswith(wanted)]
        holds = [f for f in self.flags if wanted in _plain(f.name) and f not in begins]
        return (*begins, *holds)


@dataclass(frozen=True, slots=True)
class FlagProblem:
    """What is wrong with a setting, by the server's own help."""

    key: str
    level: str
    """`error` (the server will refuse it), `warning`, or `note`."""
    text: str
    fix: str | None = None
    """The name or value to use instead."""
    change: Mapping[str, Any] | None = None
    """The settings to change for that; None removes one."""


def parse_help(text: str) -> tuple[Flag, ...]:
    """Flags in the order of the help. Never raises; an unreadable text gives none."""
    flags: list[Flag] = []
    spec: str | None = None
    lines: list[str] = []
    for raw in _COLOUR.sub("", text).replace("\r\n", "\n").expandtabs().split("\n"):
        match = _OPTION.match(raw)
        if match and not raw.startswith(" " * 3) and _looks_like_option(match["spec"]):
            _finish(flags, spec, lines)
            spec, lines = _split_spec(match["spec"])
        elif spec is not None:
            if raw.strip() and raw.startswith("   "):
                lines.append(raw.strip())
            elif raw.strip():
                _finish(flags, spec, lines)
                spec, lines = None, []
    _finish(flags, spec, lines)
    return tuple(flags)


def check_words(catalogue: FlagCatalogue, settings: Iterable[tuple[str, object]]) -> tuple[FlagProblem, ...]:
    """Settings against the catalogue: unknown, ambiguous, deprecated, and values that are no choice."""
    found: list[FlagProblem] = []
    for key, value in settings:
        flag = catalogue.find(key)
        if flag is None:
            found.append(_unknown(catalogue, key))
            continue
        if flag.deprecated:
            instead = f": use {flag.replacement}" if flag.replacement else ""
            found.append(FlagProblem(key, "warning", f"{flag.name} is deprecated{instead}", flag.replacement))
        values = value if isinstance(value, list) else [value]
        for item in values:
            if flag.choices and not isinstance(item, bool) and str(item) not in flag.choices:
                close = difflib.get_close_matches(str(item), flag.choices, n=1)
                found.append(
                    FlagProblem(
                        key,
                        "error",
                        f"{flag.name} takes {', '.join(flag.choices)}, not {item}",
                        close[0] if close else None,
                    )
                )
            if item is True and flag.takes_value:
                found.append(FlagProblem(key, "error", f"{flag.name} needs a value ({flag.metavar or 'a choice'})"))
    return tuple(found)


def _unknown(catalogue: FlagCatalogue, key: str) -> FlagProblem:
    longer = catalogue.abbreviated(key)
    if len(longer) == 1 and any(_plain(a) == f"{_plain(key)}-size" for a in longer[0].aliases):
        # `--tp` for `--tp-size` is how everybody writes it.
        return FlagProblem(key, "note", f"short for {longer[0].name}", longer[0].name)
    if len(longer) == 1:
        text = f"this version has no such flag and would silently take it for {longer[0].name}"
        return FlagProblem(key, "warning", text, longer[0].name)
    if longer:
        names = ", ".join(flag.name for flag in longer[:4])
        return FlagProblem(key, "error", f"ambiguous here: could be {names}", None)
    return FlagProblem(key, "error", "this version has no such flag", catalogue.nearest(key))


def _plain(word: str) -> str:
    return word.lstrip("-").replace("_", "-").lower()


def _looks_like_option(spec: str) -> bool:
    name = _NAME.match(spec)
    return name is not None and not spec.startswith("---")


def _split_spec(spec: str) -> tuple[str, list[str]]:
    """The names and metavars, and the start of the help text where it stands on the same line."""
    parts = re.split(r"\s{2,}(?=[^-\s])", spec, maxsplit=1)
    # llama.cpp pads after the short name ("-m,    --model FNAME"): that gap is followed by a dash and kept.
    return parts[0], parts[1:]


def _finish(flags: list[Flag], spec: str | None, lines: list[str]) -> None:
    if spec is None:
        return
    names = tuple(dict.fromkeys(_NAME.findall(re.sub(r"\{[^{}]*\}", " ", spec))))
    if not names:
        return
    text = " ".join(lines)
    choices_match = _CHOICES.search(spec)
    choices = tuple(c.strip() for c in choices_match.group(1).split(",") if c.strip()) if choices_match else ()
    rest = _CHOICES.sub("", spec)
    for name in names:
        rest = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "", rest)
    metavars = [word for word in re.split(r"[,\s]+", rest) if word and word not in ("|", "/")]
    default = _DEFAULT.search(text)
    replacement = _REPLACEMENT.search(text) or _SEE_INSTEAD.search(text)
    longest = max(names, key=lambda n: (n.startswith("--"), not n.startswith("--no-"), len(n)))
    flags.append(
        Flag(
            name=longest,
            aliases=names,
            metavar=metavars[0].strip("[]") if metavars else "",
            choices=choices,
            default=default.group(1).strip() if default else None,
            help=text,
            deprecated=bool(_DEPRECATED.search(text)),
            replacement=replacement.group(1) if replacement else None,
            many="..." in spec,
        )
    )
