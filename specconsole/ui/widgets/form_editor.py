"""Typing a value in place: a line over the setting's value, and below it what the value could be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input

from specconsole.ui.formatters import fit, styled
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.core.launching.form_fields import FormField

SHOWN = 8


class FieldEditor(Input):
    """One line; enter takes it, escape does not, tab and the arrows choose among the suggestions."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "give_up", show=False, priority=True),
        Binding("down", "suggestion(1)", show=False, priority=True),
        Binding("up", "suggestion(-1)", show=False, priority=True),
        Binding("tab", "take_suggestion", show=False, priority=True),
    ]

    class GivenUp(Message):
        """Nothing is to be taken."""

    class StepSuggestion(Message):
        """Another suggestion is to be looked at."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class TakeSuggestion(Message):
        """The chosen suggestion goes into the line; typing goes on."""

    def __init__(self) -> None:
        super().__init__(id="form-editor", compact=True, select_on_focus=True)
        self.display = False
        self._untouched = True
        """Nothing was typed since it opened: the first letter replaces what stands there."""

    def begin(self, text: str) -> None:
        """Opens with a text that the first letter replaces."""
        self._untouched = True
        self.value = text
        self.display = True
        self.focus()

    async def _on_key(self, event: events.Key) -> None:
        if not event.is_printable:
            self._untouched = False
        await super()._on_key(event)

    def insert_text_at_cursor(self, text: str) -> None:
        """Also of a key that came before the line had the focus, and with it its selection."""
        if self._untouched:
            self._untouched = False
            self.replace(text, 0, len(self.value))
        else:
            super().insert_text_at_cursor(text)

    def replace(self, text: str, start: int, end: int) -> None:
        self._untouched = False
        super().replace(text, start, end)

    def action_give_up(self) -> None:
        self.post_message(self.GivenUp())

    def action_suggestion(self, by: int) -> None:
        self.post_message(self.StepSuggestion(by))

    def action_take_suggestion(self) -> None:
        self.post_message(self.TakeSuggestion())


class Suggestions(TextPane):
    """What the value could be; the marked one is taken by tab, or by enter when nothing was typed by hand."""

    class Picked(Message):
        """A click on one."""

        def __init__(self, value: str) -> None:
            super().__init__()
            self.value = value

    def __init__(self) -> None:
        super().__init__(id="form-suggestions")
        self.display = False
        self.values: tuple[str, ...] = ()
        self.at = -1
        """The marked one; -1 for none."""
        self.note = ""
        """Said instead of values: that the host is being asked, or that it did not answer."""

    @property
    def marked(self) -> str:
        return self.values[self.at] if 0 <= self.at < len(self.values) else ""

    def offer(self, values: Sequence[str], note: str = "") -> None:
        marked = self.marked
        self.values = tuple(values)
        self.note = note
        self.at = self.values.index(marked) if marked in self.values else -1
        self.display = bool(self.values or note)
        self.styles.height = max(1, min(SHOWN, len(self.values) + bool(note)))
        self.update()

    def step(self, by: int) -> None:
        if self.values:
            self.at = (self.at + by) % len(self.values) if self.at >= 0 else 0 if by > 0 else len(self.values) - 1
            self.update()

    def build(self, width: int, height: int) -> Sequence[Content]:
        first = max(0, min(self.at - height + 1, len(self.values) - height)) if self.at >= height else 0
        lines = [
            fit(styled(f" {value}", "bold" if number == self.at else ""), width).stylize(
                "on $selection" if number == self.at else "on $panel"
            )
            for number, value in enumerate(self.values)
        ][first : first + height]
        if self.note and len(lines) < height:
            lines.append(fit(styled(f" {self.note}", "$muted italic"), width).stylize("on $panel"))
        return lines

    def on_click(self, event: events.Click) -> None:
        first = max(0, min(self.at - self.size.height + 1, len(self.values) - self.size.height))
        number = event.y + (first if self.at >= self.size.height else 0)
        if number < len(self.values):
            self.post_message(self.Picked(self.values[number]))


def matching(field: FormField, text: str, *, all_of_them: bool) -> list[str]:
    """The field's known values that fit what was typed: those that begin with it, then those that hold it."""
    if field.kind in ("switch", "on-off"):
        choices: tuple[str, ...] = ("on", "off")
    else:
        choices = field.choices
    word = text.strip().lower()
    if all_of_them or not word:
        return list(choices)
    begins = [choice for choice in choices if choice.lower().startswith(word)]
    return begins + [choice for choice in choices if word in choice.lower() and choice not in begins]
