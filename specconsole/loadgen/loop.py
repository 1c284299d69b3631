"""The loop: sockets that are ready, and time that passes; and how well this process kept up.

`Loop.serve` goes on by itself until an exchange ends or a moment has come, so that an arriving event costs its wait,
its `recv` and little else. It waits at most `MAX_WAIT_S` at once, so a longer gap between two turns means that this
process was held up (the machine was busy, it was stopped): such a gap is a stall of the client, and whatever was
measured across it is marked.

Arrivals are stamped by the kernel where it does (Linux: `SO_TIMESTAMPNS`, also on TCP and the loopback), so a busy
machine that lets this process wait does not move them. Since then nothing is lost by coming a little later, events of
many streams are fetched together, after a nap: most of an event's price is being woken for it. Elsewhere all that one
wait found ready is stamped with the moment when the wait returned, and there are no naps.
"""

from __future__ import annotations

import select
import selectors
import struct
import time
from typing import Any, Dict, List, Optional, Tuple

from .wire import NOTE_BYTES, RECV_BYTES, Exchange, stamping_socket

MAX_WAIT_S = 0.05
STALL_S = 0.025
"""A hold-up beyond this is written down (aiperf warns from 25 ms on)."""
EPOLL_STEP_S = 0.001
"""epoll counts in milliseconds and rounds up; shorter waits go through `select` on the epoll itself."""
NAP_SHARE = 0.15
"""Of a stream's own mean gap: so short that no two events of a stream meet, nor a freed slot stays empty for long."""
NAP_MOST_S = 0.004
NAP_LEAST_S = 0.0003
NAP_EVENTS = 2.0
"""Fewer than this are not worth a nap."""
SLACK_S = 0.001
CLOCK_SET_S = 0.005
LAG_STEP_S = 1e-5
LAG_STEPS = 10000
_TIMESPEC = struct.Struct("@ll")
"""As the kernel's interface of this machine's word size has it."""


