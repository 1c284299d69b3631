"""The log pane: tabs, the view, the search line, and a title that says what is shown and filtered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from specconsole.ui.formatters import count, fit, joined_whole, row, styled
from specconsole.ui.log.view import LogView
from specconsole.ui.messages import LaunchPicked
from specconsole.ui.text.launch_text import MARKS, queue_text
from specconsole.ui.widgets.search_line import SearchLine
from specconsole.ui.widgets.text_pane import TextPane
from specconsole.ui.widgets.titled import Titled

if TYPE_CHECKING:
    from specconsole.core.views.launch import LaunchView
    from specconsole.core.views.log_line import Level
    from specconsole.ui.desk import Desk
    from specconsole.ui.log.session import LogSession

KEPT_SESSIONS = 12
"""Logs whose place is remembered without a tab of their own."""
FIRST_STEPS = "\n".join(
    f"{line:38}" if line else ""
    for line in (
        "The log of a launch will stand here.",
        "",
        "l   starts a server from a profile",
        "A   watches one that runs already",
        "H   adds a GPU host reached over SSH",
        "?   explains the pane and its keys",
    )
)
LEVEL_WORDS = {"debug": "", "info": "no polls", "warning": "warnings and errors", "error": "errors alone"}


class LogTabs(TextPane):
    """The open logs; hidden while there is one only."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="log-tabs")
        self.desk = desk
        self._spots: list[tuple[int, int, str]] = []

    def shown(self) -> list[LaunchView]:
        """Kept tabs, and the selected launch if it has none."""
        ids = self.desk.tabs if self.desk.launch_id in self.desk.tabs else [*self.desk.tabs, self.desk.launch_id]
        return [view for launch_id in ids if (view := self.desk.board.launches.get(launch_id)) is not None]

    def build(self, width: int, height: int) -> Sequence[Content]:
        parts: list[str | tuple[str, str]] = []
        self._spots = []
        place = 0
        for view in self.shown():
            mark, mark_style = MARKS[view.state]
            kept = view.launch_id in self.desk.tabs
            text = f" {view.name} "
            style = "bold on $selection" if view.launch_id == self.desk.launch_id else "$muted on $panel"
            parts += [(f" {mark}", f"{mark_style} {style}"), (text, style if kept else f"italic {style}"), " "]
            self._spots.append((place, place + len(text) + 2, view.launch_id))
            place += len(text) + 3
        return [fit(row(*parts), width)]

    def on_click(self, event: events.Click) -> None:
        for start, stop, launch_id in self._spots:
            if start <= event.x < stop:
                self.post_message(LaunchPicked(launch_id, keep=True))


