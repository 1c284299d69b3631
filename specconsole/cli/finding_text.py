"""Findings for a person: gravest first, one line each."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from specconsole.core.launching.findings import fix_text, mended_by
from specconsole.core.launching.preflight import Finding

_MOST = 2000
"""Characters of one finding."""
_SIGNS = {"ok": "ok     ", "note": "note   ", "warning": "warning", "stop": "STOP   "}


def finding_line(finding: Finding) -> str:
    """`STOP    port: port 30000 is held by pid 7 ... (try: ...)`."""
    name = f"{finding.check}/{finding.name}" if finding.name else finding.check
    hint = f" (try: {finding.try_})" if finding.try_ else ""
    # Names of files and processes come from hosts: a control character in one must not reach the terminal.
    return plain(f"{_SIGNS[finding.severity]} {name}: {finding.text}{hint}")


def plain(text: str) -> str:
    """One line in which nothing can drive a terminal or turn text around; blanks stay as they are."""
    kept = "".join(one if one.isprintable() else " " for one in text[:_MOST])
    return kept if len(text) <= _MOST else f"{kept}…"


def summary_line(findings: Sequence[Finding]) -> str:
    """How many of each, and what that means."""
    stops, warnings = (sum(one.severity == kind for one in findings) for kind in ("stop", "warning"))
    looked = f"{len(findings)} checks"
    if stops:
        return f"{looked}: {stops} forbid the start" + (f", {warnings} warn" if warnings else "")
    return (
        f"{looked}: {warnings} warn, nothing forbids the start" if warnings else f"{looked}: nothing stands against it"
    )


def mends_line(findings: Sequence[Finding], profile: str, settings: Sequence[str], host: str | None) -> str:
    """The command with every proposed setting, where something forbids the start and all of it can be mended so."""
    fix, whole = mended_by(findings)
    if not fix or not whole or not any(one.severity == "stop" for one in findings):
        return ""
    given = "".join(f" --set {shlex.quote(word)}" for word in settings)
    where = f" --host {shlex.quote(host)}" if host else ""
    return f"mended: specconsole check {shlex.quote(profile)}{where}{given} {fix_text(fix)}"


def finding_json(finding: Finding) -> dict[str, Any]:
    return asdict(finding)
