"""What differs between two launches: their settings as the servers printed them, else their command lines."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from specconsole.ui.formatters import row, styled
from specconsole.ui.forms.modal import Modal

if TYPE_CHECKING:
    from specconsole.core.views.launch import LaunchView

VALUE_CELLS = 24


def settings_of(view: LaunchView) -> dict[str, Any]:
    """The server's resolved settings; without them, the flags of the command line."""
    if view.reading is not None and view.reading.server.args:
        return dict(view.reading.server.args)
    found: dict[str, Any] = {}
    try:
        words = shlex.split(view.command)
    except ValueError:
        words = view.command.split()
    name = ""
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].replace("-", "_").partition("=")
            found[name] = value or True
        elif name:
            found[name] = word if found[name] is True else f"{found[name]} {word}"
    return found


def differences(left: LaunchView, right: LaunchView) -> list[tuple[str, str, str]]:
    """(setting, left, right) of what is not equal; `–` where one has none."""
    ours, theirs = settings_of(left), settings_of(right)
    return [
        (name, str(ours.get(name, "–")), str(theirs.get(name, "–")))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


class SettingsDiff(Modal[bool]):
    """Two columns, one line a setting that differs."""

    KEYS = (("esc", "close"), ("↑ ↓", "scroll"))

    def __init__(self, left: LaunchView, right: LaunchView) -> None:
        super().__init__(f"{left.name} against {right.name}")
        self._left = left
        self._right = right

    def body(self) -> ComposeResult:
        found = differences(self._left, self._right)
        if not found:
            yield Static(styled("their settings are the same", "$muted"))
            return
        head = f"{'':<28} {self._left.name[:VALUE_CELLS]:<{VALUE_CELLS}} {self._right.name[:VALUE_CELLS]}"
        lines = [styled(head, "$muted")]
        for name, ours, theirs in found:
            lines.append(row(f"{name[:28]:<28} ", (f"{ours[:VALUE_CELLS]:<{VALUE_CELLS}} ", "$primary"),
                             (theirs[:VALUE_CELLS], "$accent")))  # fmt: skip
        yield Static(Content("\n").join(lines))

    def on_mount(self) -> None:
        body = self.query_one("#form-body")
        body.can_focus = True
        body.focus()
