"""The loop against a socket whose other end is in the test's hands: when did the bytes come?"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator

import pytest

from specconsole.loadgen import loop as loop_module
from specconsole.loadgen import wire
from specconsole.loadgen.loop import Loop
from specconsole.loadgen.wire import Exchange, Response

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LATE_S = 0.08


class Pair:
    """A request that is out, and the server's end of its connection."""

    def __init__(self) -> None:
        self.loop = Loop()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.exchange = Exchange(None, listener.getsockname(), b"POST / HTTP/1.1\r\n\r\n")
            self.loop.add(self.exchange)
            self.server, _ = listener.accept()
        self.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        assert self.server.recv(100).startswith(b"POST")

    def serve(self) -> bool:
        """One look; whether the exchange ended in it."""
        return bool(self.loop.serve(time.perf_counter()))

    def send_and_come_late(self, data: bytes) -> float:
        """When it was sent; the loop looks `LATE_S` after that."""
        sent_s = time.perf_counter()
        self.server.sendall(data)
        time.sleep(LATE_S)
        self.serve()
        return sent_s

    def close(self) -> None:
        self.server.close()
        self.exchange.close()
        self.loop.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's stamps are Linux's")
def test_bytes_are_stamped_when_they_came_not_when_they_were_looked_at(pair: Pair) -> None:
    pair.send_and_come_late(HEAD)  # the kernel may only now begin to stamp
    sent_s = pair.send_and_come_late(b"1\r\nx\r\n")
    assert sent_s - 1e-5 <= pair.exchange.pieces[1][0] < sent_s + LATE_S / 2
    assert pair.loop.stamped_by == "kernel"


def test_without_the_kernels_word_the_moment_of_the_look_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_SO_TIMESTAMPNS", 9999)
    pair = Pair()
    sent_s = pair.send_and_come_late(HEAD)
    came_s, by = pair.exchange.pieces[0][0], pair.loop.stamped_by
    pair.close()
    assert came_s >= sent_s + LATE_S
    assert by == "client"


def test_a_wall_clock_that_was_set_moves_no_stamp_out_of_the_wait(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    for jump_s in (3600.0, -3600.0):
        monkeypatch.setattr(time, "time", lambda by=jump_s: real() + by)
        sent_s = pair.send_and_come_late(HEAD if jump_s > 0 else b"1\r\nx\r\n")
        assert sent_s - loop_module.SLACK_S <= pair.exchange.pieces[-1][0] <= time.perf_counter()


@pytest.mark.parametrize("cut", range(1, 12))
def test_the_end_of_a_stream_is_seen_however_it_is_cut(pair: Pair, cut: int) -> None:
    """The end mark and the last event in pieces; an event that looks like an end is none."""
    pair.server.sendall(HEAD + b"8\r\n0\r\n\r\n0\r\n\r\n")
    tail = b"3\r\nabc\r\n0\r\n\r\n"
    for part in (tail[:cut], tail[cut:-1]):
        pair.server.sendall(part)
        time.sleep(0.002)
        assert not pair.serve()
    pair.server.sendall(tail[-1:])
    deadline_s = time.monotonic() + 10
    ended = False
    while not ended and time.monotonic() < deadline_s:
        ended = pair.serve()
    assert pair.exchange.state == "done"
    assert Response(pair.exchange.pieces).body == b"0\r\n\r\n0\r\nabc"


def test_trailers_end_a_stream_too(pair: Pair) -> None:
    pair.server.sendall(HEAD + b"3\r\nabc\r\n")
    time.sleep(0.005)
    assert not pair.serve()
    pair.server.sendall(b"0\r\nX-Sum: 12\r\n\r\n")
    time.sleep(0.005)
    assert pair.serve()
    assert pair.exchange.state == "done"


def test_a_close_within_a_chunk_is_a_cut_one_after_the_end_is_none(pair: Pair) -> None:
    pair.server.sendall(HEAD + b"9\r\nabc")
    pair.server.shutdown(socket.SHUT_WR)
    deadline_s = time.monotonic() + 10
    while pair.exchange.state == "receiving" and time.monotonic() < deadline_s:
        pair.serve()
    assert pair.exchange.error == "truncated"


def test_lags_are_told_in_steps_and_their_most_exactly(pair: Pair) -> None:
    assert pair.loop.lag_s(0.5) is None
    for _ in range(3):
        pair.server.sendall(b"x")
        time.sleep(0.002)
        pair.serve()
    median = pair.loop.lag_s(0.5)
    assert median is not None
    assert pair.loop.lag_max_s is not None
    assert 0 < median <= pair.loop.lag_max_s + loop_module.LAG_STEP_S
