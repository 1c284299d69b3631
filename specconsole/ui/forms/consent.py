"""Asks whether a key may go where others see it, and goes on when it may."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from specconsole.ui.formatters import styled
from specconsole.ui.forms.confirm import Confirm

if TYPE_CHECKING:
    from specconsole.errors import ConsentNeededError
    from specconsole.ui.app import ConsoleApp


def ask_consent(app: ConsoleApp, error: ConsentNeededError, again: Callable[[], None]) -> None:
    """`again` runs what was refused, once the person has agreed; for this profile that holds as long as the window."""

    def answered(said: bool | None) -> None:
        if said:
            app.desk.commands.agree_to_key_argument(error.subject)
            again()

    lines = [styled(error.what), styled(f"Otherwise: {error.try_}", "$muted")]
    app.push_screen(Confirm(f"{error.subject}: let its key be seen?", lines, yes="start it so"), answered)
