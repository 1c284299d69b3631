"""Asks for one line of text."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input, Static

from specconsole.ui.formatters import styled
from specconsole.ui.forms.modal import Modal


class OneLine(Modal[str]):
    """Gives the text, without blanks around it; an empty one leaves."""

    def __init__(self, title: str, about: str, hint: str) -> None:
        super().__init__(title)
        self._about = about
        self._hint = hint

    def body(self) -> ComposeResult:
        if self._about:
            yield Static(styled(self._about, "$muted"))
        yield Input(placeholder=self._hint, id="line")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value.strip() or None)
