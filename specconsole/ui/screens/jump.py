"""Jump mode: a letter on every pane and tab; pressing it goes there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from specconsole.ui.formatters import row

LETTERS = "asdfghjklqwertyuiopzxcvbnm"


class JumpScreen(ModalScreen[str | None]):
    """Targets are (name, label, column, row), the label "" where it stands there already.

    Gives the name of the one whose letter was pressed.
    """

    DEFAULT_CSS = """
    JumpScreen { background: $background 40%; }
    JumpScreen .spot { position: absolute; width: auto; height: 1; background: $accent; color: $background;
        text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, targets: Sequence[tuple[str, str, int, int]]) -> None:
        super().__init__()
        self._targets = dict(zip(LETTERS, targets, strict=False))

    def compose(self) -> ComposeResult:
        for letter, (_, label, column, line) in self._targets.items():
            spot = Static(row(f" {letter} ", (f"{label} " if label else "", "not bold")), classes="spot")
            spot.styles.offset = (column, line)
            yield spot

    def on_key(self, event: events.Key) -> None:
        target = self._targets.get(event.key)
        if target is not None:
            event.stop()
            self.dismiss(target[0])
        elif event.key != "escape":
            event.stop()
            self.dismiss(None)

    def action_leave(self) -> None:
        self.dismiss(None)

    def on_click(self) -> None:
        self.dismiss(None)
