"""Asks a host about itself, once after each connect."""

from __future__ import annotations

from specconsole.core.hosts.facts import CLOCK_SH, FACTS_SH, ClockReading, HostFacts, parse_facts, with_clock
from specconsole.ports import Clock, Transport

_CLOCK_TRIPS = 3
_TIME_LIMIT_S = 30.0


async def read_facts(transport: Transport, clock: Clock) -> HostFacts:
    """What the host says. Raises TransportError when the link fails and TimeoutError when it does not answer."""
    readings = []
    for _ in range(_CLOCK_TRIPS):
        sent_s = clock.wall_s()
        done = await transport.run_sh(CLOCK_SH, timeout_s=_TIME_LIMIT_S)
        readings.append(ClockReading(done.stdout, sent_s, clock.wall_s()))
    done = await transport.run_sh(FACTS_SH, timeout_s=_TIME_LIMIT_S)
    return with_clock(parse_facts(done.stdout), readings)
