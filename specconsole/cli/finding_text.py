"""Findings for a person: gravest first, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from specconsole.core.launching.preflight import Finding

_SIGNS = {"ok": "ok     ", "note": "note   ", "warning": "warning", "stop": "STOP   "}


def finding_line(finding: Finding) -> str:
    """`STOP    port: port 30000 is held by pid 7 ... (try: ...)`."""
    name = f"{finding.check}/{finding.name}" if finding.name else finding.check
    hint = f" (try: {finding.try_})" if finding.try_ else ""
    return f"{_SIGNS[finding.severity]} {name}: {finding.text}{hint}"


def summary_line(findings: Sequence[Finding]) -> str:
    """How many of each, and what that means."""
    stops, warnings = (sum(one.severity == kind for one in findings) for kind in ("stop", "warning"))
    looked = f"{len(findings)} checks"
    if stops:
        return f"{looked}: {stops} forbid the start" + (f", {warnings} warn" if warnings else "")
    return (
        f"{looked}: {warnings} warn, nothing forbids the start" if warnings else f"{looked}: nothing stands against it"
    )


def finding_json(finding: Finding) -> dict[str, Any]:
    return asdict(finding)
