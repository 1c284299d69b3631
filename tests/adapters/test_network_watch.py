"""Signs of another network, on this machine's own interfaces."""

from __future__ import annotations

import time

import psutil
import pytest

from specconsole.adapters.network_watch import NetworkWatch


async def test_the_same_while_nothing_changes_and_the_loopback_does_not_count() -> None:
    watch = NetworkWatch()
    first = await watch()
    assert await watch() == first
    assert "127.0.0.1" not in str(first)


async def test_a_machine_that_slept_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = NetworkWatch()
    first = await watch()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 600)
    second = await watch()
    assert second != first
    assert await watch() == second


async def test_an_address_that_goes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = psutil.net_if_addrs()
    if not any(name != "lo" for name in real):
        pytest.skip("this machine has no network but the loopback")
    watch = NetworkWatch()
    first = await watch()
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {"lo": real.get("lo", [])})
    assert await watch() != first
