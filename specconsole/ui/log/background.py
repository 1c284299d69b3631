"""Runs a scan over a source's blocks in a thread of its own and hands results to the loop.

The thread is a daemon: leaving the window never waits for a search through gigabytes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from specconsole.services.commands import LineSource

T = TypeVar("T")


class BlockScan(Generic[T]):
    """One pass from line `start`; `deliver(result, lines_done)` and `finish(error)` are called in the loop."""

    def __init__(
        self,
        source: LineSource,
        start: int,
        work: Callable[[int, bytes], T],
        deliver: Callable[[T, int], None],
        finish: Callable[[Exception | None], None],
        *,
        before: int | None = None,
    ) -> None:
        self._source = source
        self._start = start
        self._before = before
        self._work = work
        self._deliver = deliver
        self._finish = finish
        self._cancelled = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="log-scan", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """No more results arrive after this."""
        self._cancelled.set()

    def _call(self, callback: Callable[..., None], *args: object) -> None:
        def if_wanted() -> None:
            if not self._cancelled.is_set():
                callback(*args)

        try:
            self._loop.call_soon_threadsafe(if_wanted)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._cancelled.set()

    def _run(self) -> None:
        error: Exception | None = None
        try:
            for first, block in self._source.blocks(self._start):
                if self._cancelled.is_set() or (self._before is not None and first >= self._before):
                    break
                result = self._work(first, block)
                self._call(self._deliver, result, first + block.count(b"\n"))
        except Exception as caught:  # noqa: BLE001  # whatever it was, the pane says it; a thread has nobody else to tell
            error = caught
        self._call(self._finish, error)
