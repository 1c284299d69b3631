"""Watching a server that somebody started by hand: one of those found, or by log, command, port or pid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from specconsole.services.commands import AttachOrder, FoundServer
from specconsole.ui.formatters import row, styled
from specconsole.ui.forms.modal import Modal

By = Literal["log", "log-command", "port", "pid"]


def parse_target(text: str) -> tuple[By, str]:
    """`/path` is a log, `:30000` a port, a bare number a pid, anything else a command that prints the log.

    Raises ValueError with a sentence for the person.
    """
    text = text.strip()
    if not text:
        raise ValueError("say how to find it: a log's path, :port, a pid, or a command")
    if text.startswith(("/", "~")):
        return "log", text
    if text.startswith(":"):
        if not text[1:].isdigit() or not 0 < int(text[1:]) < 65536:
            raise ValueError("a port is a number from 1 to 65535, as in :30000")
        return "port", text[1:]
    if text.isdigit():
        return "pid", text
    if " " not in text:
        raise ValueError("a command has more than one word, as in docker logs -f NAME; a path begins with /")
    return "log-command", text


class Attach(Modal[AttachOrder]):
    """Gives what to adopt. An adopted server gets no request unless asked, and is never signalled unasked."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("⏎", "watch it"), ("tab", "next field"), ("esc", "leave"))

    def __init__(self, host: str, found: Sequence[FoundServer]) -> None:
        super().__init__(f"watch a server on {host}")
        self._host = host
        self._found = found

    def body(self) -> ComposeResult:
        if self._found:
            yield Static(styled("running there and not watched", "$muted"))
            yield OptionList(*(Option(self._line(server)) for server in self._found), id="found")
        how = "its log's path, its port, its pid, or a command that prints its log"
        yield Static(styled(f"or {how}" if self._found else how, "$muted"), classes="label")
        yield Input(placeholder="/path/server.log   :30000   12345   docker logs -f NAME", id="target")

    @staticmethod
    def _line(server: FoundServer) -> Content:
        port = f":{server.port}" if server.port is not None else ""
        who = f" · {server.user}" if server.user else ""
        return row((f"{server.engine}{port}", "bold"), f" pid {server.pid}{who} ", (server.command, "$muted"))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(AttachOrder(self._host, "pid", str(self._found[event.option_index].pid)))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            by, value = parse_target(event.value)
        except ValueError as error:
            self.wrong(str(error))
        else:
            self.dismiss(AttachOrder(self._host, by, value))
