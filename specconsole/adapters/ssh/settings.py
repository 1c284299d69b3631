"""What ~/.ssh/config (and the name itself) say about a host, read through asyncssh's own parser."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import asyncssh

from specconsole.adapters.ssh.known_hosts import GLOBAL_FILES, USER_FILES
from specconsole.core.hosts.names import parse_address
from specconsole.core.hosts.plain_text import one_line
from specconsole.errors import BadInputError

DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519_sk", "~/.ssh/id_ecdsa_sk", "~/.ssh/id_rsa")


@dataclass(frozen=True, slots=True)
class HostSettings:
    """One host, resolved."""

    name: str
    alias: str
    """What is looked up in ssh_config."""
    hostname: str
    port: int
    user: str
    jumps: tuple[str, ...] = ()
    """ProxyJump, first hop first."""
    proxy_command: str | None = None
    plain_keys: tuple[str, ...] = ()
    encrypted_keys: tuple[str, ...] = ()
    known_files: tuple[str, ...] = USER_FILES
    """The first one is the one that is written to."""
    key_alias: str | None = None
    config_files: tuple[str, ...] = ()
    explicit_user: str | None = None
    explicit_port: int | None = None

    @property
    def key_name(self) -> str:
        """The name that stands in known_hosts."""
        return self.key_alias or self.hostname

    @property
    def key_port(self) -> int:
        """OpenSSH writes an alias without a port."""
        return 22 if self.key_alias else self.port


def config_files() -> list[str]:
    """The person's own file. The system-wide one is left alone: asyncssh stops at algorithm names it lacks."""
    path = os.path.expanduser("~/.ssh/config")
    return [path] if os.access(path, os.R_OK) else []


async def resolve(name: str) -> HostSettings:
    """Reads the settings in a thread: `Match exec` may run a command. Raises BadInputError."""
    address = parse_address(name)
    extra: dict[str, Any] = {}
    if address.user is not None:
        extra["username"] = address.user
    if address.port is not None:
        extra["port"] = address.port
    config = await asyncio.to_thread(config_files)
    try:
        options = await asyncio.to_thread(
            asyncssh.SSHClientConnectionOptions,
            host=address.host, config=config, client_keys=None, known_hosts=None, agent_forwarding=False,
            **extra,
        )  # fmt: skip
    except (asyncssh.Error, OSError, ValueError) as error:
        raise BadInputError(one_line(str(error)), where="~/.ssh/config", try_=f"ssh -G {name}") from None
    found = options.config
    files = [_expand(path) for path in _strings(found.get("IdentityFile", ())) or DEFAULT_KEYS]
    plain, encrypted = await asyncio.to_thread(_sort_keys, files)
    jump = found.get("ProxyJump")
    proxy = found.get("ProxyCommand")
    user_files = [path for path in _strings(found.get("UserKnownHostsFile", ())) if path.lower() != "none"]
    return HostSettings(
        name=name, alias=address.host, hostname=options.host, port=options.port, user=options.username,
        jumps=() if not jump or str(jump).lower() == "none" else tuple(hop.strip() for hop in str(jump).split(",")),
        proxy_command=None if not proxy or str(proxy).lower() == "none" else str(proxy),
        plain_keys=plain, encrypted_keys=encrypted,
        known_files=(*(user_files or USER_FILES),
                     *(_strings(found.get("GlobalKnownHostsFile", ())) or GLOBAL_FILES)),
        key_alias=options.host_key_alias, config_files=tuple(config),
        explicit_user=address.user, explicit_port=address.port,
    )  # fmt: skip


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []


def _expand(path: str) -> str:
    return os.path.expanduser(path)


def _sort_keys(files: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(readable without a passphrase, encrypted); files that are absent or no keys are left out, as ssh does."""
    plain, encrypted = [], []
    for path in files:
        try:
            asyncssh.read_private_key(path)
        except asyncssh.KeyEncryptionError:
            encrypted.append(path)
        except asyncssh.KeyImportError as error:
            # asyncssh 2.24: "Passphrase must be specified to import encrypted private keys".
            if "assphrase" in str(error):
                encrypted.append(path)
        except (OSError, ValueError, asyncssh.Error):
            continue
        else:
            plain.append(path)
    return tuple(plain), tuple(encrypted)
