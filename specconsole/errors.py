"""Every error that a person may see: what failed, where, and what to try.

Code that meets bad input or a broken world raises one of these; the command line prints `str(error)` as one
line and exits with `exit_code`, a pane shows the three parts. Anything else that escapes is a bug.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FAILED = 1
"""The thing asked for was tried and did not succeed (a server failed, does not answer, could not be stopped)."""
EXIT_BAD_INPUT = 2
"""The request itself is wrong: usage, an unreadable file, a profile with an error."""
EXIT_UNREACHABLE = 3
"""A host can't be reached, trusted or logged in to."""
EXIT_NOT_FOUND = 4
"""No launch, host or profile of that name."""
EXIT_REFUSED = 5
"""Refused for safety: a port or a GPU is held, something is not ours, a lock is taken."""
EXIT_WARNINGS = 6
"""Checked, and nothing forbids it, but it will not run quite as asked."""
EXIT_CANCELLED = 130
"""Interrupted by the person at the keyboard (128 + SIGINT, as shells do)."""


class SpecconsoleError(Exception):
    """`what` failed, `where` (host, file, key, line; "" if it has no place), and what to `try_` ("" if unknown)."""

    exit_code = EXIT_FAILED

    def __init__(self, what: str, *, where: str = "", try_: str = "") -> None:
        self.what = what
        self.where = where
        self.try_ = try_
        super().__init__(what)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} (try: {self.try_})" if self.try_ else text


class BadInputError(SpecconsoleError):
    """A file, a profile, an argument or a value that can't be used as it is."""

    exit_code = EXIT_BAD_INPUT


class ConsentNeededError(BadInputError):
    """Not done, because it would show a secret to others, until a person says that it may; `what` says to whom.

    `subject` is the profile that the person is asked about.
    """

    exit_code = EXIT_REFUSED

    def __init__(self, what: str, *, subject: str, where: str = "", try_: str = "") -> None:
        super().__init__(what, where=where, try_=try_)
        self.subject = subject


class NotFoundError(SpecconsoleError):
    """Nothing of that name is known."""

    exit_code = EXIT_NOT_FOUND


class RefusedError(SpecconsoleError):
    """Not done, because it would hurt something or somebody; `what` says whom."""

    exit_code = EXIT_REFUSED


class TransportError(SpecconsoleError):
    """The way to a host failed; whether the far side did the work is unknown."""

    exit_code = EXIT_UNREACHABLE


class LinkLostError(TransportError):
    """The link was up and broke in the middle of something."""


class HostUnreachableError(TransportError):
    """No route, no such name, or no answer in time."""


class ConnectionRefusedAtHostError(TransportError):
    """The host answered, and nothing listens on that port."""


class ConnectionResetAtHostError(TransportError):
    """What listens on that port took the connection and broke it before a whole answer."""


class AuthenticationFailedError(TransportError):
    """The host refused every key that we may use without asking."""


class HostKeyUnknownError(TransportError):
    """The host's key is in no known_hosts file; a person must look at its fingerprint."""

    def __init__(self, what: str, *, fingerprint: str, where: str = "", try_: str = "") -> None:
        super().__init__(what, where=where, try_=try_)
        self.fingerprint = fingerprint


class HostKeyChangedError(TransportError):
    """The host shows another key than the one on file; never overridden without removing the old one."""

    def __init__(self, what: str, *, known: str, offered: str, where: str = "", try_: str = "") -> None:
        super().__init__(what, where=where, try_=try_)
        self.known = known
        self.offered = offered


class NeedsPersonError(TransportError):
    """A passphrase, a password or a second factor is asked for; reconnecting waits for a person."""


class FileMissingError(SpecconsoleError):
    """A file on a host that is not there (yet)."""

    exit_code = EXIT_NOT_FOUND
