"""Composition root: the only place that builds adapters and hands them to services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from specconsole.ports import Clock, HardwareTools, Transport


@asynccontextmanager
async def open_transport(name: str) -> AsyncIterator[Transport]:
    """A way to a host (`local`, an alias from ssh_config, `user@host`), connected. Raises TransportError."""
    transport: Transport
    if name == "local":
        from specconsole.adapters.local import LocalTransport

        transport = LocalTransport()
    else:
        from specconsole.adapters.ssh import SshLink

        transport = link = SshLink(name)
        await link.connect()
    try:
        yield transport
    finally:
        await transport.aclose()


def system_clock() -> Clock:
    from specconsole.adapters.system_clock import SystemClock

    return SystemClock()


def hardware_tools() -> HardwareTools:
    """What finds a host's GPU tool, and reads its CPUs, memory, disks and network."""
    from specconsole.adapters.hardware_tools import HostHardware

    return HostHardware()
