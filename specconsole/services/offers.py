"""Says, unasked, that a server runs on a host which no console watches: once for each, as a note on the board."""

from __future__ import annotations

from specconsole.core.hosts.names import LOCAL
from specconsole.errors import SpecconsoleError
from specconsole.ports import Clock
from specconsole.services.adoption import Adoption
from specconsole.services.board import Board
from specconsole.services.commands import FoundServer

_FIRST_S = 3.0
_EVERY_S = 60.0
"""A look costs the host a scan of its command lines (tens of ms)."""
_LOOK_S = 1.0


class Offers:
    """`run` for ever beside a window."""

    def __init__(self, adoption: Adoption, board: Board, clock: Clock) -> None:
        self._adoption = adoption
        self._board = board
        self._clock = clock
        self._told: set[tuple[str, int, str]] = set()
        self._next_s: dict[str, float] = {}

    async def run(self) -> None:
        """Until cancelled. A host that can't be asked now is asked again later."""
        while True:
            now_s = self._clock.monotonic_s()
            for host, view in list(self._board.hosts.items()):
                if view.state != "up" and host != LOCAL:
                    self._next_s.pop(host, None)
                elif self._next_s.setdefault(host, now_s + _FIRST_S) <= now_s:
                    self._next_s[host] = now_s + _EVERY_S
                    await self._look(host)
            await self._clock.sleep(_LOOK_S)

    async def _look(self, host: str) -> None:
        try:
            found = await self._adoption.found_servers(host)
        except (SpecconsoleError, TimeoutError):
            return
        for one in found:
            if (key := (host, one.pid, one.command)) not in self._told:
                self._told.add(key)
                self._board.tell("note", host, _offer(one), self._clock.wall_s())


def _offer(one: FoundServer) -> str:
    where = f"port {one.port}" if one.port is not None else "no port seen"
    return (
        f"{one.engine} runs here ({where}, pid {one.pid}, {one.user or 'unknown owner'}) and is not watched: adopt it?"
    )
