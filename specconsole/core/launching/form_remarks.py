"""What flags, rules and types say about the form's settings, each with its fields and, where there is one, its fix.

The same judgement as `check` makes (`check_flags`, `judge_profile`), without a host; what only a host knows comes from
the preflight and is shown beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from specconsole.core.launching.engine_flags import check_flags
from specconsole.core.launching.engine_settings import ENGINE_FLAGS, ModelFacts, judge_profile
from specconsole.core.launching.form_fields import FieldPath, FlagIndex, FormField
from specconsole.core.launching.form_values import read_value, value_text
from specconsole.core.launching.help_text import FlagProblem
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.rules import Verdict
from specconsole.core.launching.versions import Version, parse_version

Level = Literal["error", "overridden", "warning", "note", "ok"]
LEVELS: tuple[Level, ...] = ("error", "overridden", "warning", "note", "ok")

_DIRECT = ("port", "bind", "model", "draft_model", "working_dir", "environment", "grace_s", "host")


@dataclass(frozen=True, slots=True)
class Learned:
    """What is known of the server and the models; None: not yet, or not at all."""

    index: FlagIndex | None = None
    version: Version | None = None
    certain: bool = False
    """True when the flags are the server's own, or of exactly its version."""
    target: ModelFacts | None = None
    draft: ModelFacts | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to know about the settings as they stand."""

    level: Level
    text: str
    paths: tuple[FieldPath, ...] = ()
    """The fields concerned, the first one is where the cursor goes."""
    fix: Mapping[FieldPath, Any] = field(default_factory=dict)
    """Values to set; None leaves a field empty."""
    becomes: Mapping[FieldPath, str] = field(default_factory=dict)
    """What the server makes of a field, whatever is asked."""
    source: str = ""
    try_: str = ""
    """What a person may do where there is no fix."""


class FieldNames:
    """Settings by whatever name rules, flags and people call them."""

    def __init__(self, fields: Iterable[FormField], engine: str, index: FlagIndex | None) -> None:
        flags = ENGINE_FLAGS.get(engine)
        aliases = flags.aliases if flags is not None else {}
        self._paths: dict[str, FieldPath] = {}
        for one in fields:
            if one.path[0] != "args":
                self._paths[one.field_id] = one.path
            if one.path[0] == "args" or one.path in (("model",), ("draft_model",)):
                flag = index.find(one.path[1] if len(one.path) > 1 else one.flag) if index is not None else None
                words = [one.path[1]] if one.path[0] == "args" else []
                words += [alias.lstrip("-") for alias in flag.aliases] if flag is not None else []
                plain = [word.lstrip("-").replace("-", "_") for word in words]
                for name in (*plain, *(aliases[word] for word in plain if word in aliases)):
                    self._paths.setdefault(name, one.path)
            if len(one.path) > 2:
                self._paths.setdefault(f"{one.path[1]}.{one.path[2]}", one.path)

    def path(self, key: str) -> FieldPath:
        """Where a setting of that name is; a new one of `args` where the form has none."""
        plain = key.removeprefix("args.").lstrip("-").replace("-", "_")
        if key in self._paths:
            return self._paths[key]
        if plain in self._paths:
            return self._paths[plain]
        if key.startswith("env."):
            return ("env", key.removeprefix("env."))
        return (key,) if key in _DIRECT else ("args", plain)


def remarks(
    profile: Profile, fields: Sequence[FormField], learned: Learned, values: Mapping[FieldPath, Any]
) -> tuple[Remark, ...]:
    """All of them, gravest first, in the fields' order. `values`: what each field holds, for its type."""
    names = FieldNames(fields, profile.engine, learned.index)
    found = [
        *_of_types(fields, values),
        *(_of_flag(problem, names, profile, learned.index) for problem in _flag_problems(profile, learned)),
        *(_of_verdict(verdict, names, learned) for verdict in _verdicts(profile, learned)),
    ]
    place = {one.path: number for number, one in enumerate(fields)}
    last = len(place)
    return tuple(sorted(found, key=lambda one: (LEVELS.index(one.level), place.get(_first(one), last))))


