"""Signs that this machine changed networks: its addresses, and the gap that a suspended laptop leaves in time."""

from __future__ import annotations

import asyncio
import socket
import time

import psutil

_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_SLEPT_S = 5.0
"""Wall and monotonic clocks part by this much when the machine slept (CLOCK_MONOTONIC stands still meanwhile)."""


class NetworkWatch:
    """Call it now and then: what it returns differs from before when a link may have died of a change here."""

    def __init__(self) -> None:
        self._gap_s = time.time() - time.monotonic()
        self._sleeps = 0

    async def __call__(self) -> object:
        gap_s = time.time() - time.monotonic()
        if abs(gap_s - self._gap_s) > _SLEPT_S:
            self._sleeps += 1
        self._gap_s = gap_s
        return (self._sleeps, await asyncio.to_thread(_addresses))


def _addresses() -> frozenset[tuple[str, str]]:
    """(interface, address) of everything that is up, link-local and loopback left out."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    return frozenset(
        (name, item.address)
        for name, items in psutil.net_if_addrs().items()
        if name in up and name != "lo"
        for item in items
        if item.family in _FAMILIES and not item.address.startswith(("fe80:", "169.254."))
    )
