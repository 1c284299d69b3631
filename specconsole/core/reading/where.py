"""The state of a start at one line: what a judgement about that line may rest on."""

from __future__ import annotations

from dataclasses import dataclass, field

from specconsole.core.reading.budgets import Budgets
from specconsole.core.reading.model import Part, Phase, ServerFacts


@dataclass(frozen=True, slots=True)
class Where:
    """Phase and part as they were before the line; facts as known then."""

    phase: Phase
    part: Part | None
    rank: str | None
    engine: str
    """`unknown` while undecided."""
    facts: ServerFacts
    was_ready: bool
    """Whether the server's own ready marker came in this start."""
    draft_expected: bool
    """Whether the arguments name a draft model or a method that has one."""
    start_line_no: int = 1
    """First line of this start."""
    done_share: float | None = None
    """How much of the present phase's bar was done, 0 to 1; None without a bar."""
    budgets: Budgets = field(default_factory=Budgets)
    """Where the GPU's memory went so far."""
