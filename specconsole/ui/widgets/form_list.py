"""The settings as one list: sections one below the other, or one at a time where there is little room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.message import Message

from specconsole.core.launching.form_layout import SECTIONS, Section
from specconsole.ui.text.form_text import MARK_CELLS, field_line, label_cells, section_line
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.core.launching.form_fields import FieldPath
    from specconsole.core.views.form import FieldView


_MARGIN_ROWS = 2
"""Settings that stay in sight below the cursor."""


@dataclass(frozen=True, slots=True)
class _Row:
    section: Section
    view: FieldView | None
    """None: the section's head."""


class FormList(TextPane, can_focus=True):
    """Holds the cursor; a row is chosen by keys or the mouse."""

    class Moved(Message):
        """The cursor is on another setting."""

    class Opened(Message):
        """The setting under the cursor was clicked once more."""

    def __init__(self) -> None:
        super().__init__(id="form-list")
        self.one_section = False
        self.top = 0
        self._views: tuple[FieldView, ...] = ()
        self._rows: list[_Row] = []
        self._at = 0
        """The row of the cursor."""
        self._section: Section = "model"

    # ---------------------------------------------------------------- content

    def show(self, views: Sequence[FieldView]) -> None:
        """Takes in the settings as they are now; the cursor stays on its setting."""
        path = self.path
        self._views = tuple(views)
        self._lay_out(path)

    def set_one_section(self, one_section: bool) -> None:
        if one_section != self.one_section:
            self.one_section = one_section
            self._lay_out(self.path)

    def _lay_out(self, path: FieldPath | None) -> None:
        names = (self._section,) if self.one_section else SECTIONS
        self._rows = []
        for name in names:
            views = [view for view in self._views if view.field.section == name]
            self._rows.append(_Row(name, None))
            self._rows += [_Row(name, view) for view in views]
        if path is None or not self._put_on(path):
            self._at = min(self._at, max(0, len(self._rows) - 1))
            self._settle()
        self._keep_in_sight()
        self.update()

    def _put_on(self, path: FieldPath) -> bool:
        for number, one in enumerate(self._rows):
            if one.view is not None and one.view.field.path == path:
                self._at = number
                return True
        return False

    def _settle(self) -> None:
        """Off a section's head, where the section has a setting."""
        if self._rows and self._rows[self._at].view is None:
            if self._at + 1 < len(self._rows) and self._rows[self._at + 1].view is not None:
                self._at += 1
            elif self._at > 0 and self._rows[self._at - 1].view is not None and not self.one_section:
                self._at -= 1

    # ---------------------------------------------------------------- cursor

    @property
    def view(self) -> FieldView | None:
        """The setting under the cursor; None on an empty section."""
        return self._rows[self._at].view if self._at < len(self._rows) else None

    @property
    def path(self) -> FieldPath | None:
        view = self.view
        return view.field.path if view is not None else None

    @property
    def section(self) -> Section:
        return self._rows[self._at].section if self._at < len(self._rows) else self._section

    def go_to(self, path: FieldPath) -> bool:
        """Puts the cursor on a setting; False where it is not in the form."""
        view = next((one for one in self._views if one.field.path == path), None)
        if view is None:
            return False
        if self.one_section and view.field.section != self._section:
            self._section = view.field.section
            self._lay_out(path)
        self._put_on(path)
        self._moved()
        return True

    def go_to_section(self, name: Section) -> None:
        self._section = name
        if self.one_section:
            self._at = 0
            self._lay_out(None)
        else:
            self._at = next(number for number, one in enumerate(self._rows) if one.section == name)
            self.top = self._at
            self._settle()
        self._moved()

    def step_section(self, by: int) -> None:
        names = list(SECTIONS)
        self.go_to_section(names[(names.index(self.section) + by) % len(names)])

    def move(self, by: int) -> None:
        """Over settings; with one section at a time, past its end into the next."""
        fields = [number for number, one in enumerate(self._rows) if one.view is not None]
        if not fields:
            if self.one_section and by:
                self.step_section(1 if by > 0 else -1)
            return
        place = min(range(len(fields)), key=lambda n: abs(fields[n] - self._at))
        if self.one_section and abs(by) == 1 and not 0 <= place + by < len(fields):
            self.step_section(by)
            if by < 0:
                self._at = len(self._rows) - 1
                self._moved()
            return
        self._at = fields[max(0, min(len(fields) - 1, place + by))]
        self._moved()

    def move_to_end(self, *, last: bool) -> None:
        fields = [number for number, one in enumerate(self._rows) if one.view is not None]
        if fields:
            self._at = fields[-1 if last else 0]
            self._moved()

    def _moved(self) -> None:
        if self._rows and not self.one_section:
            self._section = self.section
        self._keep_in_sight()
        self.update()
        self.post_message(self.Moved())

    def _keep_in_sight(self) -> None:
        height = max(1, self.size.height)
        # The head of the first setting's section stays in sight with it.
        first = self._at - 1 if self._at and self._rows[self._at - 1].view is None else self._at
        if first < self.top:
            self.top = first
        elif self._at >= self.top + height - _MARGIN_ROWS:
            self.top = self._at - height + 1 + _MARGIN_ROWS
        self.top = max(0, min(self.top, len(self._rows) - height))

    def place_of_cursor(self, wanted: int = 0) -> tuple[int, int, int]:
        """(column, row, cells) of the value under the cursor, in this widget; for `wanted` cells it may begin as early
        as the name ends."""
        label, view = label_cells(self._views, self.size.width), self.view
        own = min(label, len(view.field.label)) if view is not None else label
        column = max(MARK_CELLS + 2 + own, min(MARK_CELLS + 2 + label, self.size.width - wanted))
        return column, self._at - self.top, max(10, self.size.width - column)

    # ---------------------------------------------------------------- drawing

    def build(self, width: int, height: int) -> Sequence[Content]:
        label = label_cells(self._views, width)
        lines: list[Content] = []
        for number in range(self.top, min(len(self._rows), self.top + height)):
            one = self._rows[number]
            if one.view is None:
                views = [view for view in self._views if view.field.section == one.section]
                lines.append(section_line(one.section, views, width))
            else:
                lines.append(field_line(one.view, width, label, cursor=number == self._at, focused=self.has_focus))
        return lines

    def on_resize(self) -> None:
        self._keep_in_sight()
        super().on_resize()

    def on_focus(self) -> None:
        self.update()

    def on_blur(self) -> None:
        self.update()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-3)

    def on_click(self, event: events.Click) -> None:
        number = self.top + event.y
        if number >= len(self._rows) or self._rows[number].view is None:
            return
        again = number == self._at
        self._at = number
        self._moved()
        if again:
            self.post_message(self.Opened())
