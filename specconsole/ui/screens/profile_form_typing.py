"""A value being typed in the form: judged with every letter, completed, taken or left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from specconsole.errors import SpecconsoleError
from specconsole.ui.widgets.form_editor import SHOWN, matching

if TYPE_CHECKING:
    from specconsole.core.launching.form_fields import FormField
    from specconsole.core.views.form import FormView
    from specconsole.ui.screens.profile_form import ProfileForm


def _common_start(values: Sequence[str]) -> str:
    """What all of them begin with, letter by letter."""
    low, high = min(values), max(values)
    length = next((at for at, letter in enumerate(low) if at >= len(high) or letter != high[at]), len(low))
    return low[:length]


PATH_QUIET_S = 0.12
"""So long no letter may come before the host is asked what is in a folder."""


class Typing:
    """At most one field at a time."""

    def __init__(self, form: ProfileForm) -> None:
        self._form = form
        self.field: FormField | None = None
        """None while nothing is typed."""
        self.trial: FormView | None = None
        """What would be shown with what is typed; None where that can't be taken, or is what there is."""
        self.wrong = ""
        """What can't be taken of it."""
        self._began_with = ""
        self._asking: asyncio.Task[None] | None = None

    def begin(self, field: FormField, text: str) -> None:
        """Opens the line over the field's value."""
        form = self._form
        self.field, self._began_with = field, text
        self.wrong, self.trial = "", None
        form.editor.begin(text)
        self.move()
        form.suggestions.at = -1
        form.suggestions.offer(matching(field, "", all_of_them=True))
        if field.kind == "path":
            self._ask_host(text)
        self._place_suggestions()
        form.refresh_form()

    def move(self) -> None:
        """Puts the line where the field is now."""
        if self.field is None:
            return
        self._place_suggestions()

    def _place_suggestions(self) -> None:
        form = self._form
        texts = (form.editor.value, *form.suggestions.values)
        column, line, cells = form.list.place_of_cursor(max(map(len, texts)) + 3)
        form.editor.styles.offset = (column, line)
        form.editor.styles.width = cells
        height = form.list.size.height
        wanted = min(SHOWN, max(1, len(form.suggestions.values) + bool(form.suggestions.note)))
        below = height - line - 1
        # Below the value, or above it where there is more room.
        rows = min(wanted, max(below, line))
        form.suggestions.styles.height = max(1, rows)
        form.suggestions.styles.width = cells
        form.suggestions.styles.offset = (column, line + 1 if below >= rows else line - rows)

    def changed(self, text: str) -> None:
        """One more letter: judged at once."""
        field = self.field
        if field is None:
            return
        form = self._form
        own, self.wrong = form.model.with_text(field, text)
        self.trial = form.model.view_of(own) if not self.wrong and own != form.model.own else None
        if field.kind == "path":
            self._ask_host(text)
        else:
            form.suggestions.offer(matching(field, text, all_of_them=text == self._began_with))
        self._place_suggestions()
        form.refresh_form()

    def submit(self) -> bool:
        """Takes what is typed, or the suggestion that was chosen; False where it can't be taken."""
        field, form = self.field, self._form
        if field is None:
            return True
        text = form.suggestions.marked or form.editor.value
        if field.closed and text and text not in field.choices:
            fitting = [one for one in form.suggestions.values if one.lower().startswith(text.lower())]
            text = fitting[0] if len(fitting) == 1 else text
        if text != self._began_with or form.suggestions.marked:
            self.wrong = form.model.set_text(field, text)
            if self.wrong:
                form.refresh_form()
                return False
        self.close()
        form.changed()
        return True

    def pick(self, value: str) -> None:
        """A suggestion was clicked."""
        if self.field is not None and self.field.kind == "path" and value.endswith("/"):
            self._type(value)
            return
        self._type(value)
        self.submit()

    def take_suggestion(self) -> None:
        """Tab: the chosen suggestion, else what all of them begin with, else the first one."""
        values = self._form.suggestions.values
        if not values:
            return
        text = self._form.editor.value
        common = _common_start(values)
        longer = common if len(common) > len(text) and common.lower().startswith(text.lower()) else ""
        self._type(self._form.suggestions.marked or longer or values[0])

    def _type(self, text: str) -> None:
        self._form.suggestions.at = -1
        self._form.editor.value = text
        self._form.editor.cursor_position = len(text)
        self._form.editor.focus()

    def close(self) -> None:
        """Closes the line; what was typed is gone."""
        if self.field is None:
            return
        self.field, self.trial, self.wrong = None, None, ""
        if self._asking is not None:
            self._asking.cancel()
        self._form.editor.display = False
        self._form.suggestions.display = False
        self._form.list.focus()
        self._form.refresh_form()

    # ---------------------------------------------------------------- paths on the host

    def _ask_host(self, text: str) -> None:
        if self._asking is not None:
            self._asking.cancel()
        self._asking = self._form.spawn(self._complete(text), "form-path")

    async def _complete(self, text: str) -> None:
        form = self._form
        await asyncio.sleep(PATH_QUIET_S)
        if not form.suggestions.values:
            form.suggestions.offer((), f"asking {form.host}" if text.startswith(("/", "~/")) else "")
            self._place_suggestions()
        note = ""
        try:
            found = await form.commands.complete_path(form.looks.session, form.host, text)
        except (SpecconsoleError, TimeoutError) as error:
            found, note = (), error.what if isinstance(error, SpecconsoleError) else f"{form.host} does not answer"
        if self.field is not None and form.editor.value == text:
            if not found and text.startswith(("/", "~/")) and not note:
                note = f"nothing on {form.host} begins so"
            form.suggestions.offer([one for one in found if one != text], note if not found else "")
            self._place_suggestions()
