"""The log as lines on the line API: ten lines or ten million cost one screen of work.

It scrolls by itself (rows as numbers, no virtual size). Where the person stands in which log is a `LogSession`;
how a line looks, `line_style`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from specconsole.core.reading.phase_names import PHASES

if TYPE_CHECKING:
    from specconsole.core.reading.model import TimelineEntry
    from specconsole.ui.log.session import LogSession

_LOOKS = {
    "stamp": ("muted", ""), "rank": ("accent", ""), "error": ("error", ""), "warning": ("warning", ""),
    "poll": ("muted", ""), "debug": ("muted", ""), "match": ("background", "match"), "selected": ("", "selection"),
    "marked": ("", "panel"), "gutter": ("rule", ""), "thumb": ("primary", ""), "track": ("rule", ""),
    "empty": ("muted", ""), **{f"phase-{phase}": (f"phase-{phase}", "") for phase in PHASES},
}  # fmt: skip
"""Part -> (theme variable of the text, of the ground). No CSS component classes: 26 of them cost a fifth of the first
paint (Textual 8.2.8), and each is one colour."""


class LogView(Widget, can_focus=True):
    """Draws one log; without one, `empty_text` says why."""

    ALLOW_SELECT = False

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.session: LogSession | None = None
        self.wrap = False
        self.empty_text = ""
        self._phase_starts: list[int] = []
        self._phases: list[str] = []
        self._styles: dict[str, Style] = {}
        self._dragging = ""
        self.drawn: dict[object, Strip] = {}
        """Lines as they were drawn in the present colours, by all that their look hangs on."""
        self._looks: list[object] = []

    def show(self, session: LogSession | None) -> None:
        """Turns to another log, where the person left it."""
        self.session = session
        self.redraw()

    def set_timeline(self, timeline: Sequence[TimelineEntry]) -> None:
        """Phases for the gutter; their line numbers count from 1."""
        starts = [entry.line_no - 1 for entry in timeline]
        phases: list[str] = [entry.phase for entry in timeline]
        if (starts, phases) != (self._phase_starts, self._phases):
            self._phase_starts, self._phases = starts, phases
            self.redraw()

    def redraw(self) -> None:
        """Lays the screen out anew, and paints the rows that differ."""
        before, self._looks = self._looks, []
        if self.session is not None:
            port = self.session.port
            port.width, port.height = max(1, self.size.width - 2), self.page_rows
            port.wrap = self.wrap
            port.changed()
            if len(self.session.rows):
                # Loaded with the first log: the first paint need not pay for it.
                from specconsole.ui.log.drawing import looks

                self._looks = looks(self, self.session, self.size.width)
        if not self._looks or len(before) != len(self._looks):
            self.refresh()
            return
        changed = [y for y, (old, new) in enumerate(zip(before, self._looks, strict=True)) if old != new]
        if len(changed) == len(before):
            self.refresh()
        elif changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def say_empty(self, text: str) -> None:
        """What stands there while there is no line to show."""
        if text != self.empty_text:
            self.empty_text = text
            self.redraw()

    def _moved(self) -> None:
        """The person scrolled or selected, or following began or ended.

        Told at once, not by a message: the pane's title changes with it, and what comes later is a frame of its own.
        """
        if self.session is not None:
            self.session.moved()
            self.session.changed()

    # Where

    @property
    def page_rows(self) -> int:
        return max(1, self.size.height)

    def scroll_rows(self, rows: int) -> None:
        """Moves by screen rows, or the end of the selection while selecting."""
        if self.session is None:
            return
        if self.session.range.by_keys:
            self.session.range.extend(rows)
        else:
            self.session.port.move(rows)
        self._moved()

    def scroll_columns(self, columns: int) -> None:
        if self.session is not None:
            self.session.left = 0 if self.wrap else max(0, self.session.left + columns)
            self.redraw()

    def to_top(self) -> None:
        if self.session is not None:
            self.session.port.go(0)
            self._moved()

    def set_follow(self, follow: bool) -> None:
        """At the end from now on, or still where it is."""
        if self.session is not None:
            self.session.port.shown()
            self.session.port.follow = follow
            self._moved()

    def reveal(self, line: int, *, mark: bool = True) -> None:
        """Shows a line a third down the screen and stands still there."""
        if self.session is not None:
            self.session.reveal(line, above=self.page_rows // 3, mark=mark)
            self._moved()

    def start_selection(self) -> None:
        """Selects the marked line, or the first on the screen; moving extends it."""
        if self.session is not None:
            marked = self.session.marked_line
            self.session.range.start(None if marked is None else self.session.rows.row(marked))
            self._moved()

    def phase_of(self, line: int) -> str | None:
        place = bisect_right(self._phase_starts, line)
        return self._phases[place - 1] if place else None

    def phase_start(self, line: int, step: int) -> int | None:
        """The line where the next (1) or the previous (-1) phase starts, seen from `line`; None without one."""
        if step > 0:
            return next((start for start in self._phase_starts if start > line), None)
        return next((start for start in reversed(self._phase_starts) if start < line), None)

    # Drawing

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles = {}
        self.drawn.clear()

    def _styled(self) -> dict[str, Style]:
        if not self._styles:
            variables = self.app.theme_variables

            def colour(name: str) -> RichColor | None:
                return Color.parse(variables[name]).rich_color if name else None

            self._styles = {
                part: Style(color=colour(text), bgcolor=colour(ground), bold=part == "marked" or None)
                for part, (text, ground) in _LOOKS.items()
            }
            self._styles["base"] = self.rich_style
        return self._styles

    def render_line(self, y: int) -> Strip:
        try:
            return self._line(y)
        except Exception as error:  # noqa: BLE001  # one line that can't be drawn ends no window
            report = getattr(self.app, "fault", None)
            if report is not None:
                report("the log", error)
            return Strip.blank(self.size.width, self.rich_style)

    def _line(self, y: int) -> Strip:
        width = self.size.width
        styles = self._styled()
        if self.session is None or not self.session.port.shown():
            return self._empty_line(y, width, styles)
        from specconsole.ui.log.drawing import log_line

        return log_line(self, self.session, y, width, styles)

    def _empty_line(self, y: int, width: int, styles: dict[str, Style]) -> Strip:
        lines = self.empty_text.split("\n")
        top = max(0, (self.size.height - len(lines)) // 2)
        text = lines[y - top][: width - 2] if 0 <= y - top < len(lines) else ""
        line = f"{' ' * max(0, (width - cell_len(text)) // 2)}{text}"
        return Strip([Segment(line + " " * (width - cell_len(line)), styles["base"] + styles["empty"])], width)

    # Mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if self.session is None:
            return
        if event.x >= self.size.width - 1 and len(self.session.rows) > self.page_rows:
            self._dragging = "thumb"
            self.session.port.drag_to(event.y)
            self._moved()
        else:
            self._dragging = "text"
            self.session.range.press(event.x - 1 + self.session.left, event.y)
            self.redraw()
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.session is None or not self._dragging:
            return
        if self._dragging == "thumb":
            self.session.port.drag_to(event.y)
            self._moved()
            return
        if not 0 <= event.y < self.size.height:
            self.session.port.move(-1 if event.y < 0 else 1)
        if self.session.range.drag(event.x - 1 + self.session.left, event.y):
            self.session.port.follow = False
            self._moved()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        self.release_mouse()
        if self._dragging == "text" and self.session is not None:
            self.session.range.release()
            self.redraw()
        self._dragging = ""

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-3)

    def on_resize(self) -> None:
        self.redraw()
