"""The panes around the settings: head, sections, the field in focus, findings, the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.message import Message

from specconsole.core.launching.form_layout import SECTIONS, Section
from specconsole.ui.formatters import fit, row, spread, styled
from specconsole.ui.text.form_text import (
    change_line,
    command_lines,
    counts_text,
    detail_lines,
    remark_lines,
    tabs_line,
)
from specconsole.ui.widgets.text_pane import TextPane

if TYPE_CHECKING:
    from specconsole.core.launching.form_remarks import Remark
    from specconsole.core.views.form import FieldView, FormView


class FormHead(TextPane):
    """One line: which profile, where, whether it is saved, and what is under way."""

    def __init__(self, make: Callable[[], tuple[Content, Content]]) -> None:
        super().__init__(id="form-head")
        self._make = make

    def build(self, width: int, height: int) -> Sequence[Content]:
        return [spread(*self._make(), width)]


class FormTabs(TextPane):
    """The sections; a click goes to one."""

    class Chosen(Message):
        """Go to this section."""

        def __init__(self, section: Section) -> None:
            super().__init__()
            self.section = section

    def __init__(self) -> None:
        super().__init__(id="form-tabs")
        self.section: Section = "model"
        self._views: dict[str, list[FieldView]] = {}
        self._spots: list[tuple[int, int]] = []

    def show(self, view: FormView, section: Section) -> None:
        self.section = section
        self._views = {name: [one for one in view.fields if one.field.section == name] for name in SECTIONS}
        self.update()

    def build(self, width: int, height: int) -> Sequence[Content]:
        line, self._spots = tabs_line(self.section, self._views, width)
        return [line]

    def on_click(self, event: events.Click) -> None:
        for (start, stop), name in zip(self._spots, SECTIONS, strict=False):
            if start <= event.x < stop:
                self.post_message(self.Chosen(name))


class FormDetail(TextPane):
    """The field in focus: what is wrong, what is said about it, the server's own help."""

    def __init__(self, *, id: str = "form-detail") -> None:
        super().__init__(id=id)
        self._what: tuple[FieldView | None, Sequence[Remark], str] = (None, (), "")

    def show(self, view: FieldView | None, remarks: Sequence[Remark], wrong: str) -> None:
        self._what = (view, remarks, wrong)
        self.entitle(styled(view.field.label if view is not None else "nothing here yet"))
        self.update()

    def build(self, width: int, height: int) -> Sequence[Content]:
        view, remarks, wrong = self._what
        return detail_lines(view, remarks, width, height, wrong=wrong)


class FormChecks(TextPane):
    """Every finding, gravest first; the wheel scrolls, a click goes to the finding's setting."""

    class Chosen(Message):
        """Go to this finding."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        super().__init__(id="form-checks")
        self._found: Sequence[Remark] = ()
        self._selected = -1
        self._owners: list[int] = []
        self._top = 0
        self._told = ""

    def show(self, found: Sequence[Remark], selected: int, told: str) -> None:
        """`told`: what the looks are at, "" when they are done."""
        moved = selected != self._selected
        self._found, self._selected, self._told = found, selected, told
        self.entitle(row("findings  ", counts_text(found), ("  " + told if told else "", "$muted")))
        if moved and selected >= 0 and self.size.width:
            _, owners = remark_lines(found, self.size.width, selected)
            first = owners.index(selected) if selected in owners else 0
            last = len(owners) - owners[::-1].index(selected) if selected in owners else 0
            if first < self._top or last > self._top + self.size.height:
                self._top = first
        self.update()

    def build(self, width: int, height: int) -> Sequence[Content]:
        lines, self._owners = remark_lines(self._found, width, self._selected)
        if not lines:
            return [fit(styled("nothing to say so far", "$muted"), width)]
        self._top = max(0, min(self._top, len(lines) - height))
        return lines[self._top : self._top + height]

    def _scroll(self, by: int) -> None:
        self._top += by
        self.update()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(2)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-2)

    def on_click(self, event: events.Click) -> None:
        number = self._top + event.y
        if number < len(self._owners):
            self.post_message(self.Chosen(self._owners[number]))


class FormCommand(TextPane):
    """The command line as it will be, and in words what differs from the parent and from the last launch."""

    def __init__(self) -> None:
        super().__init__(id="form-command")
        self._view: FormView | None = None
        self._here: frozenset[str] = frozenset()
        self.parent_name = ""
        self.last_name = ""

    def show(self, view: FormView, here: frozenset[str]) -> None:
        self._view, self._here = view, here
        self.update()

    def build(self, width: int, height: int) -> Sequence[Content]:
        view = self._view
        if view is None:
            return []
        below: list[Content] = []
        if self.parent_name:
            below.append(change_line(f"to {self.parent_name}", view.against_parent, width, none="no difference"))
        if self.last_name:
            below.append(change_line(f"to {self.last_name}", view.against_last, width, none="no difference"))
        if view.error is not None:
            error = view.error
            where = f"{error.where}: " if error.where and error.where != "the form" else ""
            lines = [styled(f"✗ {where}{error.what}", "bold $error")]
            lines += [styled(f"  try: {error.try_}", "$muted")] if error.try_ else []
            return [fit(line, width) for line in [*lines, *below]]
        lines, at = command_lines(view.units, width, self._here)
        room = max(1, height - len(below))
        if len(lines) > room:
            # Little room: the part that holds the setting in focus, and how much more there is.
            top = max(0, min(at - room // 2, len(lines) - room))
            hidden = len(lines) - room
            lines = lines[top : top + room]
            more = f" … {hidden} more line{'s' if hidden > 1 else ''}, v"
            lines[-1] = spread(lines[-1], styled(more, "$muted"), width)
        return [*(fit(line, width) for line in lines), *below]


class FormCount(TextPane):
    """On a small screen: the findings as numbers, and the grave one in words."""

    def __init__(self) -> None:
        super().__init__(id="form-count")
        self._found: Sequence[Remark] = ()
        self._told = ""

    def show(self, found: Sequence[Remark], told: str) -> None:
        self._found, self._told = found, told
        self.update()

    def build(self, width: int, height: int) -> Sequence[Content]:
        first = next((one for one in self._found if one.level == "error"), None)
        tail = styled(
            self._told or (first.text if first is not None else "c shows them"), "$error" if first else "$muted"
        )
        return [fit(row(" ", counts_text(self._found), "  ", tail), width)]