class Loop:
    """Exchanges by socket; epoll where there is one, since it costs least per event."""

    def __init__(self) -> None:
        self._by_fd: Dict[int, Exchange] = {}
        self._writing: Dict[int, bool] = {}
        self._writers = 0
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._selector = None if self._epoll is not None else selectors.DefaultSelector()
        # Linux stamps packets only while some socket wants it, and takes a moment to begin.
        self._stamping = stamping_socket()
        self._kernel_stamps = False
        """Whether the last arrival had one."""
        self._gap_s = 1.0
        """Mean time between arrivals, lately."""
        self.reset_load()

    def reset_load(self) -> None:
        self.waited_s = 0.0
        """Time spent in waits since the last `reset_load`."""
        self.events = 0
        self._lags = [0] * (LAG_STEPS + 1)
        """Turns by how long their last ready socket waited for its turn, in steps of `LAG_STEP_S`."""
        self.lag_max_s: Optional[float] = None
        self.stalls: List[Tuple[float, float]] = []
        """(when, length in seconds)."""
        self._epoch_s = -time.perf_counter() + time.time()
        self._since_s = self._woke_s = time.perf_counter()

    @property
    def busy_s(self) -> float:
        """Time spent outside the waits since the last `reset_load`."""
        return time.perf_counter() - self._since_s - self.waited_s

    def lag_s(self, share: float) -> Optional[float]:
        """Quantile of the turns' lags, to `LAG_STEP_S`; None before the first turn."""
        total = sum(self._lags)
        reached = 0
        for step, count in enumerate(self._lags):
            reached += count
            if count and reached > share * total:
                return round((step + 0.5) * LAG_STEP_S, 6)
        return self.lag_max_s

    @property
    def stamped_by(self) -> str:
        """`kernel` or `client`: who told the moments of the last arrivals."""
        return "kernel" if self._kernel_stamps else "client"

    def add(self, exchange: Exchange) -> None:
        fd = exchange.fileno()
        self._by_fd[fd] = exchange
        writing = self._writing[fd] = exchange.wants_write
        self._writers += writing
        if self._epoll is not None:
            self._epoll.register(fd, select.EPOLLOUT if writing else select.EPOLLIN)
        elif self._selector is not None:
            self._selector.register(fd, selectors.EVENT_WRITE if writing else selectors.EVENT_READ)

    def remove(self, exchange: Exchange) -> None:
        fd = exchange.fileno()
        if self._by_fd.pop(fd, None) is None:
            return
        self._writers -= self._writing.pop(fd)
        if self._epoll is not None:
            self._epoll.unregister(fd)
        elif self._selector is not None:
            self._selector.unregister(fd)

    def serve(self, until_s: float) -> List[Exchange]:
        """Serves ready sockets, each once a turn, until an exchange ends or `until_s` has come (at least one turn);
        returns the exchanges that ended."""
        clock, wait, by_fd, lags = time.perf_counter, self._wait, self._by_fd, self._lags
        woke_s, seen_s = self._woke_s, self._woke_s
        ended: List[Exchange] = []
        notes: Any = None
        while True:
            went_s = clock()
            if went_s - woke_s > STALL_S:
                self.stalls.append((woke_s, went_s - woke_s))
            nap_s = self._nap_s(until_s - went_s)
            if nap_s > 0.0:
                time.sleep(nap_s)
            wait_s = min(max(until_s - clock(), 0.0), MAX_WAIT_S)
            ready = wait(wait_s)
            seen_s, woke_s = woke_s, clock()
            self.waited_s += woke_s - went_s
            if woke_s - went_s > nap_s + wait_s + STALL_S:
                self.stalls.append((went_s, woke_s - went_s - nap_s - wait_s))
            if ready:
                self._gap_s += 0.1 * ((woke_s - seen_s) / len(ready) - self._gap_s)
                epoch_s = self._epoch()
            for fd in ready:
                exchange = by_fd[fd]
                if exchange.state == "receiving":
                    try:
                        data, notes, _, _ = exchange.receive(RECV_BYTES, NOTE_BYTES)
                    except BlockingIOError:
                        continue
                    except OSError as error:
                        data = exchange.broken(error)
                    if data:
                        at_s = woke_s
                        if notes:
                            whole_s, rest_ns = _TIMESPEC.unpack(notes[0][2])
                            at_s = whole_s + rest_ns * 1e-9 - epoch_s
                            # Where the wall clock was set meanwhile, this is nonsense.
                            if not seen_s - SLACK_S < at_s < woke_s:
                                at_s = woke_s
                            if at_s < exchange.last_s:
                                at_s = exchange.last_s
                        exchange.last_s = at_s
                        exchange.pieces.append((at_s, data))
                        if exchange.streaming and len(data) > 4 and data[-4:] != b"\r\n\r\n":
                            continue  # chunks in the middle of a stream: the end of one looks otherwise
                        exchange.on_data()
                    else:
                        exchange.on_end_of_stream()
                else:
                    exchange.on_writable()
                    if exchange.wants_write != self._writing[fd]:
                        self._turn_to(fd, writing=exchange.wants_write)
                if exchange.state in ("done", "failed"):
                    self.remove(exchange)
                    ended.append(exchange)
            if ready:
                if notes is not None:
                    self._kernel_stamps = bool(notes)
                self.events += len(ready)
                lag_s = clock() - woke_s
                lags[min(int(lag_s / LAG_STEP_S), LAG_STEPS)] += 1
                if self.lag_max_s is None or lag_s > self.lag_max_s:
                    self.lag_max_s = lag_s
            if ended or clock() >= until_s:
                self._woke_s = woke_s
                return ended

    def _epoch(self) -> float:
        """The wall clock's moment of this clock's zero, in which the kernel's stamps are told.

        A reading is late by whatever came between its two halves, never early: the least one counts until the wall
        clock is set.
        """
        read_s = -time.perf_counter() + time.time()
        if not self._epoch_s <= read_s < self._epoch_s + CLOCK_SET_S:
            self._epoch_s = read_s
        return self._epoch_s

    def _nap_s(self, left_s: float) -> float:
        """How long to let events gather before looking; 0 where each is looked for at once."""
        if not self._kernel_stamps or self._writers:
            return 0.0
        nap_s = min(NAP_SHARE * self._gap_s * len(self._by_fd), NAP_MOST_S, left_s)
        return nap_s if nap_s > NAP_LEAST_S and nap_s > NAP_EVENTS * self._gap_s else 0.0

    def close(self) -> None:
        self._stamping.close()
        if self._epoll is not None:
            self._epoll.close()
        elif self._selector is not None:
            self._selector.close()

    def _wait(self, wait_s: float) -> List[int]:
        """Sockets that are ready, after `wait_s` at most."""
        if self._epoll is None:
            assert self._selector is not None
            return [key.fd for key, _ in self._selector.select(wait_s)]
        if wait_s == 0.0:
            return [fd for fd, _ in self._epoll.poll(0)]
        if wait_s < 2 * EPOLL_STEP_S:
            if not select.select([self._epoll], [], [], wait_s)[0]:
                return []
            return [fd for fd, _ in self._epoll.poll(0)]
        return [fd for fd, _ in self._epoll.poll(wait_s - EPOLL_STEP_S)]

    def _turn_to(self, fd: int, *, writing: bool) -> None:
        self._writing[fd] = writing
        self._writers += 1 if writing else -1
        if self._epoll is not None:
            self._epoll.modify(fd, select.EPOLLOUT if writing else select.EPOLLIN)
        elif self._selector is not None:
            self._selector.modify(fd, selectors.EVENT_WRITE if writing else selectors.EVENT_READ)
