"""The search line below the log: searches while you type, says how many there are and where you stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widget import Widget

from specconsole.ui.formatters import count, row, styled
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from textual.timer import Timer
    from textual.widgets import Input

    from specconsole.ui.widgets.log_pane import LogPane

TYPING_PAUSE_S = 0.12
"""Searching begins this long after the last key, so that typing a word is one search."""


class SearchCount(TextPane):
    """Matches, progress, and how to toggle regular expressions."""

    def __init__(self, line: SearchLine) -> None:
        super().__init__(id="search-count")
        self._line = line

    def build(self, width: int, height: int) -> list[Content]:
        return [self._line.count_text()]


class SearchLine(Horizontal):
    """Hidden until `/`. Enter goes to the next match and leaves the line, escape ends the search."""

    def __init__(self, pane: LogPane) -> None:
        super().__init__(id="search")
        self.pane = pane
        self.regex = False
        self.problem = ""
        self._from_line = 0
        self._led = False
        self._timer: Timer | None = None
        self._count = SearchCount(self)
        self._input: Input | None = None
        self._opened = False

    def compose(self) -> ComposeResult:
        yield self._count

    def open(self) -> None:
        """Shows the line with the last search in it."""
        session = self.pane.session
        if session is None:
            return
        self.make_field()
        if self._input is None:
            return
        self._from_line = session.top_line
        self.display = True
        self._opened = True
        self.problem = ""
        self._input.value = session.search.text if session.search is not None else ""
        # At once, not with the next message: what is typed right behind the slash belongs here.
        self.screen.set_focus(self._input)
        self.update_count()

    def on_mount(self) -> None:
        self.display = False

    def make_field(self) -> None:
        """Makes the field behind the first paint, which need not pay for it, before anybody can have pressed `/`."""
        if self._input is None and self.is_attached:
            from textual.widgets import Input

            self._input = Input(placeholder="find in the log", id="search-input", compact=True, select_on_focus=True)
            self.mount(self._input, before=0)

    def leave(self) -> None:
        """Hides the line; the matches stay lit."""
        if not self._opened:
            return
        self._opened = False
        self.display = False
        if self._input is not None and self._input.has_focus:
            self.screen.set_focus(self.pane.view)

    def on_input_changed(self, event: Widget) -> None:
        if not self._opened:
            return
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(TYPING_PAUSE_S, self.search)

    def search(self) -> None:
        """Begins the search for what stands in the line."""
        session = self.pane.session
        if session is None or self._input is None:
            return
        current = session.search
        if current is not None and (current.text, current.regex) == (self._input.value, self.regex):
            return
        self.problem = ""
        self._led = False
        try:
            session.find(self._input.value, regex=self.regex, from_line=self._from_line)
        except re.error as error:
            self.problem = f"no regular expression: {error.msg} at {error.pos}"
        self.update_count()

    def update_count(self) -> None:
        """Called with every block that was searched: the first match is shown as soon as it is known."""
        session = self.pane.session
        if self._opened and session is not None and session.search is not None and not self._led:
            first = session.search.next_after(self._from_line - 1)
            if first is not None and (first >= self._from_line or session.search.done):
                self._led = True
                self.pane.view.reveal(first)
        if self.display:
            self._count.update()

    def count_text(self) -> Content:
        """`3 of 1,204 · 41 %`."""
        session = self.pane.session
        if self.problem:
            return styled(self.problem, "$error")
        kind = ("regex", "bold $primary") if self.regex else ("text", "$muted")
        search = session.search if session is not None else None
        if session is None or search is None:
            return row(" ", kind, (" ^r ", "$muted"))
        place = search.ordinal(session.marked_line) if session.marked_line is not None else None
        found = f"{count(place)} of {count(search.count)}" if place else f"{count(search.count)} found"
        share = "" if search.done else f" · {search.scanned / max(1, session.source.line_count):.0%}"
        return row(f" {search.problem or found}{share}  ", kind, (" ^r ", "$muted"))

    async def on_key(self, event: events.Key) -> None:
        session = self.pane.session
        if event.key == "escape":
            event.stop()
            if session is not None:
                session.end_search()
            self.leave()
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self.search()
            led = self._led
            self.leave()
            if not led:
                self.step(1)
        elif event.key == "ctrl+r":
            event.stop()
            self.regex = not self.regex
            self.search()
            self.update_count()
        elif event.key in ("up", "down"):
            event.stop()
            self.step(1 if event.key == "down" else -1)

    def step(self, direction: int) -> None:
        """Goes to the next or the previous match, seen from the one that is marked."""
        session = self.pane.session
        if session is None or session.search is None:
            return
        marked = session.marked_line
        if direction > 0:
            line = session.search.next_after(marked if marked is not None else session.top_line - 1)
        else:
            line = session.search.previous_before(marked if marked is not None else session.top_line)
        if line is not None:
            self.pane.view.reveal(line)
            self.update_count()
