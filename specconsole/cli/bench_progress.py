"""A running benchmark on standard error: one line that is redrawn on a terminal, a line a point elsewhere."""

from __future__ import annotations

import shutil
import sys

from specconsole.core.measuring.progress import BenchView
from specconsole.core.measuring.table_view import progress_text


class BenchProgress:
    """`show` takes every view; `clear` before anything else is printed."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._drawn = False
        self._told: tuple[int, str] = (-1, "")

    def show(self, view: BenchView) -> None:
        if self._live:
            width = shutil.get_terminal_size().columns
            print(f"\r\x1b[K{progress_text(view)[: width - 1]}", end="", file=sys.stderr, flush=True)
            self._drawn = True
            return
        now = (view.points_done, view.problem)
        if now != self._told and (view.points_done or view.problem):
            self._told = now
            print(f"point {view.points_done}/{view.points}: {progress_text(view)}", file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._drawn = False
