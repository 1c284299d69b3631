"""Cross-flag rules as data: what a server will refuse, change behind one's back, or punish later.

A rule has an id, the versions that it holds for, its source, and a check on the settings asked for. The check gives a
`Verdict` or None. Where the server's version is not known, a rule that does not hold for all versions still speaks,
one level softer and saying for which versions; of several with one id the newest; and of mere names (a flag that came
or went) nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from specconsole.core.launching.versions import ALL, Version, VersionRange

Level = Literal["error", "overridden", "warning", "note"]
_MOST = 1e15
"""Larger than any setting; infinities and what is no number are not smaller."""
LEVELS: tuple[Level, ...] = ("error", "overridden", "warning", "note")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule says about the settings asked for."""

    level: Level
    text: str
    keys: tuple[str, ...]
    """Settings concerned, by their Python names."""
    becomes: Mapping[str, Any] = field(default_factory=dict)
    """What the server will make of them (`overridden`)."""
    fix: Mapping[str, Any] | None = None
    """Settings to change, applied by one key; a value of None removes a setting, `env.NAME` is a variable."""
    rule_id: str = ""
    source: str = ""
    versions: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """The settings asked for, under the engine's own Python names, and what is known around them."""

    args: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict)
    version: Version | None = None
    model_architecture: str | None = None
    model_positions: int | None = None
    """The target's longest context by its config; None: not read."""
    draft_architecture: str | None = None
    draft_positions: int | None = None
    model_heads: int | None = None
    """The target's attention heads; None: not read."""
    model_mtp_layers: int | None = None
    """Multi-token prediction layers in the target's checkpoint; None: not read, or none."""

    def get(self, key: str, default: Any = None) -> Any:
        value = self.args.get(key)
        return default if value is None else value

    def number(self, key: str) -> float | None:
        """A setting as a number; None when it is absent, no number, or one that nothing can be reckoned with."""
        value = self.args.get(key)
        if isinstance(value, bool) or value is None:
            return None
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            return None
        return number if abs(number) < _MOST else None

    def given(self, *keys: str) -> tuple[str, ...]:
        """Those of the settings that are set."""
        return tuple(key for key in keys if self.args.get(key) not in (None, False))

    def env_true(self, name: str) -> bool:
        return self.env.get(name, "").strip().lower() in ("1", "true", "yes", "on")


Check = Callable[[Asked], Verdict | None]


@dataclass(frozen=True, slots=True)
class Rule:
    rule_id: str
    check: Check
    source: str
    versions: VersionRange = ALL
    guesses: bool = True
    """False: without a known version it says nothing."""


def judge_settings(rules: Sequence[Rule], asked: Asked) -> tuple[Verdict, ...]:
    """The verdicts of all rules that hold, gravest first."""
    found: list[Verdict] = []
    for rule in rules:
        if not (rule.guesses if asked.version is None else rule.versions.holds(asked.version)):
            continue
        verdict = rule.check(asked)
        if verdict is None:
            continue
        if asked.version is None:
            # A table names the newest versions of one rule last.
            found = [one for one in found if one.rule_id != rule.rule_id]
        if asked.version is None and rule.versions != ALL:
            softer = LEVELS[min(LEVELS.index(verdict.level) + 1, len(LEVELS) - 1)]
            text = f"{verdict.text} (in versions {rule.versions}; this server's version is not known)"
            verdict = replace(verdict, level=softer, text=text)
        found.append(replace(verdict, rule_id=rule.rule_id, source=rule.source, versions=str(rule.versions)))
    return tuple(sorted(found, key=lambda v: LEVELS.index(v.level)))


def normalise(args: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Settings under the engine's Python names: `--tp 8` and `tp_size = 8` are one. The last one given wins."""
    found: dict[str, Any] = {}
    for key, value in args.items():
        name = key.lstrip("-").replace("-", "_")
        found[aliases.get(name, name)] = value
    return found
