"""Chooses one of a few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from specconsole.ui.formatters import styled
from specconsole.ui.forms.modal import Modal


class Picker(Modal[str]):
    """Gives the value of the chosen one; `looked_at` is called as the highlight moves."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
    ]

    def __init__(
        self,
        title: str,
        choices: Sequence[tuple[str, str]],
        current: str = "",
        *,
        looked_at: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(title)
        self._choices = choices
        self._current = current
        self._looked_at = looked_at

    def body(self) -> ComposeResult:
        yield OptionList(*(Option(styled(label)) for _, label in self._choices), id="choices")

    def on_mount(self) -> None:
        values = [value for value, _ in self._choices]
        choices = self.query_one(OptionList)
        choices.highlighted = values.index(self._current) if self._current in values else 0
        choices.focus()

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if self._looked_at is not None:
            self._looked_at(self._choices[event.option_index][0])

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._choices[event.option_index][0])

    def action_down(self) -> None:
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(OptionList).action_cursor_up()
