"""Every finding in full, on a screen that has no room for them beside the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from specconsole.core.launching.form_remarks import Remark
from specconsole.ui.forms.modal import Modal
from specconsole.ui.text.form_text import remark_lines


class FormFindings(Modal[int]):
    """Gives the number of the finding to go to."""

    DEFAULT_CSS = """
    FormFindings OptionList { max-height: 100%; }
    FormFindings.short OptionList { max-height: 16; }
    """
    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("⏎", "go to its setting"), ("esc", "back"))

    def __init__(self, found: Sequence[Remark]) -> None:
        super().__init__("what stands against a start, and what else was found")
        self._found = found

    def body(self) -> ComposeResult:
        width = max(20, min(84, self.app.size.width * 96 // 100) - 9)
        options = [Option(Content("\n").join(remark_lines([one], width, -1)[0])) for one in self._found]
        yield OptionList(*options, id="findings")

    def on_mount(self) -> None:
        found = self.query_one(OptionList)
        found.highlighted = 0 if self._found else None
        found.focus()
        if not self._found:
            self.wrong("nothing has come in yet")

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option_index)
