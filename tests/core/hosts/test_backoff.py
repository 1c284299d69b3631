"""Backoff within its bounds, and which errors wait for a person."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specconsole.core.hosts.backoff import delay_s
from specconsole.core.hosts.link_state import state_of, waits_for_person
from specconsole.errors import (
    AuthenticationFailedError,
    ConnectionRefusedAtHostError,
    HostKeyChangedError,
    HostKeyUnknownError,
    HostUnreachableError,
    LinkLostError,
    NeedsPersonError,
    SpecconsoleError,
)


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_between_1_and_60_s_and_about_doubling(attempt: int, jitter: float) -> None:
    assert 1.0 <= delay_s(attempt, jitter) <= 60.0
    assert delay_s(attempt + 2, jitter) >= delay_s(attempt, jitter)


def test_the_first_retry_comes_at_once() -> None:
    assert delay_s(0, 0.9) == 0.0
    assert [delay_s(n, 0.5) for n in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize(
    ("error", "state", "waits"),
    [
        (HostUnreachableError("x"), "unreachable", False),
        (LinkLostError("x"), "unreachable", False),
        (ConnectionRefusedAtHostError("x"), "refused", False),
        (AuthenticationFailedError("x"), "auth-failed", True),
        (HostKeyUnknownError("x", fingerprint="f"), "key-unknown", True),
        (HostKeyChangedError("x", known="a", offered="b"), "key-changed", True),
        (NeedsPersonError("x"), "needs-person", True),
    ],
)
def test_states_of_errors(error: SpecconsoleError, state: str, waits: bool) -> None:
    assert (state_of(error), waits_for_person(error)) == (state, waits)