_CHECKED: Mapping[str, FieldPath] = {
    "port": ("port",), "model": ("model",), "draft": ("draft_model",), "binary": ("command",),
    "working-dir": ("working_dir",), "version": ("environment",),
}  # fmt: skip


def of_findings(findings: Iterable[Finding], names: FieldNames) -> tuple[Remark, ...]:
    """What a look at the host found, as remarks, gravest first."""
    levels: dict[str, Level] = {"stop": "error", "warning": "warning", "note": "note"}
    found: list[Remark] = []
    for one in findings:
        paths: tuple[FieldPath, ...] = tuple(names.path(key) for key in one.fix or {})
        if not paths and one.check in _CHECKED:
            paths = (names.path(_CHECKED[one.check][0]),)
        fix = {names.path(key): value for key, value in (one.fix or {}).items()}
        found.append(Remark(levels.get(one.severity, "ok"), one.text, paths, fix, source=one.source, try_=one.try_))
    return tuple(sorted(found, key=lambda one: LEVELS.index(one.level)))


def _first(remark: Remark) -> FieldPath:
    return remark.paths[0] if remark.paths else ()


def _of_types(fields: Iterable[FormField], values: Mapping[FieldPath, Any]) -> list[Remark]:
    found: list[Remark] = []
    for one in fields:
        value = values.get(one.path)
        # The server's own list is judged by `check_flags`.
        if value is None or one.closed or one.kind in ("switch", "on-off", "list", "table"):
            continue
        read = read_value(one, value_text(value))
        if read.error:
            fix = {one.path: read.instead} if read.instead else {}
            found.append(Remark("error", f"{one.label}: {read.error}", (one.path,), fix, source="its type"))
        elif read.warning:
            found.append(Remark("note", f"{one.label}: {read.warning}", (one.path,)))
    return found


def _flag_problems(profile: Profile, learned: Learned) -> tuple[FlagProblem, ...]:
    flags = ENGINE_FLAGS.get(profile.engine)
    if flags is None or learned.index is None:
        return ()
    return check_flags(flags, learned.index.catalogue, profile.args, certain=learned.certain)


def _of_flag(problem: FlagProblem, names: FieldNames, profile: Profile, index: FlagIndex | None) -> Remark:
    path = names.path(problem.key)
    levels: dict[str, Level] = {"error": "error", "warning": "warning"}
    text = problem.text if problem.text.startswith("-") else f"{problem.key}: {problem.text}"
    source = index.catalogue.source if index is not None else ""
    return Remark(levels.get(problem.level, "note"), text, (path,), _flag_fix(problem, path, profile, index),
                  source=source)  # fmt: skip


def _flag_fix(problem: FlagProblem, path: FieldPath, profile: Profile, index: FlagIndex | None) -> dict[FieldPath, Any]:
    """The value that was meant, or the same value under the flag's present name."""
    fix, value = problem.fix, profile.args.get(problem.key)
    if not fix:
        return {}
    if not fix.startswith("-"):
        return {path: fix}
    flag = index.find(fix) if index is not None else None
    if flag is None or flag.takes_value == (value is True):
        return {}
    return {("args", problem.key): None, ("args", fix.lstrip("-").replace("-", "_")): value}


def _verdicts(profile: Profile, learned: Learned) -> tuple[Verdict, ...]:
    version = learned.version or parse_version(profile.engine_version)
    return judge_profile(profile, version, learned.target, learned.draft)


def _of_verdict(verdict: Verdict, names: FieldNames, learned: Learned) -> Remark:
    fix = {names.path(key): value for key, value in (verdict.fix or {}).items()}
    if (
        learned.index is not None
        and learned.certain
        and not all(key.startswith("env.") or learned.index.find(key) for key in verdict.fix or {})
    ):
        fix = {}  # this server takes no such flag
    return Remark(
        verdict.level,
        verdict.text,
        tuple(dict.fromkeys(names.path(key) for key in verdict.keys)),
        fix,
        {names.path(key): value_text(value) for key, value in verdict.becomes.items()},
        verdict.source,
    )
