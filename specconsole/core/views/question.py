"""A question that only the person at the console can answer: a passphrase, a password, a second factor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """One open question; it leaves the board when answered, declined or overtaken."""

    question_id: str
    host: str
    text: str
    """One line as the other side put it (`passphrase for ~/.ssh/id_ed25519`)."""
    secret: bool = True
    """Whether the answer is hidden while it is typed."""
