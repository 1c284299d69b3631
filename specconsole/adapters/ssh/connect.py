"""One attempt to connect: through jump hosts or a ProxyCommand, with the host's key checked, asking if allowed to."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from dataclasses import dataclass, field
from typing import Any

import asyncssh
from asyncssh.public_key import get_default_public_key_algs

from specconsole.adapters.ssh import known_hosts
from specconsole.adapters.ssh.client import Client
from specconsole.adapters.ssh.errors import SSH_ERRORS, while_connecting
from specconsole.adapters.ssh.proxy_command import ProxyProcess
from specconsole.adapters.ssh.settings import HostSettings, resolve
from specconsole.core.hosts.plain_text import one_line
from specconsole.errors import (
    AuthenticationFailedError,
    HostKeyChangedError,
    HostKeyUnknownError,
    NeedsPersonError,
    TransportError,
)
from specconsole.ports import Asker

KEEPALIVE_S = 5
KEEPALIVE_MISSES = 2
"""Asked after 5 s of silence, given up after the third unanswered interval: 15 s, under the 20 s promised."""
CONNECT_S = 10.0
LOGIN_S = 20.0
LOGIN_WITH_PERSON_S = 120.0
"""OpenSSH's own LoginGraceTime."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A key that was shown and is not trusted."""

    settings: HostSettings
    key: asyncssh.SSHKey


@dataclass(eq=False, slots=True)
class Connected:
    """A connection with everything that has to go when it goes."""

    connection: asyncssh.SSHClientConnection
    client: Client
    settings: HostSettings
    beneath: list[Connected] = field(default_factory=list)
    """Jump hosts, first hop first."""
    proxy: ProxyProcess | None = None

    async def aclose(self) -> None:
        """Closes it, then what carried it. Bounded: a dead link can't hold it up."""
        self.connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await self.connection.wait_closed()
        self.connection.abort()
        for hop in reversed(self.beneath):
            await hop.aclose()
        if self.proxy is not None:
            await self.proxy.aclose()


