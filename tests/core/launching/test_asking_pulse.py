"""When a server that looks healthy counts as standing still."""

from __future__ import annotations

from specconsole.core.launching.asking import REPROVE_S, STILL_S, Pulse


def test_requests_without_tokens_are_still_after_a_while_only() -> None:
    pulse = Pulse()
    assert pulse.look(0.0, 2, 100.0) == "moves"
    assert pulse.look(10.0, 2, 100.0) == "moves"
    assert pulse.look(STILL_S + 1, 2, 100.0) == "still"
    assert pulse.look(STILL_S + 11, 2, 101.0) == "moves"
    assert pulse.look(STILL_S + 21, 0, 101.0) == "idle"


def test_an_idle_spell_is_no_standstill_when_work_begins_again() -> None:
    pulse = Pulse()
    pulse.look(0.0, 0, 100.0)
    assert pulse.look(600.0, 0, 100.0) == "idle"
    # The first look after a request came in: it has had no time to bring a token.
    assert pulse.look(610.0, 1, 100.0) == "moves"
    assert pulse.look(620.0, 1, 100.0) == "moves"
    assert pulse.look(610.0 + STILL_S, 1, 100.0) == "still"


def test_without_counters_nothing_is_concluded() -> None:
    assert Pulse().look(0.0, None, None) == "unknown"


def test_an_idle_server_is_asked_again_now_and_then() -> None:
    pulse = Pulse()
    assert not pulse.due(5.0)
    assert not pulse.due(5.0 + REPROVE_S - 1)
    assert pulse.due(5.0 + REPROVE_S)
    pulse.proved_at_s = 5.0 + REPROVE_S
    assert not pulse.due(6.0 + REPROVE_S)
