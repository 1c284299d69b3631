"""Two launches side by side, over the window: only what differs, or everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specconsole.core.launching.difference_text import summary
from specconsole.ui.formatters import row, styled
from specconsole.ui.text.difference_text import difference_lines
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.core.launching.difference import Difference

_KEYS = (("↑ ↓ space", "scroll"), ("a", "everything or only what differs"), ("esc", "leave"))


class _Rows(TextPane, can_focus=True):
    def __init__(self, found: Difference) -> None:
        super().__init__(id="difference")
        self.found = found
        self.everything = False
        self.top = 0

    def build(self, width: int, height: int) -> Sequence[Content]:
        lines = difference_lines(self.found, width, everything=self.everything)
        self.top = max(0, min(self.top, len(lines) - height))
        return lines[self.top :]


class DifferenceScreen(ModalScreen[None]):
    """Shows a `Difference`; changes nothing."""

    DEFAULT_CSS = """
    DifferenceScreen { align: center middle; background: $background 60%; }
    DifferenceScreen #difference-box { width: 98%; height: 96%; border: round $primary; background: $surface;
        border-title-color: $primary; border-title-style: bold; padding: 0 1; }
    DifferenceScreen #difference { height: 1fr; }
    DifferenceScreen #difference-keys { height: 1; width: 1fr; color: $muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,d", "leave", show=False),
        Binding("a", "everything", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("pagedown,space", "scroll(12)", show=False),
        Binding("pageup", "scroll(-12)", show=False),
        Binding("home,g", "scroll(-100000)", show=False),
        Binding("end", "scroll(100000)", show=False),
    ]

    def __init__(self, found: Difference) -> None:
        super().__init__()
        self.rows = _Rows(found)

    def compose(self) -> ComposeResult:
        with Vertical(id="difference-box"):
            yield self.rows
            parts: list[str | tuple[str, str]] = []
            for key, label in _KEYS:
                parts += [(key, "bold $primary"), f" {label}   "]
            yield Static(row(*parts), id="difference-keys")

    def on_mount(self) -> None:
        self.query_one("#difference-box").border_title = styled(summary(self.rows.found))
        self.rows.focus()

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_everything(self) -> None:
        self.rows.everything = not self.rows.everything
        self.rows.top = 0
        self.rows.update()

    def action_scroll(self, lines: int) -> None:
        self.rows.top = max(0, self.rows.top + lines)
        self.rows.update()
