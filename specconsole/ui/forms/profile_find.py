"""Goes to a setting by any part of its name, or adds one of the server's flags or a variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from specconsole.core.launching.form_search import Hit
from specconsole.ui.formatters import fit, row, styled
from specconsole.ui.forms.modal import Modal

_SHOWN = 40


class ProfileFind(Modal[Hit]):
    """`search` gives the hits for what was typed, the best first. Gives the chosen one."""

    DEFAULT_CSS = """
    ProfileFind #box { width: 100; height: 24; }
    ProfileFind #form-body { height: 1fr; }
    ProfileFind OptionList { height: 1fr; max-height: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
    ProfileFind.short OptionList { max-height: 100%; }
    ProfileFind OptionList > .option-list--option-highlighted { background: $selection; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "step(1)", show=False, priority=True),
        Binding("up", "step(-1)", show=False, priority=True),
        Binding("pagedown", "step(8)", show=False, priority=True),
        Binding("pageup", "step(-8)", show=False, priority=True),
    ]
    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("⏎", "go there and edit"), ("↑ ↓", "choose"), ("esc", "back"), ("+", "not set yet: added"),
    )  # fmt: skip

    def __init__(self, search: Callable[[str], Sequence[Hit]]) -> None:
        super().__init__("find a setting, or add a flag or a variable")
        self._search = search
        self._hits: Sequence[Hit] = ()

    def body(self) -> ComposeResult:
        yield Input(placeholder="part of a name: steps, mem frac, NCCL_ALGO", id="find-query")
        yield OptionList(id="find-hits")

    def on_mount(self) -> None:
        self.query_one(OptionList).can_focus = False
        self.query_one(Input).focus()
        self._fill("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._fill(event.value)

    def _fill(self, query: str) -> None:
        self._hits = self._search(query)[:_SHOWN]
        width = max(20, min(100, self.app.size.width * 96 // 100) - 12)
        hits = self.query_one(OptionList)
        hits.clear_options()
        hits.add_options([Option(_line(hit, width)) for hit in self._hits])
        hits.highlighted = 0 if self._hits else None
        self.wrong("" if self._hits else "nothing is called so; a NAME in capitals is a new variable")

    def action_step(self, by: int) -> None:
        hits = self.query_one(OptionList)
        if self._hits:
            hits.highlighted = max(0, min(len(self._hits) - 1, (hits.highlighted or 0) + by))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        place = self.query_one(OptionList).highlighted
        if place is not None and self._hits:
            self.dismiss(self._hits[place])

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self._hits[event.option_index])


def _line(hit: Hit, width: int) -> Content:
    mark = ("  ", "") if hit.kind == "field" else ("+ ", "bold $success")
    name_style = "$warning" if hit.deprecated else "bold" if hit.value else ""
    head = row(mark, (f"{hit.name:<34} ", name_style))
    value = styled(f"{hit.value}  ", "$primary") if hit.value else Content("")
    about = "deprecated; " + hit.about if hit.deprecated else hit.about
    return fit(row(head, value, (about, "$muted")), width)
