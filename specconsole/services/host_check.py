"""The doctor: connects, tries what the console needs, and hands what it found to the pure part."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from specconsole.core.hosts.doctor import Connection, Finding, findings
from specconsole.core.hosts.facts import HostFacts
from specconsole.errors import ConnectionRefusedAtHostError, RefusedError, SpecconsoleError, TransportError
from specconsole.ports import Clock, Link, LinkAbilities, Transport
from specconsole.services.host_facts import read_facts

_MOST_SESSIONS = 4
_PING_S = 10.0
_UNUSED_PORT = 1
"""tcpmux: as good as never listened on, and refused at once by a host that forwards."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found out about one host."""

    host: str
    facts: HostFacts
    connection: Connection | None
    findings: tuple[Finding, ...]


async def check(transport: Transport, clock: Clock) -> Checked:
    """Looks at a connected host (or this machine). Raises TransportError, TimeoutError."""
    facts = await read_facts(transport, clock)
    connection = None
    if isinstance(transport, Link):
        abilities = transport.abilities
        connection = Connection(
            server=abilities.server if abilities else "",
            via=abilities.via if abilities else "directly",
            round_trip_s=await transport.ping(_PING_S),
            sftp=abilities.sftp if abilities else None,
            chatter_bytes=abilities.chatter_bytes if abilities else 0,
            forwards=await _forwards(transport),
            sessions=await _count_sessions(transport, abilities),
        )
    return Checked(transport.host, facts, connection, findings(connection, facts))


async def _forwards(link: Link) -> bool | None:
    try:
        async with asyncio.timeout(_PING_S):
            _, writer = await link.open_connection("127.0.0.1", _UNUSED_PORT)
    except ConnectionRefusedAtHostError:
        return True
    except RefusedError:
        return False
    except (TransportError, TimeoutError):
        return None
    writer.close()
    return True


async def _count_sessions(link: Link, abilities: LinkAbilities | None) -> int | None:
    """Opens streams until the host refuses one, or there are four channels in all."""
    if abilities is None:
        return None
    count = 2 if abilities.sftp else 1
    async with AsyncExitStack() as stack:
        while count < _MOST_SESSIONS:
            try:
                await stack.enter_async_context(link.stream(["sleep", "30"]))
            except RefusedError:
                break
            except SpecconsoleError:
                return None
            count += 1
    return count
