"""Rare facts to the person: a toast for what matters, the bell for ready and failed, never twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specconsole.services.board import Board, Fact

BELLS = frozenset({"answers", "failed", "stalled"})
SEVERITY = {"failed": "error", "stalled": "warning", "host-lost": "warning", "asks": "warning"}
QUIET = frozenset({"phase-changed"})
"""Seen in the phase strip; no toast."""


class Notices:
    """Looks at the board's facts after the one it saw last."""

    def __init__(self, board: Board, say: Callable[[str, str, str], None], bell: Callable[[], None]) -> None:
        self._board = board
        self._say = say
        self._bell = bell
        # What happened before the window opened is no news.
        self._seen = board.facts[-1].seq if board.facts else 0

    def turn_to(self, board: Board) -> None:
        """From now on these facts; what was on that board before is no news."""
        self._board = board
        self._seen = board.facts[-1].seq if board.facts else 0

    def take(self) -> None:
        """Says what is new."""
        for fact in self._board.facts_after(self._seen):
            self._seen = fact.seq
            if fact.kind in BELLS:
                self._bell()
            if fact.kind not in QUIET:
                self._say(fact.text, self._subject(fact), SEVERITY.get(fact.kind, "information"))

    def _subject(self, fact: Fact) -> str:
        launch = self._board.launches.get(fact.subject)
        return f"{launch.name} @ {launch.host}" if launch is not None else fact.subject
