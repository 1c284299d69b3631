"""Thin stand-in for the verdict until the real one is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specconsole.core.reading.events import Event, Line, Trouble
from specconsole.core.reading.model import Failure, FailureClass, Part, Phase
from specconsole.core.reading.where import Where


@dataclass(slots=True)
class Failures:
    """The first fatal statement."""

    failure_class: FailureClass | None = None
    line_no: int = 0
    text: str = ""
    in_phase: Phase = "starting"
    in_part: Part | None = None
    rank: str | None = None
    http_bind_failed: bool = False

    @property
    def hungry(self) -> bool:
        return False

    @property
    def last_line_no(self) -> int:
        return self.line_no

    def see(self, line: Line, events: Sequence[Event], where: Where) -> None:
        for event in events:
            if isinstance(event, Trouble) and event.weight == "fatal" and self.failure_class is None:
                self.failure_class, self.line_no, self.text = event.failure_class, line.no, event.text or line.text
                self.in_phase, self.in_part, self.rank = where.phase, where.part, line.rank
                self.http_bind_failed = self.http_bind_failed or event.http_bind

    def life(self, line_no: int) -> None:
        if not self.http_bind_failed:
            self.failure_class = None

    def verdict(
        self, *, dead: bool, exit_code: int | None, stop_asked: bool, clean_stop: bool, phase: Phase, part: Part | None
    ) -> tuple[Failure | None, Failure | None]:
        if self.failure_class is None:
            if dead and not clean_stop and not stop_asked:
                return Failure("killed", None, None, phase, part, None, None, None), None
            return None, None
        return Failure(
            self.failure_class, self.line_no, self.text, self.in_phase, self.in_part, self.rank, None, None
        ), None

    def start_over(self) -> None:
        self.failure_class = None
        self.http_bind_failed = False
