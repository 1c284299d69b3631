"""What rules, flags and the draft's check say, as findings of one kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from specconsole.core.launching.draft_facts import DraftFinding
from specconsole.core.launching.help_text import FlagProblem
from specconsole.core.launching.preflight import Finding, Severity
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
    return Finding("flag", severity, text, problem.fix or "", problem.key, None, source)


def of_draft(found: DraftFinding) -> Finding:
    text = f"overridden: {found.text}" if found.level == "overridden" else found.text
    return Finding("draft", _SEVERITY[found.level], text, fix_text(found.fix), found.check, found.fix)


def fix_text(fix: Mapping[str, Any] | None) -> str:
    """A fix as words of the command line."""
    if not fix:
        return ""
    return " ".join(f"--set {key}={_written(value)}" for key, value in fix.items())


def _written(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{json.dumps(value)}'" if isinstance(value, Mapping | list) else str(value)


def gravest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sorted by severity; equal ones stay in their order."""
    return tuple(sorted(findings, key=lambda one: ORDER.index(one.severity)))


def exit_status(findings: Sequence[Finding]) -> int:
    """By the gravest: 1 it will not start, 6 it will not run as asked or something is unknown, 0 fine."""
    severities = {finding.severity for finding in findings}
    if "stop" in severities:
        return EXIT_FAILED
    return EXIT_WARNINGS if "warning" in severities else EXIT_OK
