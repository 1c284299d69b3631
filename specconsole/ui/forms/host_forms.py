"""Forms about hosts: adding one, trusting its key, answering what it asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from specconsole.ui.formatters import row, styled
from specconsole.ui.forms.modal import Modal

if TYPE_CHECKING:
    from specconsole.core.views.question import Question


class AddHost(Modal[str]):
    """Gives the name of the host to add."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("⏎", "add and connect"), ("↓", "choose"), ("esc", "leave"))

    def __init__(self, known: Sequence[str], taken: Sequence[str]) -> None:
        super().__init__("add a host")
        self._known = [name for name in known if name not in taken]
        self._taken = taken

    def body(self) -> ComposeResult:
        yield Static(styled("a name from ~/.ssh/config, or user@host, or user@host:port", "$muted"))
        yield Input(placeholder="gpu-a", id="name")
        if self._known:
            yield Static(styled("known to ssh", "$muted"), classes="label")
            yield OptionList(*(Option(styled(name)) for name in self._known), id="known")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        name = event.value.strip()
        if not name or any(character.isspace() or not character.isprintable() for character in name):
            self.wrong("a name without spaces is wanted")
        elif name.startswith("-"):
            self.wrong("a host's name can't begin with a dash")
        elif name in self._taken:
            self.wrong(f"{name} is there already")
        else:
            self.dismiss(name)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._known[event.option_index])

    def on_key(self, event: events.Key) -> None:
        if event.key == "down" and isinstance(self.focused, Input) and self._known:
            event.stop()
            self.query_one(OptionList).focus()


class TrustKey(Modal[bool]):
    """True when the person compared the fingerprint and trusts the key."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("y", "trust it and connect"), ("n, esc", "no"))

    def __init__(self, host: str, fingerprint: str) -> None:
        super().__init__(f"trust the key of {host}?", danger=True)
        self._host = host
        self._fingerprint = fingerprint

    def body(self) -> ComposeResult:
        yield Static(styled(f"{self._host} shows a key that is in no known_hosts file:"))
        yield Static(row(("  ", ""), (self._fingerprint, "bold $warning")), id="fingerprint")
        yield Static(styled("Compare it with what the host itself says, on its own console or from its provider:"),
                     classes="label")  # fmt: skip
        yield Static(styled("  ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub", "$muted"))
        yield Static(styled("It is written to your known_hosts; another key is refused from then on."), classes="label")

    def on_key(self, event: events.Key) -> None:
        if event.key in ("y", "n"):
            event.stop()
            self.dismiss(event.key == "y")


class Answer(Modal[str]):
    """Asks for a passphrase or the like; what is typed is shown as dots and kept nowhere."""

    def __init__(self, question: Question) -> None:
        super().__init__(f"{question.host} asks")
        self.question = question

    def body(self) -> ComposeResult:
        yield Static(styled(self.question.text))
        yield Input(password=self.question.secret, id="answer")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)
