"""Asks for the name under which a profile is saved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input, Static

from specconsole.ui.formatters import styled
from specconsole.ui.forms.modal import Modal


class ProfileName(Modal[str]):
    """`check` says why a name can't be taken: "" when it can, `replace` when it rewrites a file of the form."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("⏎", "save"), ("esc", "back"))

    def __init__(self, name: str, extends: str, check: Callable[[str], Awaitable[str]]) -> None:
        super().__init__("save as a profile of its own")
        self._name = name
        self._extends = extends
        self._check = check
        self._asked = ""
        """A name that is there and was warned of once."""

    def body(self) -> ComposeResult:
        yield Static(styled("name", "$muted"))
        yield Input(self._name, id="profile-name", select_on_focus=True)
        if self._extends:
            yield Static(styled(f"It extends {self._extends}, and holds only what differs.", "$muted"), classes="label")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    @on(Input.Submitted)
    async def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        name = event.value.strip()
        why = await self._check(name) if name else "a name is wanted"
        if why == "replace" and self._asked != name:
            self._asked = name
            self.wrong(f"the form wrote {name} before; ⏎ once more replaces it")
        elif why not in ("", "replace"):
            self.wrong(why)
        else:
            self.dismiss(name)
