"""Turns what asyncssh and the operating system raise into the errors that people may see.

asyncssh 2.24 raises three families (OSError, asyncssh.Error, TimeoutError); all of them are caught here.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator

import asyncssh

from specconsole.core.hosts.plain_text import one_line
from specconsole.errors import (
    AuthenticationFailedError,
    ConnectionRefusedAtHostError,
    FileMissingError,
    HostUnreachableError,
    LinkLostError,
    RefusedError,
    SpecconsoleError,
    TransportError,
)

SSH_ERRORS = (asyncssh.Error, OSError, TimeoutError, ValueError)
"""What an asyncssh call may raise. ValueError: bad settings, and use of a closed file."""


def while_connecting(error: Exception, host: str, *, heard: bool) -> TransportError:
    """Why a connection could not be made. `heard`: the host had already spoken SSH to us."""
    text = one_line(str(error)) or type(error).__name__
    if isinstance(error, TransportError):
        return error
    if isinstance(error, socket.gaierror):
        return HostUnreachableError(f"no such host name ({text})", where=host, try_="check HostName in ~/.ssh/config")
    if isinstance(error, ConnectionRefusedError):
        return ConnectionRefusedAtHostError(
            "nothing listens on the SSH port", where=host, try_="check the port, and sshd"
        )
    if isinstance(error, TimeoutError):
        return HostUnreachableError("no answer in time", where=host, try_="check the network, VPN or jump host")
    if isinstance(error, asyncssh.PermissionDenied):
        return AuthenticationFailedError(
            "the host accepts none of our keys", where=host, try_=f"ssh {host}, or ssh-copy-id {host}"
        )
    if isinstance(error, asyncssh.ChannelOpenError):
        return HostUnreachableError(f"the jump host can't reach it: {text}", where=host)
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return TransportError(f"no common algorithm: {text}", where=host, try_="ssh -vv to compare")
    if isinstance(error, asyncssh.DisconnectError) and "timeout" in text.lower():
        return HostUnreachableError("no answer in time", where=host, try_="check the network, VPN or jump host")
    if isinstance(error, (asyncssh.DisconnectError, ConnectionError)):
        when = "while logging in" if heard else "before a word was said (sshd busy, or a firewall)"
        return HostUnreachableError(
            f"the connection was closed {when}: {text}", where=host,
            try_=f"ssh -v {host}" if heard else "check the port: what answers there must be an SSH server",
        )  # fmt: skip
    if isinstance(error, OSError):
        return HostUnreachableError(_os_text(error, text), where=host)
    return TransportError(text, where=host)


def _os_text(error: OSError, text: str) -> str:
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN):
        return f"no way to it ({text})"
    return text


def lost(host: str, error: Exception | None = None) -> LinkLostError:
    """The connection is gone."""
    reason = one_line(str(error)) if error is not None else ""
    return LinkLostError(f"the connection is lost: {reason}" if reason else "the connection is lost", where=host)


@contextlib.contextmanager
def file_errors(host: str, path: str) -> Iterator[None]:
    """SFTP's failures in the terms of `Transport`."""
    where = f"{host}:{path}"
    try:
        yield
    except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
        raise FileMissingError("no such file", where=where) from None
    except asyncssh.SFTPPermissionDenied:
        raise RefusedError("permission denied", where=where) from None
    except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection, asyncssh.DisconnectError, ConnectionError) as error:
        raise lost(host, error) from None
    except asyncssh.ChannelOpenError as error:
        raise lost(host, error) from None
    except asyncssh.SFTPError as error:
        # OpenSSH says the one word "Failure" for all that it has no code for: a folder, a name that is too long.
        said = one_line(str(error)) or type(error).__name__
        raise SpecconsoleError(f"can't be read: the host says {said!r}", where=where, try_="ls -ld there") from None
    except ValueError as error:
        # asyncssh says "I/O operation on closed file" for a handle whose connection went away.
        raise lost(host, error) from None
