"""Waiting on conditions with a deadline: never a fixed sleep."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 30.0
"""How long a condition may take on a loaded two-core machine before a test calls it a failure."""


def wait_until(condition: Callable[[], T], *, timeout_s: float = PATIENCE_S, what: str = "") -> T:
    """The first true value of `condition`; AssertionError with `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what or condition}"
        time.sleep(0.01)
    return value


async def until(condition: Callable[[], T], *, timeout_s: float = PATIENCE_S, what: str = "") -> T:
    """`wait_until` for async tests."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what or condition}"
        await asyncio.sleep(0.01)
    return value


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nobody held a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_alive(pid: int) -> bool:
    """Whether a process of this number runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_gone(*pids: int, timeout_s: float = PATIENCE_S) -> None:
    """Returns when none of the processes runs any more."""
    wait_until(lambda: not any(map(is_alive, pids)), timeout_s=timeout_s, what=f"pids {pids} are gone")


def environ_of(pid: int) -> dict[bytes, bytes]:
    """The environment a process was started with; empty when it is gone or not ours to read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return dict(entry.partition(b"=")[::2] for entry in environ.read().split(b"\0") if entry)
    except OSError:
        return {}


def all_pids() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}
