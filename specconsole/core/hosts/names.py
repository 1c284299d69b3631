"""Host names as people write them: `local`, an alias of ssh_config, or `user@host[:port]`."""

from __future__ import annotations

from dataclasses import dataclass

from specconsole.errors import BadInputError

LOCAL = "local"
"""The machine that the console runs on."""


@dataclass(frozen=True, slots=True)
class Address:
    """What a name says by itself; ssh_config fills the rest."""

    host: str
    """An alias or a DNS name or an address, without brackets."""
    user: str | None = None
    port: int | None = None


def parse_address(name: str) -> Address:
    """Splits `user@host:port`, `[v6]:port`, `host`; a bare IPv6 address has no port.

    Raises BadInputError for what could be taken for an option or can't be a name at all.
    """
    if "://" in name:
        raise BadInputError(f"not a host: {name!r}", try_="user@host[:port], without the scheme")
    user, at, rest = name.rpartition("@")
    if name.startswith("-") or rest.startswith("-") or not rest or any(c.isspace() or ord(c) < 32 for c in name):
        raise BadInputError(f"not a host: {name!r}", try_="an alias of ~/.ssh/config, or user@host[:port]")
    if at and not user:
        raise BadInputError(f"no user before the @ in {name!r}", try_="user@host, or the host alone")
    host, port = rest, None
    if rest.startswith("["):
        host, closed, tail = rest[1:].partition("]")
        if not closed or (tail and not tail.startswith(":")):
            raise BadInputError(f"not a host: {name!r}", try_="[address]:port")
        port = _port(tail[1:], name) if tail else None
    elif rest.count(":") == 1:
        host, _, text = rest.partition(":")
        port = _port(text, name)
    if not host:
        raise BadInputError(f"no host in {name!r}", try_="user@host")
    return Address(host, user or None, port)


def _port(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise BadInputError(f"not a port: {text!r} in {name!r}", try_="a number from 1 to 65535")
    return int(text)


def split_host_path(text: str) -> tuple[str, str] | None:
    """(`host`, `path`) of `HOST:/path`, as scp reads it; None when it is a path of this machine.

    A `/` before the first colon makes it a local path, and so does a lone `-`.
    """
    if text.startswith("["):
        host, colon, path = text.partition("]:")
        host += "]" if colon else ""
    else:
        user, at, rest = text.partition("@")
        if at and rest.startswith("[") and "/" not in user:
            host, colon, path = text.partition("]:")
            host += "]" if colon else ""
        else:
            host, colon, path = text.partition(":")
    if not colon or not host or not path or "/" in host:
        return None
    return host, path
