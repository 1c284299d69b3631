"""The footer: the keys that act where the focus is, greyed where they can't; a click presses them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content

from specconsole.ui.formatters import fit, row
from specconsole.ui.messages import ActionAsked
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.ui.keymap import Action


class FooterLine(TextPane):
    """`offer` says the actions of the moment, each with the reason why it can't be done ("" when it can)."""

    def __init__(self, offer: Callable[[], Sequence[tuple[Action, str]]]) -> None:
        super().__init__(id="footer")
        self._offer = offer
        self._spots: list[tuple[int, int, str]] = []

    def build(self, width: int, height: int) -> Sequence[Content]:
        parts: list[str | tuple[str, str]] = []
        self._spots = []
        offered = list(self._offer())
        # What always stands at the end (help, palette) keeps its place; the middle gives way.
        tail = [pair for pair in offered if pair[0].footer >= 20]
        tail_cells = sum(_cells(action) for action, _ in tail)
        place = 0
        middle = [pair for pair in offered if pair[0].footer < 20]
        if sum(_cells(action) for action, _ in middle) > width - tail_cells:
            # On a narrow screen what can be done comes before what can't.
            middle.sort(key=lambda pair: bool(pair[1]))
        for action, why in middle:
            if place + _cells(action) > width - tail_cells:
                continue
            place = self._add(parts, action, why, place)
        for action, why in tail:
            place = self._add(parts, action, why, place)
        return [fit(row(*parts), width)]

    def _add(self, parts: list[str | tuple[str, str]], action: Action, why: str, place: int) -> int:
        key_style, label_style = ("$muted 60%", "$muted 60%") if why else ("bold $primary", "$foreground")
        parts += [(f" {action.shown_key}", key_style), (f" {action.label} ", label_style)]
        self._spots.append((place, place + _cells(action), action.action_id))
        return place + _cells(action)

    def on_click(self, event: events.Click) -> None:
        for start, stop, action_id in self._spots:
            if start <= event.x < stop:
                self.post_message(ActionAsked(action_id))


def _cells(action: Action) -> int:
    return len(action.shown_key) + len(action.label) + 3
