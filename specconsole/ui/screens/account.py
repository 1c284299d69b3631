"""How a launch really runs, by its own account: what was overridden or ignored, what the server chose itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from specconsole.core.launching.account_text import account_lines
from specconsole.ui.formatters import row, styled
from specconsole.ui.forms.modal import Modal

if TYPE_CHECKING:
    from specconsole.core.launching.effective import Account


class AccountScreen(Modal[bool]):
    """One line a fact; what is not as it was asked stands out."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("esc", "close"), ("↑ ↓", "scroll"))

    def __init__(self, name: str, account: Account) -> None:
        super().__init__(f"how {name} runs")
        self._account = account

    def body(self) -> ComposeResult:
        yield Static(Content("\n").join([_line(text) for text in account_lines(self._account)]))

    def on_mount(self) -> None:
        body = self.query_one("#form-body")
        body.can_focus = True
        body.focus()


def _line(text: str) -> Content:
    if text.startswith("! "):
        return styled(text, "bold $warning")
    label, sign, rest = text.partition(": ")
    return row((f"{label}: ", "$muted"), rest) if sign else styled(text)
