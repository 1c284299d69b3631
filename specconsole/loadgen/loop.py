"""The selector loop: sockets that are ready, and time that passes; and how well this process kept up.

`Loop.turn` waits at most `MAX_WAIT_S`, so a longer gap between two turns means that this process was held up (the
machine was busy, it was stopped): such a gap is a stall of the client, and whatever was measured across it is marked.
"""

from __future__ import annotations

import select
import selectors
import time
from typing import Dict, List, Tuple

from .wire import Exchange

MAX_WAIT_S = 0.05
STALL_S = 0.025
"""A hold-up beyond this is written down (aiperf warns from 25 ms on)."""


class Loop:
    """Exchanges by socket; epoll where there is one, since it costs least per event."""

    def __init__(self) -> None:
        self._by_fd: Dict[int, Exchange] = {}
        self._writing: Dict[int, bool] = {}
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._selector = None if self._epoll is not None else selectors.DefaultSelector()
        self.busy_s = 0.0
        """Time spent outside the wait since the last `reset_load`."""
        self.events = 0
        self.lags_s: List[float] = []
        """For each turn: how long the last ready socket of that turn waited for its turn."""
        self.stalls: List[Tuple[float, float]] = []
        """(when, length in seconds)."""
        self._woke_s = time.perf_counter()

    def reset_load(self) -> None:
        self.busy_s = 0.0
        self.events = 0
        self.lags_s = []
        self.stalls = []
        self._woke_s = time.perf_counter()

    def add(self, exchange: Exchange) -> None:
        fd = exchange.fileno()
        self._by_fd[fd] = exchange
        self._writing[fd] = True
        if self._epoll is not None:
            self._epoll.register(fd, select.EPOLLOUT)
        elif self._selector is not None:
            self._selector.register(fd, selectors.EVENT_WRITE)

    def remove(self, exchange: Exchange) -> None:
        fd = exchange.fileno()
        if self._by_fd.pop(fd, None) is None:
            return
        self._writing.pop(fd, None)
        if self._epoll is not None:
            self._epoll.unregister(fd)
        elif self._selector is not None:
            self._selector.unregister(fd)

    def turn(self, wait_s: float) -> List[Exchange]:
        """Serves every ready socket once; returns the exchanges that ended in this turn."""
        wait_s = min(max(wait_s, 0.0), MAX_WAIT_S)
        went_s = time.perf_counter()
        self.busy_s += went_s - self._woke_s
        held_s = went_s - self._woke_s
        if held_s > STALL_S:
            self.stalls.append((self._woke_s, held_s))
        ready = self._poll(wait_s)
        woke_s = time.perf_counter()
        if woke_s - went_s > wait_s + STALL_S:
            self.stalls.append((went_s, woke_s - went_s - wait_s))
        self._woke_s = woke_s
        ended: List[Exchange] = []
        for fd in ready:
            exchange = self._by_fd[fd]
            if exchange.state == "receiving":
                exchange.on_readable()
            else:
                exchange.on_writable()
                if exchange.state == "receiving" and self._writing[fd]:
                    self._listen(fd)
            if exchange.state in ("done", "failed"):
                self.remove(exchange)
                ended.append(exchange)
        if ready:
            self.events += len(ready)
            self.lags_s.append(time.perf_counter() - woke_s)
        return ended

    def close(self) -> None:
        if self._epoll is not None:
            self._epoll.close()
        elif self._selector is not None:
            self._selector.close()

    def _poll(self, wait_s: float) -> List[int]:
        if self._epoll is not None:
            return [fd for fd, _ in self._epoll.poll(wait_s)]
        assert self._selector is not None
        return [key.fd for key, _ in self._selector.select(wait_s)]

    def _listen(self, fd: int) -> None:
        self._writing[fd] = False
        if self._epoll is not None:
            self._epoll.modify(fd, select.EPOLLIN)
        elif self._selector is not None:
            self._selector.modify(fd, selectors.EVENT_READ)
