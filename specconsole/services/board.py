"""The board: the latest frozen view of every host and launch, and the rare facts that nobody may miss.

Services publish, the window samples five times a second and asks only for what changed. One event loop, no
locks: a view is replaced whole, never edited.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from specconsole.core.views.result import ResultsView

if TYPE_CHECKING:
    from specconsole.core.measuring.result import Result
    from specconsole.core.views.host import HostView
    from specconsole.core.views.launch import LaunchView
    from specconsole.core.views.question import Question

FactKind = Literal["phase-changed", "answers", "failed", "stopped", "stalled", "host-lost", "host-back", "asks", "note"]


class Fact(NamedTuple):
    """Something that happened once."""

    seq: int
    kind: FactKind
    subject: str
    """A launch id or a host's name."""
    text: str
    """One line for a person."""
    at_s: float
    """Console's wall clock."""


@dataclass(slots=True)
class Board:
    """Current views by name and id, with a version that grows with every change."""

    version: int = 0
    hosts: dict[str, HostView] = field(default_factory=dict)
    launches: dict[str, LaunchView] = field(default_factory=dict)
    facts: deque[Fact] = field(default_factory=lambda: deque(maxlen=1000))
    questions: dict[str, Question] = field(default_factory=dict)
    """Open questions to the person, by id, oldest first."""
    results: ResultsView = field(default_factory=ResultsView)
    measured: tuple[Result, ...] = ()
    """Every result in full, the oldest first."""
    baseline_id: str | None = None
    """The result that the person pinned; None: the newest plain one is compared with."""
    hidden_results: frozenset[str] = frozenset()
    """Rows that the person does not want to see."""
    _seq: int = 0

    def publish_host(self, view: HostView) -> None:
        if self.hosts.get(view.name) != view:
            self.hosts[view.name] = view
            self.version += 1

    def publish_launch(self, view: LaunchView) -> None:
        if self.launches.get(view.launch_id) != view:
            self.launches[view.launch_id] = view
            self.version += 1

    def drop_host(self, name: str) -> None:
        if self.hosts.pop(name, None) is not None:
            self.version += 1

    def drop_launch(self, launch_id: str) -> None:
        if self.launches.pop(launch_id, None) is not None:
            self.version += 1

    def publish_results(self, view: ResultsView) -> None:
        if self.results != view:
            self.results = view
            self.version += 1

    def publish_measured(
        self, results: tuple[Result, ...], baseline_id: str | None, hidden: frozenset[str] = frozenset()
    ) -> None:
        self.measured, self.baseline_id, self.hidden_results = results, baseline_id, hidden
        self.version += 1

    def ask(self, question: Question) -> None:
        """Puts a question to the person; the window shows it as a form."""
        self.questions[question.question_id] = question
        self.version += 1

    def answered(self, question_id: str) -> None:
        """Takes a question off, whoever settled it."""
        if self.questions.pop(question_id, None) is not None:
            self.version += 1

    def tell(self, kind: FactKind, subject: str, text: str, at_s: float) -> None:
        self._seq += 1
        self.facts.append(Fact(self._seq, kind, subject, text, at_s))
        self.version += 1

    def facts_after(self, seq: int) -> list[Fact]:
        """Facts newer than `seq`, oldest first (at most the last 1,000 are kept)."""
        return [fact for fact in self.facts if fact.seq > seq]
