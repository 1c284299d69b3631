"""The session channels of one connection: at most four, fewer where the server allows fewer.

OpenSSH's MaxSessions (10 by default, 1 or 2 on hardened hosts) is learned by being refused: a channel that
can't be opened lowers the limit to what is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import asyncssh
from asyncssh.constants import OPEN_REQUEST_SESSION_FAILED

from specconsole.adapters.ssh.errors import lost
from specconsole.errors import RefusedError

MOST = 4

T = TypeVar("T")

_SETTLE_S = 2.0
"""A channel that we just closed is still counted by the server until its process is gone."""


@dataclass(slots=True)
class Sessions:
    """Counts what is open; `open` is the only way to get a channel."""

    host: str
    limit: int = MOST
    in_use: int = 0
    most_in_use: int = 0
    _closed_at_s: float = field(default=-1e9)

    @property
    def room(self) -> int:
        return self.limit - self.in_use

    async def open(self, make: Callable[[], Awaitable[T]]) -> T:
        """Opens one channel with `make`. Raises RefusedError when the host allows no further one."""
        if self.room <= 0:
            raise RefusedError("no further session channel on this connection", where=self.host)
        self.in_use += 1
        self.most_in_use = max(self.most_in_use, self.in_use)
        made = False
        try:
            result = await self._try(make)
            made = True
            return result
        finally:
            if not made:
                self.in_use -= 1

    async def _try(self, make: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        while True:
            try:
                return await make()
            except asyncssh.ChannelOpenError as error:
                if "closed" in str(error).lower():
                    raise lost(self.host, error) from None
                if error.code == OPEN_REQUEST_SESSION_FAILED:
                    raise  # the channel was opened; what was asked for on it (a subsystem) is not there
                if loop.time() - self._closed_at_s < _SETTLE_S:
                    await asyncio.sleep(0.05)
                    continue
                self.limit = max(1, self.in_use - 1)
                raise RefusedError(
                    f"the host allows {self.in_use - 1} session channels and they are in use",
                    where=self.host, try_="raise MaxSessions in its sshd_config",
                ) from None  # fmt: skip
            except (asyncssh.DisconnectError, ConnectionError) as error:
                raise lost(self.host, error) from None

    def closed(self) -> None:
        """One channel is gone."""
        self.in_use -= 1
        self._closed_at_s = asyncio.get_running_loop().time()
