"""What ~/.ssh/config (and the name itself) say about a host, read through asyncssh's own parser."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import asyncssh

from specconsole.adapters.ssh.known_hosts import GLOBAL_FILES, USER_FILES
from specconsole.adapters.ssh.openssh_config import resolved_by_openssh
from specconsole.core.hosts.names import parse_address
from specconsole.core.hosts.plain_text import one_line
from specconsole.errors import BadInputError

DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_ed25519_sk", "~/.ssh/id_ecdsa_sk", "~/.ssh/id_rsa")

CONFIG_S = 15.0
"""For `Match exec`: a command of the person's own that may ask the network."""

_T = TypeVar("_T")


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
    names_key_algorithms: bool = False
    """HostKeyAlgorithms is set: which ones are asked for is the person's choice."""
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

    def read() -> asyncssh.SSHClientConnectionOptions:
        return asyncssh.SSHClientConnectionOptions(
            host=address.host, config=config, client_keys=None, known_hosts=None, agent_forwarding=False, **extra
        )

    try:
        try:
            options = await _in_time(read)
        except (asyncssh.Error, OSError, ValueError, AttributeError):
            # Not every file that OpenSSH takes is one that asyncssh takes.
            if not config:
                raise
            by_openssh = await _in_time(lambda: resolved_by_openssh(config[0], address.host, address.user, CONFIG_S))
            if by_openssh is None:
                raise
            config = [by_openssh]
            options = await _in_time(read)
    except TimeoutError:
        raise BadInputError(
            f"not read within {CONFIG_S:.0f} s: a `Match exec` in it hangs",
            where="~/.ssh/config",
            try_=f"ssh -G {name}",
        ) from None
    except RecursionError:
        raise BadInputError("its Include lines go in a circle", where="~/.ssh/config", try_=f"ssh -G {name}") from None
    except (asyncssh.Error, OSError, ValueError, AttributeError) as error:
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
        names_key_algorithms=bool(found.get("HostKeyAlgorithms")),
        explicit_user=address.user, explicit_port=address.port,
    )  # fmt: skip


async def _in_time(work: Callable[[], _T]) -> _T:
    """Runs it in a thread that nobody waits for: a `Match exec` that hangs must not hold up the console's end.

    Raises what `work` raises, and TimeoutError after CONFIG_S.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: _T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(cast(_T, result))

    def body() -> None:
        result, failed = None, None
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=body, name="ssh_config", daemon=True).start()
    async with asyncio.timeout(CONFIG_S):
        return await done


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
