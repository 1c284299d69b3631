"""The failure or stall card of the selected launch; it takes the rows it needs and none without a card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content

from specconsole.ui.messages import ActionAsked
from specconsole.ui.text.card_text import SEEN_BEFORE_LINES, card, card_kind
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.core.views.launch import LaunchView
    from specconsole.ui.desk import Desk


class CardPane(TextPane):
    """Folded with `c`; the footer's keys stay the same."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="card")
        self.desk = desk
        self.small = False
        self._before: tuple[str, int, list[str]] = ("", 0, [])

    def build(self, width: int, height: int) -> Sequence[Content]:
        launch = self.desk.launch
        if launch is None or launch.launch_id in self.desk.folded_cards:
            return []
        before = self._seen_before(launch)
        # A small screen keeps room for the log: the last line before must do.
        return card(launch, before[-1:] if self.small else before, width, self.desk.monotonic_s(), brief=self.small,
                    evidence=self._evidence(launch))  # fmt: skip

    def _evidence(self, launch: LaunchView) -> list[str]:
        host = self.desk.board.hosts.get(launch.host)
        if host is None or card_kind(launch) != "stall":
            return []
        from specconsole.core.hardware.evidence import stall_evidence

        return [fact.text for fact in stall_evidence(host, launch.launch_id)]

    def fit_height(self, width: int, *, small: bool) -> None:
        """Takes as many rows as the card has; called before the panes below are laid out."""
        self.small = small
        launch = self.desk.launch
        kind = card_kind(launch)
        shown = bool(kind) and launch is not None and launch.launch_id not in self.desk.folded_cards
        self.display = shown
        if shown:
            self.set_class(kind in ("stall", "suspect"), "warning")
            rows = len(self.build(max(20, width), 0)) + (0 if small else 2)
            if self.styles.height is None or self.styles.height.value != rows:
                self.styles.height = rows
            self.update()

    def _seen_before(self, launch: LaunchView) -> list[str]:
        """The lines just above the cause, read once."""
        reading = launch.reading
        failure = (reading.failure or reading.suspect) if reading is not None else None
        if failure is None or failure.line_no is None:
            return []
        if self._before[:2] != (launch.launch_id, failure.line_no):
            source = self.desk.commands.line_source(launch.launch_id)
            first = max(0, failure.line_no - 1 - SEEN_BEFORE_LINES)
            lines = source.lines(first, failure.line_no - 1) if source is not None else []
            self._before = (launch.launch_id, failure.line_no, [line for line in lines if line.strip()])
        return self._before[2]

    def on_click(self, event: events.Click) -> None:
        if event.y < 3:
            self.post_message(ActionAsked("error"))
