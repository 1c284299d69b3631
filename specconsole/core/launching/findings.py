"""What rules, flags and the draft's check say, as findings of one kind."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from specconsole.core.launching.draft_facts import DraftFinding
from specconsole.core.launching.engine_settings import spelled
from specconsole.core.launching.help_text import FlagProblem
from specconsole.core.launching.preflight import Finding, Severity
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.rules import Level, Verdict
from specconsole.errors import EXIT_FAILED, EXIT_OK, EXIT_WARNINGS

ORDER: tuple[Severity, ...] = ("stop", "warning", "note", "ok")
_SEVERITY: Mapping[Level, Severity] = {
    "error": "stop", "overridden": "warning", "warning": "warning", "note": "note",
}  # fmt: skip


def of_verdict(verdict: Verdict) -> Finding:
    text = f"overridden: {verdict.text}" if verdict.level == "overridden" else verdict.text
    return Finding(
        "rule", _SEVERITY[verdict.level], text, fix_text(verdict.fix), verdict.rule_id, verdict.fix, verdict.source
    )


def of_flag(problem: FlagProblem, source: str) -> Finding:
    severity: Severity = "stop" if problem.level == "error" else "warning" if problem.level == "warning" else "note"
    text = problem.text if problem.text.startswith("-") else f"{problem.key}: {problem.text}"
    return Finding("flag", severity, text, fix_text(problem.change) or problem.fix or "", problem.key, problem.change,
                   source)  # fmt: skip


def of_draft(found: DraftFinding) -> Finding:
    text = f"overridden: {found.text}" if found.level == "overridden" else found.text
    return Finding("draft", _SEVERITY[found.level], text, fix_text(found.fix), found.check, found.fix)


def fix_text(fix: Mapping[str, Any] | None) -> str:
    """A fix as words of the command line, quoted for a shell."""
    return " ".join(f"--set {shlex.quote(f'{key}={_written(value)}')}" for key, value in (fix or {}).items())


def in_its_words(profile: Profile, finding: Finding) -> Finding:
    """A finding whose fix names the settings as the profile does."""
    if not finding.fix:
        return finding
    fix = spelled(profile, finding.fix)
    return finding if fix == finding.fix else replace(finding, fix=fix, try_=fix_text(fix))


def mended_by(findings: Iterable[Finding]) -> tuple[Mapping[str, Any], bool]:
    """The settings that all stops and warnings propose together, and whether every stop has a proposal.

    Of two that differ about one setting the graver one's, which comes first, is taken.
    """
    together: dict[str, Any] = {}
    whole = True
    for finding in gravest_first(findings):
        if finding.severity not in ("stop", "warning"):
            continue
        if finding.fix:
            together = {**finding.fix, **together}
        elif finding.severity == "stop":
            whole = False
    return together, whole


def _written(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, Mapping | list) else str(value)


def gravest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sorted by severity; equal ones stay in their order."""
    return tuple(sorted(findings, key=lambda one: ORDER.index(one.severity)))


def exit_status(findings: Sequence[Finding]) -> int:
    """By the gravest: 1 it will not start, 6 it will not run as asked or something is unknown, 0 fine."""
    severities = {finding.severity for finding in findings}
    if "stop" in severities:
        return EXIT_FAILED
    return EXIT_WARNINGS if "warning" in severities else EXIT_OK
