"""Progress while a verb waits: one line that is redrawn on a terminal, plain lines when something moved without one."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, TextIO

from specconsole.cli.launch_text import eta_text, phase_text
from specconsole.core.launching.waiting import waiting_text

if TYPE_CHECKING:
    from specconsole.core.views.launch import LaunchView

_BAR_WIDTH = 24
_PLAIN_EVERY_S = 15.0


def waiting_key(view: LaunchView) -> str:
    """What a queued launch waits for, without the figures that change at every look."""
    reasons = view.waiting.reasons if view.waiting is not None else ()
    return " ".join(f"{one.kind} {one.what} {one.launch_id}" for one in reasons)


class WaitProgress:
    """Narrates a launch on standard error."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out if out is not None else sys.stderr
        self._live = self._out.isatty()
        self._drawn = False
        self._last = ""
        self._last_at_s = 0.0
        self._began_s = time.monotonic()

    def show(self, view: LaunchView) -> None:
        """The present state; cheap to call often."""
        if self._live:
            self._redraw(self._line(view))
            return
        phase = f"{view.reading.phase} {view.reading.part}" if view.reading is not None else ""
        key = f"{view.state} {waiting_key(view) if view.state == 'queued' else phase}"
        now = time.monotonic()
        if key != self._last or now - self._last_at_s > _PLAIN_EVERY_S:
            self._last, self._last_at_s = key, now
            print(f"{now - self._began_s:7.1f} s  {self._line(view)}", file=self._out, flush=True)

    def say(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        print(text, file=self._out, flush=True)

    def clear(self) -> None:
        """Takes the redrawn line away."""
        if self._drawn:
            print("\r\x1b[K", end="", file=self._out, flush=True)
            self._drawn = False

    def _redraw(self, line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{line[:width]}\x1b[K", end="", file=self._out, flush=True)
        self._drawn = True

    def _line(self, view: LaunchView) -> str:
        reading = view.reading
        bar = ""
        if reading is not None and reading.progress is not None and reading.progress.total:
            ratio = min(1.0, reading.progress.done / reading.progress.total)
            full = int(ratio * _BAR_WIDTH)
            bar = f" [{'█' * full}{'░' * (_BAR_WIDTH - full)}]" if self._live else ""
        if view.state == "queued" and view.waiting is not None:
            return f"{view.name}: {waiting_text(view.waiting)}"
        text = f"{view.name}: {view.state}{bar}"
        if view.state in ("starting", "loading", "stalled"):
            text += f" {phase_text(reading)}"
            if view.health not in ("not-asked", "200"):
                text += f" (port: {view.health})"
            if reading is not None and reading.ready_eta_s is not None:
                text += f", answers in {eta_text(reading.ready_eta_s)}"
            elif reading is not None and reading.stalled and reading.stall_reason:
                text += f" - {reading.stall_reason}"
        if self._live and view.age_s is not None:
            text += f"  {view.age_s:.0f} s"
        return text
