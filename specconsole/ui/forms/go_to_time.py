"""Goes to a time of day in the log; the scan runs in the background and can be left."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.widgets import Input, Static

from specconsole.core.views.log_scan import first_line_at
from specconsole.ui.formatters import styled
from specconsole.ui.forms.modal import Modal
from specconsole.ui.log.background import BlockScan

if TYPE_CHECKING:
    from specconsole.services.commands import LineSource

TIME = re.compile(r"\s*(\d{1,2}):(\d{2})(?::(\d{2}))?\s*$")


def parse_time_s(text: str) -> int | None:
    """Seconds since midnight of `14:02` or `14:02:11`; None when it is no time of day."""
    found = TIME.match(text)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59 or int(found[3] or 0) > 59:
        return None
    return int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)


class GoToTime(Modal[int]):
    """Gives the number of the first line at that time or up to an hour later."""

    KEYS: ClassVar[tuple[tuple[str, str], ...]] = (("⏎", "go"), ("esc", "leave"))

    def __init__(self, source: LineSource) -> None:
        super().__init__("go to a time")
        self._source = source
        self._scan: BlockScan[int | None] | None = None

    def body(self) -> ComposeResult:
        yield Static(styled("time of day, as the log's stamps say it: 14:02 or 14:02:11", "$muted"))
        yield Input(placeholder="14:02", id="time")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        time_s = parse_time_s(event.value)
        if time_s is None:
            self.wrong("a time of day is wanted, as in 14:02")
            return
        self.wrong("looking ...")
        self._stop()
        self._scan = BlockScan(
            self._source, 0, lambda first, block: first_line_at(first, block, time_s), self._found, self._ended
        )

    def _found(self, line: int | None, _: int) -> None:
        if line is not None and self.is_current:
            self._stop()
            self.dismiss(line)

    def _ended(self, error: Exception | None) -> None:
        self.wrong(str(error) if error is not None else "no line has that time in its stamp")

    def _stop(self) -> None:
        if self._scan is not None:
            self._scan.cancel()
            self._scan = None

    def on_unmount(self) -> None:
        self._stop()