class LogPane(Titled, Vertical):
    """Shows the selected launch's log; keeps the place in every log that is open."""

    HELP: ClassVar[str] = (
        "The launch's own output, as it is; nothing in it can act on your terminal. The colour at the left is the "
        "phase a line was printed in. The view follows the end until you move up. Search runs in the background from "
        "where you look; lower case finds both cases. Filters: ranks, level, and one line for what all ranks print."
    )

    def __init__(self, desk: Desk) -> None:
        super().__init__(id="log")
        self.desk = desk
        self.tabs = LogTabs(desk)
        self.view = LogView(id="log-view")
        self.search_line = SearchLine(self)
        self._sessions: dict[str, LogSession] = {}
        self._shown_id = ""
        self.waiting_places: dict[str, int] = {}
        """First line on the screen of logs that were left standing still and are not shown yet, by launch."""
        self.first_level: Level = "debug"
        self.first_fold = False

    def compose(self) -> ComposeResult:
        yield self.tabs
        yield self.view
        yield self.search_line

    @property
    def session(self) -> LogSession | None:
        return self.view.session

    def session_of(self, launch_id: str) -> LogSession | None:
        """The place in a launch's log; begun when its first line is there."""
        session = self._sessions.get(launch_id)
        if session is None and launch_id:
            source = self.desk.commands.line_source(launch_id)
            if source is None:
                return None
            # Loaded with the first log: the first paint need not pay for it.
            from specconsole.ui.log.session import LogSession

            session = LogSession(source, self._session_changed)
            self._sessions[launch_id] = session
            if self.first_level != "debug" or self.first_fold:
                session.choose(ranks=frozenset(), least=self.first_level, fold=self.first_fold)
            place = self.waiting_places.pop(launch_id, None)
            if place is not None and place < source.line_count:
                session.port.go(session.rows.row(place))
            for old in [key for key in self._sessions if key not in (launch_id, *self.desk.tabs)][:-KEPT_SESSIONS]:
                self._sessions.pop(old).close()
        return session

    def places(self) -> dict[str, int]:
        """First line on the screen of every log that stands still, by launch."""
        return {key: session.top_line for key, session in self._sessions.items() if not session.port.follow}

    def _session_changed(self) -> None:
        self.view.redraw()
        self.update_title()
        self.search_line.update_count()

    def update(self) -> None:
        """Takes in what the board and the spool have that is new; called five times a second."""
        launch = self.desk.launch
        launch_id = launch.launch_id if launch is not None else ""
        session = self.session_of(launch_id)
        if session is not self.view.session or launch_id != self._shown_id:
            self._shown_id = launch_id
            self.view.show(session)
            self.search_line.leave()
        if session is not None:
            session.grown()
        reading = launch.reading if launch is not None else None
        self.view.set_timeline(reading.timeline if reading is not None else ())
        self.view.say_empty(self._empty_text(launch, session))
        shown = self.tabs.shown()
        self.tabs.display = len(shown) > 1
        self.tabs.update()
        self.update_title()

    def _empty_text(self, launch: LaunchView | None, session: LogSession | None) -> str:
        if launch is None and (waits := self.desk.waits_for()):
            return waits
        if launch is None:
            return FIRST_STEPS if not self.desk.board.launches else "no launch is selected"
        if session is None:
            return "no line of its log has arrived yet"
        if session.filtered and session.source.line_count:
            return "no line passes the filter yet" if session.rows.scanning else "no line passes the filter"
        if launch.state == "queued" and launch.waiting is not None:
            return queue_text(launch.waiting, launch.host)
        return "the log is empty"

    def state_words(self) -> list[str]:
        """`TP0 · following · 12,431 lines · 2 ⚠`, piece by piece."""
        session, launch = self.session, self.desk.launch
        if session is None:
            return []
        ranks = sorted(session.ranks)
        words = [", ".join(ranks) if len(ranks) <= 2 else f"{len(ranks)} ranks"] if ranks else []
        words += [LEVEL_WORDS[session.least]] if session.least != "debug" else []
        words += ["folded"] if session.fold else []
        if session.range.by_keys:
            words.append("selecting; y copies, esc ends")
        else:
            words.append("following" if session.port.follow else f"at line {count(session.top_line + 1)}")
        total = session.source.line_count
        if session.filtered:
            done = "" if not session.rows.scanning else f" ({session.rows.scanned_lines / max(1, total):.0%} read)"
            words.append(f"{count(len(session.rows))} of {count(total)} lines{done}")
        else:
            words.append(f"{count(total)} lines")
        warnings = len(launch.reading.warnings) if launch is not None and launch.reading is not None else 0
        words += [f"{warnings} ⚠"] if warnings else []
        words += [session.rows.problem] if session.rows.problem else []
        return words

    def update_title(self) -> None:
        """The state stands at the right end of the upper border."""
        words = joined_whole(self.state_words(), self.size.width - 8)
        room = self.size.width - 6 - len("log ") - len(words)
        title = row(("log ", ""), ("─" * max(1, room) + " ", "$rule"), (words, "$muted")) if words else styled("log")
        self.entitle(title)

    def close(self) -> None:
        """Ends what runs in the background."""
        for session in self._sessions.values():
            session.close()
