"""Help for the pane in focus: what it shows, and its keys."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from specconsole.ui.formatters import row, styled
from specconsole.ui.forms.modal import Modal
from specconsole.ui.keymap import Action, key_label

KEY_CELLS = 10
BOX_CELLS = 84


def key_rows(actions: Sequence[Action], width: int) -> list[Content]:
    """The keys of each action, and beside them the sentence that says what it does."""
    rows = []
    for action in actions:
        keys = " ".join(key_label(key) for key in action.keys.split(","))
        asks = " Asks first." if action.changes else ""
        first, *rest = textwrap.wrap(action.help + asks, max(20, width - KEY_CELLS - 2))
        rows.append(row((f"{keys:>{KEY_CELLS}}  ", "bold $primary"), first))
        rows += [styled(" " * (KEY_CELLS + 2) + line) for line in rest]
    return rows


class HelpScreen(Modal[bool]):
    """Scrolls when it is longer than the screen."""

    KEYS = (("esc", "close"), ("↑ ↓", "scroll"))

    def __init__(self, scope: str, about: str, actions: Sequence[Action]) -> None:
        super().__init__(f"help: {scope}" if scope != "any" else "help")
        self._scope = scope
        self._about = about
        self._actions = actions

    def body(self) -> ComposeResult:
        if self._about:
            yield Static(styled(self._about))
        own = [action for action in self._actions if action.scope == self._scope and self._scope != "any"]
        if own:
            yield Static(styled("here", "$muted"), classes="label")
            yield Static(Content("\n").join(key_rows(own, self._width())))
        yield Static(styled("everywhere", "$muted"), classes="label")
        yield Static(Content("\n").join(key_rows([a for a in self._actions if a.scope == "any"], self._width())))
        yield Static(
            styled("Lower-case keys look; upper-case keys change something and ask first. Leaving the window never "
                   "touches a server. Keys are remapped in keys.toml in the configuration folder.", "$muted"),
            classes="label",
        )  # fmt: skip

    def _width(self) -> int:
        return min(BOX_CELLS, self.app.size.width * 96 // 100) - 8

    def on_mount(self) -> None:
        body = self.query_one("#form-body")
        body.can_focus = True
        body.focus()
