"""Keys that come faster than the window changes: each is given on when the one before has had its effect.

Textual gives a key to what has the focus when it comes (8.2.8); of a burst such as `K y` both went to the log, and
the question that `K` opens never saw its answer. A lap behind each key, along the same queues, says when it is through;
a second one, when what it set off is through as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from textual import events
from textual.message import Message
from textual.message_pump import MessagePump

LAPS = 2
PATIENCE_S = 0.4
"""A lap is lost with a widget that goes; the next key does not wait longer than this for it."""


class Lap(Message):
    """Travels behind a key from the focus up to the app."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class TypedAhead:
    """`target()` has the focus, `give(key)` lets a key in, `now_s()` is a monotonic clock."""

    def __init__(
        self, target: Callable[[], MessagePump], give: Callable[[events.Key], object], now_s: Callable[[], float]
    ) -> None:
        self._target = target
        self._give = give
        self._now_s = now_s
        self._waiting: deque[events.Key] = deque()
        self._number = 0
        self._laps_left = 0
        self._since_s = 0.0

    def holds(self, key: events.Key) -> bool:
        """Takes a key that must wait; False when it may go in now."""
        self.look()
        if self._laps_left == 0 and not self._waiting:
            return False
        self._waiting.append(key)
        return True

    def went_in(self) -> None:
        """A key was given to the focus: a lap follows it."""
        self._laps_left = LAPS
        self._since_s = self._now_s()
        self._run()

    def _run(self) -> None:
        self._number += 1
        self._target().post_message(Lap(self._number))

    def came_back(self, number: int) -> None:
        """A lap reached the app."""
        if number != self._number or self._laps_left == 0:
            return
        self._laps_left -= 1
        if self._laps_left:
            self._run()
        else:
            self._next()

    def look(self) -> None:
        """Gives up a lap that is lost."""
        if self._laps_left and self._now_s() - self._since_s > PATIENCE_S:
            self._laps_left = 0
            self._next()

    def _next(self) -> None:
        if self._waiting:
            # Marked as under way at once: a key that comes before it is given on must not overtake it.
            self._laps_left, self._since_s = LAPS, self._now_s()
            self._give(self._waiting.popleft())
