"""How often a host is asked, and how long a failing tool is left alone."""

from __future__ import annotations


class Pace:
    """Pauses that double with every failure in a row, and start anew after a success."""

    def __init__(self, least_s: float, most_s: float) -> None:
        self._least_s, self._most_s = least_s, most_s
        self._next_s = least_s

    def well(self) -> None:
        self._next_s = self._least_s

    def badly(self) -> float:
        """The pause before the next try."""
        pause, self._next_s = self._next_s, min(self._most_s, self._next_s * 2)
        return pause


def gpu_interval_s(hosts: int) -> int:
    """Seconds between two looks at a host's GPUs: 1 up to ten hosts, then slower, so that the console's own share of
    a core grows less than the number of hosts."""
    for limit, seconds in ((10, 1), (32, 2), (64, 3)):
        if hosts <= limit:
            return seconds
    return 5
