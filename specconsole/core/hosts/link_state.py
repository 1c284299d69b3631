"""Which state of a link an error means, and whether trying again by ourselves makes sense."""

from __future__ import annotations

from specconsole.core.views.host import LinkState
from specconsole.errors import (
    AuthenticationFailedError,
    BadInputError,
    ConnectionRefusedAtHostError,
    HostKeyChangedError,
    HostKeyUnknownError,
    NeedsPersonError,
    SpecconsoleError,
)

_STATES: tuple[tuple[type[SpecconsoleError], LinkState], ...] = (
    (HostKeyUnknownError, "key-unknown"),
    (HostKeyChangedError, "key-changed"),
    (NeedsPersonError, "needs-person"),
    (AuthenticationFailedError, "auth-failed"),
    (ConnectionRefusedAtHostError, "refused"),
)


def state_of(error: SpecconsoleError) -> LinkState:
    """The state that a failed attempt to connect leaves; `unreachable` for everything that is none of the others."""
    return next((state for kind, state in _STATES if isinstance(error, kind)), "unreachable")


def waits_for_person(error: SpecconsoleError) -> bool:
    """True when another attempt without a person would only repeat this one, or get us locked out.

    A refused log-in counts: hosts ban addresses that keep trying (fail2ban, sshd's PerSourcePenalties).
    """
    return isinstance(error, BadInputError) or state_of(error) not in ("unreachable", "refused")
