"""Asks before something is changed, naming who and what it hits; what is not ours is confirmed by typing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from specconsole.ui.formatters import row, styled
from specconsole.ui.forms.modal import Modal


class Confirm(Modal[bool]):
    """True when the person said yes. `typed`: the word to type first ("" for none)."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("y", "yes"), ("n, esc", "no"))

    def __init__(self, title: str, lines: Sequence[Content], *, yes: str, typed: str = "") -> None:
        super().__init__(title, danger=True)
        self._lines = lines
        self._yes = yes
        self._typed = typed

    def body(self) -> ComposeResult:
        for line in self._lines:
            yield Static(line)
        if self._typed:
            yield Static(row("type ", (self._typed, "bold $warning"), f" to {self._yes}"), classes="label")
            yield Input(id="typed")

    def keys_line(self) -> Content:
        if self._typed:
            return row(("⏎", "bold $primary"), f" {self._yes}   ", ("esc", "bold $primary"), " no")
        return row(("y", "bold $primary"), f" {self._yes}   ", ("n, esc", "bold $primary"), " no")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip() == self._typed:
            self.dismiss(True)
        else:
            self.wrong(f"that is not {self._typed}")

    def on_key(self, event: events.Key) -> None:
        if self._typed:
            return
        if event.key in ("y", "Y"):
            event.stop()
            self.dismiss(True)
        elif event.key in ("n", "N"):
            event.stop()
            self.dismiss(False)


def bullet(text: str, style: str = "") -> Content:
    """A line of what would be hit."""
    return row(("· ", "$muted"), styled(text, style))
