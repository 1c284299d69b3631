"""What to measure a launch with: workload, loads, repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from specconsole.core.measuring.run_plan import BenchOrder
from specconsole.core.measuring.statistics import FIRST_LOOK
from specconsole.ui.formatters import styled
from specconsole.ui.forms.modal import Modal

USUAL = "quick"


def parse_loads(text: str) -> tuple[int, ...]:
    """`1, 2, 4` as numbers; () for an empty text. Raises ValueError with a sentence for the person."""
    words = text.replace(",", " ").split()
    if not all(word.isdigit() and 1 <= int(word) <= 8192 for word in words):
        raise ValueError("requests at once: numbers from 1 to 8192, as in 1, 2, 4, 8")
    return tuple(dict.fromkeys(int(word) for word in words))


class BenchForm(Modal[BenchOrder]):
    """Gives the order; what it will take is said before it starts."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+l", "start", show=False, priority=True)]
    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("⏎", "next, then measure"), ("^l", "measure"), ("tab", "next field"), ("esc", "leave"),
    )  # fmt: skip

    def __init__(self, name: str, workloads: Sequence[str]) -> None:
        super().__init__(f"measure {name}")
        self._workloads = list(workloads)

    def body(self) -> ComposeResult:
        yield Static(styled("workload", "$muted"))
        yield OptionList(*(Option(styled(name)) for name in self._workloads), id="workloads")
        yield Static(styled("requests at once (empty: the workload's own)", "$muted"), classes="label")
        yield Input("", placeholder="1, 2, 4, 8", id="loads")
        yield Static(styled("repeats of each", "$muted"), classes="label")
        yield Input("3", id="repeats")
        yield Static(
            styled("stop early once throughput is known to so many % (empty: never)", "$muted"), classes="label"
        )
        yield Input("", placeholder="3", id="until")

    def on_mount(self) -> None:
        workloads = self.query_one("#workloads", OptionList)
        if self._workloads:
            workloads.highlighted = self._workloads.index(USUAL) if USUAL in self._workloads else 0
        workloads.focus()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.focus_next()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.input.id == "until":
            self.action_start()
        else:
            self.focus_next()

    def action_start(self) -> None:
        place = self.query_one("#workloads", OptionList).highlighted
        if place is None:
            self.wrong("there is no workload")
            return
        try:
            loads = parse_loads(self.query_one("#loads", Input).value)
            repeats = self._number("#repeats", "repeats", 1, 1000)
            text = self.query_one("#until", Input).value.strip().rstrip("%")
            until = float(text) / 100.0 if text else None
        except ValueError as error:
            self.wrong(
                str(error) if "could not convert" not in str(error) else "a number of per cent is wanted, as in 3"
            )
            return
        if until is not None and (not 0 < until <= 0.5 or repeats <= FIRST_LOOK):
            self.wrong(f"stopping early wants more than {FIRST_LOOK} repeats, and more than 0, at most 50 %")
            return
        self.dismiss(BenchOrder(self._workloads[place], loads, repeats, until))

    def _number(self, field: str, name: str, least: int, most: int) -> int:
        text = self.query_one(field, Input).value.strip()
        if not text.isdigit() or not least <= int(text) <= most:
            raise ValueError(f"{name}: a number from {least} to {most}")
        return int(text)
