"""A way to a host that breaks, asks for keys and comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from specconsole.errors import TransportError
from specconsole.ports.transport import Transport


class Asker(Protocol):
    """Puts a question of the other side to the person at the console."""

    async def ask(self, host: str, prompt: str, *, secret: bool = True) -> str | None:
        """The answer; None when the person declines. `prompt` is one clean line; `secret` hides the typing."""

    def tell(self, host: str, text: str) -> None:
        """Something to read before answering (a banner with a link to open)."""


@dataclass(frozen=True, slots=True)
class OfferedKey:
    """A host key that is not trusted, as the host showed it."""

    algorithm: str
    fingerprint: str
    """`SHA256:...`, as `ssh-keygen -lf` prints it."""
    known_file: str
    """The known_hosts file that trusting it would write to."""


@dataclass(frozen=True, slots=True)
class LinkAbilities:
    """What a connection can do, as far as it was found out by using it."""

    sftp: bool
    session_limit: int
    """Session channels that we may have at once."""
    most_sessions: int
    """Session channels that were open at once so far."""
    chatter_bytes: int
    """What the login shell's start-up files print (0: nothing)."""
    setsid: bool
    timeout: bool
    server: str
    """The host's SSH software."""
    via: str
    """How it was reached: `directly`, a jump host's name, `ProxyCommand`."""


@runtime_checkable
class Link(Transport, Protocol):
    """A Transport that has to be connected, may break, and can be connected again.

    While it is down every call of `Transport` raises LinkLostError at once; nothing reconnects by itself.
    """

    @property
    def connected(self) -> bool: ...

    @property
    def offered_key(self) -> OfferedKey | None:
        """The key that the last `connect` refused; None when it refused none."""

    @property
    def abilities(self) -> LinkAbilities | None:
        """None before the first connect."""

    @property
    def last_heard_s(self) -> float | None:
        """Event loop's clock when the host was last heard of; None before the first connect."""

    async def connect(self, asker: Asker | None = None) -> None:
        """Makes the connection. Raises the TransportError that says why not.

        Without `asker` nothing is ever asked: NeedsPersonError says what would have been.
        """

    async def wait_lost(self) -> TransportError:
        """Returns when the present connection is gone, with the reason."""

    async def ping(self, timeout_s: float) -> float:
        """Round trip in seconds. Raises TimeoutError or LinkLostError; neither closes the link."""

    async def trust(self, fingerprint: str) -> None:
        """Adds `offered_key` to known_hosts. Raises RefusedError when `fingerprint` is not its."""
