"""Warnings: each kind of finding once, with the line that showed it first."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from specconsole.core.reading.events import Heartbeat, Line, Warn
from specconsole.core.reading.model import ReadingWarning, WarningClass

MAX_FINDINGS = 60
HEARTBEATS = 3
"""So many heartbeats in a row without progress are worth a line."""
_NUMBERS = re.compile(r"[0-9][0-9.,:]*")


@dataclass(slots=True)
class Finding:
    """One warning."""

    warning_class: WarningClass
    line_no: int
    text: str
    count: int = 1


@dataclass(slots=True)
class Findings:
    """State of the reducer; plain data."""

    found: dict[str, Finding] = field(default_factory=dict)
    """By class and wording without numbers, in the order of the first sight."""
    heartbeats: int = 0
    heartbeat_line_no: int = 0
    heartbeat_text: str = ""

    def see(self, line: Line, event: Warn) -> None:
        """A warning; the same one again is counted."""
        key = f"{event.warning_class}|{_NUMBERS.sub('#', event.text)[:160]}"
        known = self.found.get(key)
        if known is not None:
            known.count += 1
        elif len(self.found) < MAX_FINDINGS:
            self.found[key] = Finding(event.warning_class, line.no, event.text[:500])

    def beat(self, line: Line, event: Heartbeat) -> None:
        """Alive, but nothing moved."""
        del event
        self.heartbeats += 1
        self.heartbeat_line_no, self.heartbeat_text = line.no, line.text[:500]

    def progress(self) -> None:
        """Something moved: heartbeats count from here."""
        self.heartbeats = 0

    def since(self, line_no: int) -> None:
        """A new start in the same file: what was found before `line_no` belongs to an earlier one."""
        self.found = {key: finding for key, finding in self.found.items() if finding.line_no >= line_no}
        self.heartbeats = 0

    def has(self, warning_class: WarningClass) -> bool:
        """Whether this start had such a warning."""
        return any(finding.warning_class == warning_class for finding in self.found.values())

    def readings(self) -> list[ReadingWarning]:
        """In the order of lines."""
        warnings = [
            ReadingWarning(f.warning_class, f.line_no, f.text if f.count == 1 else f"{f.text} ({f.count} times)")
            for f in self.found.values()
        ]
        if self.heartbeats >= HEARTBEATS:
            text = f"{self.heartbeats} heartbeats without progress: {self.heartbeat_text}"
            warnings.append(ReadingWarning("heartbeat-no-progress", self.heartbeat_line_no, text))
        return warnings
