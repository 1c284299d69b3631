"""What a person may do with hosts: add, remove, try again, trust a key, answer a question."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping, Sequence
from typing import Protocol

from specconsole.core.hosts.listing import HostEntry
from specconsole.core.hosts.names import LOCAL, parse_address
from specconsole.errors import NotFoundError, RefusedError
from specconsole.services.host_link import HostLink
from specconsole.services.host_questions import BoardAsker
from specconsole.services.supervisor import Supervisor


class HostsBook(Protocol):
    """The hosts files."""

    def read(self) -> dict[str, HostEntry]: ...

    def add(self, entry: HostEntry) -> None: ...

    def remove(self, name: str) -> None: ...


class HostDesk:
    """Satisfies `console_commands.HostDesk`. `keepers` holds the link's keeper of every host over SSH."""

    def __init__(
        self,
        supervisor: Supervisor,
        keepers: MutableMapping[str, HostLink],
        book: HostsBook,
        aliases: Sequence[str],
        asker: BoardAsker | None,
    ) -> None:
        self._sup = supervisor
        self._keepers = keepers
        self._book = book
        self._aliases = aliases
        self._asker = asker

    async def known_hosts(self) -> Sequence[str]:
        """Names of the hosts files and of ssh_config that are not on the board, and `local`."""
        listed = await asyncio.to_thread(self._book.read)
        return [name for name in dict.fromkeys((LOCAL, *listed, *self._aliases)) if name not in self._sup.board.hosts]

    async def add_host(self, name: str) -> None:
        """Remembers the host and connects; what stands in the way shows as its state."""
        if name != LOCAL:
            parse_address(name)
            listed = await asyncio.to_thread(self._book.read)
            if name not in listed and not self._sup.parts.read_only:
                await asyncio.to_thread(self._book.add, HostEntry(name))
        await self._sup.add_host(name)

    async def remove_host(self, name: str) -> None:
        """Stops watching it and forgets it; one of the hand-written file comes back with the next console."""
        listed = await asyncio.to_thread(self._book.read)
        await self._sup.drop_host(name)
        self._keepers.pop(name, None)
        if name in listed and not self._sup.parts.read_only:
            try:
                await asyncio.to_thread(self._book.remove, name)
            except RefusedError as error:
                self._sup.board.tell("note", name, f"not watched any more; {error}", self._sup.parts.clock.wall_s())

    async def reconnect(self, name: str) -> None:
        """Tries at once; this attempt may ask."""
        keeper = self._keepers.get(name)
        if keeper is not None:
            keeper.nudge()
        elif name != LOCAL:
            await self._sup.add_host(name)

    async def trust_key(self, host: str, fingerprint: str) -> None:
        """Adds the key that the host showed, when it is the one with this fingerprint, and connects."""
        keeper = self._keepers.get(host)
        if keeper is None:
            raise NotFoundError(f"no host named {host}")
        await keeper.trust(fingerprint)

    async def answer(self, question_id: str, text: str | None) -> None:
        """Hands an answer to the host that waits for it; None declines."""
        if self._asker is None:
            raise NotFoundError("no question is open here")
        self._asker.answer(question_id, text)
