"""One table over all servers: which words state a cause, of which class, and how much weight they carry.

Wording is shared (torch, NCCL, safetensors, argparse print the same under every server), so the rules are not
per engine. Each rule names a real line. The first rule that fits wins: the special stands before the general.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from specconsole.core.reading.model import FailureClass

Alone = Literal["fatal", "suspect", ""]
CAUSE, CONSEQUENCE = 2, 1
"""Tiers: what states a cause, and what is more often the echo of another rank's end (taken if nothing else is)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` in a line that holds `literal` means `failure_class`.

    `alone`: what the line weighs outside a traceback ("" nothing: only the last line of a traceback counts).
    """

    failure_class: FailureClass
    literal: str
    pattern: re.Pattern[str]
    alone: Alone = "fatal"
    tier: int = CAUSE
    http_bind: bool = False
    start_only: bool = False
    """Only while the server starts: the same words about one request are no failure of the server."""


def rule(
    failure_class: FailureClass,
    literal: str,
    pattern: str = "",
    alone: Alone = "fatal",
    tier: int = CAUSE,
    *,
    http_bind: bool = False,
    start_only: bool = False,
) -> Rule:
    """A rule; without a pattern the literal itself is looked for."""
    compiled = re.compile(pattern or re.escape(literal))
    return Rule(failure_class, literal, compiled, alone, tier, http_bind, start_only)


@dataclass(frozen=True, slots=True)
class Passing:
    """A messenger: says that it is over, not why."""

    literal: str
    pattern: re.Pattern[str]
    opens: bool = False
    """A traceback of the cause follows on the lines behind it."""


def passing(literal: str, pattern: str = "", *, opens: bool = False) -> Passing:
    """A messenger; without a pattern the literal itself is looked for."""
    return Passing(literal, re.compile(pattern or re.escape(literal)), opens)


MAX_TEXT_CHARS = 4096
"""So much of a line is looked at: causes are short, and lines may be prompts."""


def match_rule(rules: tuple[Rule, ...], text: str) -> Rule | None:
    """The first rule that fits `text`."""
    text = text[:MAX_TEXT_CHARS]
    for candidate in rules:
        if candidate.literal in text and candidate.pattern.search(text):
            return candidate
    return None