class Connector:
    """Makes connections to one host; keeps keys that a person unlocked, so that a reconnect need not ask again."""

    def __init__(self, name: str, target: str) -> None:
        self.name = name
        self._target = target
        self.refused: Refused | None = None
        self.key_trusted = False
        self._unlocked: list[asyncssh.SSHKey] = []

    async def connect(self, asker: Asker | None) -> Connected:
        """Raises the TransportError (or BadInputError: ssh_config) that says why not."""
        self.refused = None
        settings = dataclasses.replace(await resolve(self._target), name=self.name)
        return await self._reach(settings, asker, through=None, depth=0)

    async def _reach(
        self, settings: HostSettings, asker: Asker | None, through: Connected | None, depth: int
    ) -> Connected:
        if depth > 8:
            raise TransportError(
                "the jump hosts form a circle", where=self.name, try_="check ProxyJump in ~/.ssh/config"
            )
        beneath: list[Connected] = []
        proxy: ProxyProcess | None = None
        client = Client(settings.name, asker, [] if self._unlocked else settings.encrypted_keys)
        try:
            if through is None:
                for hop in settings.jumps:
                    hop_settings = await resolve(hop)
                    if beneath:  # later hops go through the earlier ones, whatever their own settings say
                        hop_settings = dataclasses.replace(hop_settings, jumps=(), proxy_command=None)
                    beneath.append(await self._reach(hop_settings, asker, beneath[-1] if beneath else None, depth + 1))
                if not beneath and settings.proxy_command:
                    proxy = await ProxyProcess.start(settings.proxy_command)
            tunnel = beneath[-1] if beneath else through
            connection = await self._log_in(settings, client, tunnel, proxy)
        except BaseException as error:
            self.key_trusted = depth == 0 and client.key_trusted
            if proxy is not None:
                await proxy.aclose()
            for below in reversed(beneath):
                await below.aclose()
            if isinstance(error, SSH_ERRORS):
                raise await self._explain(error, settings, client, proxy) from None
            raise
        self._unlocked += client.unlocked
        return Connected(connection, client, settings, beneath, proxy)

    async def _log_in(
        self, settings: HostSettings, client: Client, tunnel: Connected | None, proxy: ProxyProcess | None
    ) -> asyncssh.SSHClientConnection:
        known = await asyncio.to_thread(known_hosts.load, settings.known_files)
        port = None if settings.key_port == known_hosts.DEFAULT_PORT else settings.key_port
        plain, authorities = known.match(settings.key_name, "", port)[:2]
        keys: list[Any] = [*self._unlocked, *settings.plain_keys]
        extra: dict[str, Any] = {}
        if settings.explicit_user is not None:
            extra["username"] = settings.explicit_user
        if settings.explicit_port is not None:
            extra["port"] = settings.explicit_port
        if proxy is not None:
            extra["sock"] = proxy.sock
        if authorities and not plain:
            # asyncssh 2.24 would take certificates alone, and a host without one would hang up with no reason given.
            extra["server_host_key_algs"] = "default"
        elif not plain and not settings.names_key_algorithms:
            # A certificate that nobody here can judge would be refused for good; the key itself a person can look at.
            extra["server_host_key_algs"] = [name.decode() for name in get_default_public_key_algs()]
        patient = client.asker is not None
        async with asyncio.timeout(None if patient else CONNECT_S + LOGIN_S):
            return await asyncssh.connect(
                settings.alias, config=list(settings.config_files), client_factory=lambda: client,
                known_hosts=lambda host, address, port: known.match(host, address, port)[:3],
                client_keys=keys, ignore_encrypted=True, agent_forwarding=False, x11_forwarding=False,
                tunnel=tunnel.connection if tunnel is not None else None, proxy_command=None,
                request_pty=False, command=None, encoding=None, compression_algs=None,
                connect_timeout=CONNECT_S if tunnel is None else None,
                login_timeout=LOGIN_WITH_PERSON_S if patient else LOGIN_S,
                keepalive_interval=KEEPALIVE_S, keepalive_count_max=KEEPALIVE_MISSES, **extra,
            )  # fmt: skip

    async def _explain(
        self, error: Exception, settings: HostSettings, client: Client, proxy: ProxyProcess | None
    ) -> TransportError:
        name = settings.name if settings.name == self.name else f"{self.name}, jump host {settings.name}"
        if isinstance(error, TransportError):
            return error
        if client.offered is not None:
            return await self._explain_key(settings, client.offered, name)
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            # Revoked, or a certificate that no trusted authority signed.
            return HostKeyChangedError(
                one_line(str(error)), known="", offered="", where=name,
                try_=f"ask who runs the host; see the @revoked and @cert-authority lines of {settings.known_files[0]}",
            )  # fmt: skip
        if isinstance(error, asyncssh.PermissionDenied) and client.wanted:
            return NeedsPersonError(
                f"{'declined' if client.declined else 'asks for'}: {client.wanted}", where=name,
                try_=f"answer it in the window, or specconsole hosts check {settings.name}",
            )  # fmt: skip
        if isinstance(error, asyncssh.PermissionDenied) and client.answered:
            return AuthenticationFailedError("the answer was not accepted", where=name)
        if client.wanted and isinstance(error, (asyncssh.ConnectionLost, TimeoutError)):
            return NeedsPersonError(f"asks for: {client.wanted}", where=name)
        explained = while_connecting(error, name, heard=client.reached)
        if proxy is not None and proxy.said:
            explained.what = f"{explained.what} (ProxyCommand says: {proxy.said})"
        return explained

    async def _explain_key(self, settings: HostSettings, key: asyncssh.SSHKey, name: str) -> TransportError:
        self.refused = Refused(settings, key)
        offered = f"{key.get_fingerprint()} ({key.get_algorithm()})"
        on_file = await asyncio.to_thread(
            known_hosts.entries, settings.known_files, settings.key_name, "", settings.key_port
        )
        same_kind = [entry for entry in on_file if entry.key.split()[0] == key.get_algorithm()] or on_file
        if same_kind:
            self.refused = None  # never overridden: the old line has to be removed first
            old = same_kind[0]
            return HostKeyChangedError(
                f"the host's key has CHANGED: {old.place} has {old.fingerprint} ({old.key.split()[0]}), "
                f"the host shows {offered}",
                known=old.fingerprint, offered=key.get_fingerprint(), where=name,
                try_="ask who runs the host; if the change is right, remove that line (ssh-keygen -R) and trust again",
            )  # fmt: skip
        return HostKeyUnknownError(
            f"the host's key is not known: {offered}",
            fingerprint=key.get_fingerprint(), where=name,
            try_=f"compare it, then specconsole hosts trust {settings.name}",
        )  # fmt: skip
