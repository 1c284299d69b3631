"""A lock on a host, held for a block; the scripts are `core/launching/locks`."""

from __future__ import annotations

import secrets
from types import TracebackType

from specconsole.core.launching import locks
from specconsole.core.launching.stopping import describe_age
from specconsole.errors import BadInputError, SpecconsoleError, TransportError
from specconsole.ports import Transport


class HostLock:
    """`async with HostLock(...) as lock`: `lock.holder` is None when it is ours, else who has it.

    Not taking it is no error: what follows from it is the caller's to say.
    """

    def __init__(self, transport: Transport, name: str, *, owner: str, lease_s: int) -> None:
        self._transport = transport
        self._name = name
        self._owner = owner or "unknown"
        self._lease_s = lease_s
        self._token = secrets.token_hex(8)
        self.holder: locks.LockHolder | None = None

    async def take(self) -> bool:
        """One attempt. Raises BadInputError when locks can't be kept on this host."""
        args = [self._name, self._token, self._owner, str(self._lease_s)]
        done = await self._transport.run_sh(locks.TAKE, args)
        if done.stdout.startswith(b"error=") or not done.stdout:
            reason = done.stdout.removeprefix(b"error=").decode("utf-8", "replace").strip()
            raise BadInputError(
                f"can't keep a lock in the state folder ~/.local/state/specconsole{': ' + reason if reason else ''}",
                where=self._transport.host,
                try_="check its owner and mode, and free space",
            )
        self.holder = locks.parse_take(done.stdout)
        return self.holder is None

    async def renew(self) -> bool:
        """False when another has broken it: whatever it guarded must not go on."""
        done = await self._transport.run_sh(locks.RENEW, [self._name, self._token, str(self._lease_s)])
        return done.stdout.startswith(b"renewed")

    async def release(self) -> None:
        await self._transport.run_sh(locks.RELEASE, [self._name, self._token])

    def describe(self) -> str:
        """`alice@laptop (for 12 s)`."""
        if self.holder is None:
            return self._owner
        age = "" if self.holder.age_s is None else f" (for {describe_age(self.holder.age_s)})"
        return f"{self.holder.owner or 'another console'}{age}"

    async def __aenter__(self) -> HostLock:
        await self.take()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.holder is not None:
            return
        try:
            await self.release()
        except (TransportError, TimeoutError, SpecconsoleError):
            # Its lease ends by itself; the error that ended the block matters more.
            if kind is None:
                raise
