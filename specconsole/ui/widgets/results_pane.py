"""Measured results; until there are some, how to get them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from specconsole.ui.formatters import fit, styled
from specconsole.ui.text.results_text import how_to, table, title_note
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.ui.desk import Desk


class ResultsPane(TextPane, can_focus=True):
    """One row a launch, one column a concurrency level, scrolled by keys."""

    HELP = (
        "Output tokens per second by concurrency (C). ↑ and ↓ stand against the baseline, where the noise allows a "
        "verdict. Accept length counts the bonus token; it, the step time and the break-even belong to one "
        "concurrency, which the title names."
    )
    BORDER_TITLE: ClassVar[str] = "results"

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="results")
        self.desk = desk
        self.compact = False
        self.first_column = 0
        self.first_row = 0

    def build(self, width: int, height: int) -> Sequence[Content]:
        results = self.desk.board.results
        note = title_note(results)
        self.entitle(Content(f"results ─ {note}" if note else "results"))
        if self.desk.starting:
            return [fit(styled("◌ starting", "$muted"), width)]
        if not results.rows:
            return how_to(width, can_measure=self.desk.commands.can("bench"))
        lines = table(results, width, first_column=self.first_column, compact=self.compact)
        self.first_row = max(0, min(self.first_row, len(lines) - height))
        return [lines[0], *lines[1 + self.first_row :]]

    def scroll(self, rows: int = 0, columns: int = 0) -> None:
        """Moves the table under its header."""
        levels = len(self.desk.board.results.concurrencies)
        self.first_row = max(0, self.first_row + rows)
        self.first_column = max(0, min(self.first_column + columns, levels - 1))
        self.update()
