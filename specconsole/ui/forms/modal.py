"""The base of the modal forms: a box with a title, a body, a line for what is wrong, and a line of keys."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specconsole.ui.formatters import row, styled

T = TypeVar("T")
SHORT_BELOW_ROWS = 30
"""Screens lower than this get forms without blank rows."""


class Modal(ModalScreen[T | None]):
    """Subclasses yield their widgets in `body`; escape leaves with None."""

    DEFAULT_CSS = """
    Modal { align: center middle; background: $background 60%; }
    Modal #box { width: 84; max-width: 96%; height: auto; max-height: 94%; border: round $primary; background: $surface;
        border-title-color: $primary; border-title-style: bold; padding: 1 2; }
    Modal #box.danger { border: round $error; border-title-color: $error; }
    Modal #form-body { height: auto; max-height: 100%; }
    Modal Static { height: auto; width: 1fr; }
    Modal .label { color: $muted; margin-top: 1; }
    Modal #wrong { color: $error; display: none; margin-top: 1; }
    Modal #keys { margin-top: 1; color: $muted; }
    Modal Input { border: none; border-left: outer $rule; background: $panel; height: 1; padding: 0 1; }
    Modal Input:focus { border: none; border-left: outer $primary; }
    Modal OptionList { border: none; border-left: outer $rule; background: $background; height: auto; max-height: 12;
        padding: 0 1; scrollbar-size-vertical: 1; }
    Modal OptionList:focus { border: none; border-left: outer $primary; }
    Modal OptionList > .option-list--option-highlighted { background: $panel; color: $foreground; }
    Modal OptionList:focus > .option-list--option-highlighted { background: $selection; color: $foreground; }
    Modal.short #box { padding: 0 1; }
    Modal.short .label { margin-top: 0; }
    Modal.short #keys { margin-top: 0; }
    Modal.short OptionList { max-height: 6; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]
    TITLE_TEXT = ""
    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("⏎", "go on"), ("esc", "leave"))

    def __init__(self, title: str, *, danger: bool = False) -> None:
        super().__init__()
        self._title_text = title
        self._danger = danger

    def body(self) -> ComposeResult:
        """The form's own widgets."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        box = Vertical(id="box", classes="danger" if self._danger else "")
        box.border_title = styled(self._title_text)
        with box:
            with VerticalScroll(id="form-body", can_focus=False):
                yield from self.body()
            yield Static("", id="wrong", markup=False)
            yield Static(self.keys_line(), id="keys")

    def on_resize(self) -> None:
        self.set_class(self.app.size.height < SHORT_BELOW_ROWS, "short")

    def keys_line(self) -> Content:
        parts: list[str | tuple[str, str]] = []
        for key, label in self.KEYS:
            parts += [(key, "bold $primary"), f" {label}   "]
        return row(*parts)

    def wrong(self, text: str) -> None:
        """Says what can't be taken, until the next try."""
        line = self.query_one("#wrong", Static)
        line.display = bool(text)
        line.update(styled(text))

    def action_leave(self) -> None:
        self.dismiss(None)
