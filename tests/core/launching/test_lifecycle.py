"""Every state with every fact: what is listed changes the launch, everything else must leave it alone."""

from __future__ import annotations

from typing import get_args

import pytest

from specconsole.core.launching.lifecycle import ENDED, FACTS, Action, FactName, step
from specconsole.core.views.launch import LaunchState

STATES: tuple[LaunchState, ...] = get_args(LaunchState)
FIRST_ANSWER: tuple[Action, ...] = ("record-answer", "tell-answers")
FAILED: tuple[LaunchState, tuple[Action, ...]] = ("failed", ("hush", "verify-gone", "tell-failed"))
CLEAN: tuple[LaunchState, tuple[Action, ...]] = ("stopped", ("hush", "verify-gone", "tell-stopped"))
VERIFIED: tuple[LaunchState, tuple[Action, ...]] = ("stopped", ("hush", "tell-stopped"))
GONE: tuple[LaunchState, tuple[Action, ...]] = ("gone", ("hush",))
LOST: tuple[LaunchState, tuple[Action, ...]] = ("unknown", ("hush",))
STOPPING: tuple[LaunchState, tuple[Action, ...]] = ("stopping", ("hush",))
UP: tuple[LaunchState, tuple[Action, ...]] = ("starting", ("follow", "ask"))
NOT_STARTED: tuple[LaunchState, tuple[Action, ...]] = ("failed", ("tell-failed",))

ENDINGS: dict[FactName, tuple[LaunchState, tuple[Action, ...]]] = {
    "folder-gone": GONE,
    "link-down": LOST,
    "stop-asked": STOPPING,
    "stop-verified": VERIFIED,
    "process-gone": FAILED,
    "ended-clean": CLEAN,
}
TABLE: dict[LaunchState, dict[FactName, tuple[LaunchState, tuple[Action, ...]]]] = {
    "queued": {
        **{fact: then for fact, then in ENDINGS.items() if fact not in ("folder-gone", "link-down")},
        "start-asked": ("preparing", ("start",)),
        "start-failed": NOT_STARTED,
        "process-up": ("starting", ("tell-started", "follow", "ask")),
    },
    "preparing": {
        **{fact: then for fact, then in ENDINGS.items() if fact != "folder-gone"},
        "waits": ("queued", ()),
        "start-failed": NOT_STARTED,
        "process-up": UP,
    },
    "starting": {
        **ENDINGS,
        "phase-loading": ("loading", ()),
        "answered": ("answers", FIRST_ANSWER),
        "stalled": ("stalled", ("tell-stalled",)),
    },
    "loading": {
        **ENDINGS,
        "answered": ("answers", FIRST_ANSWER),
        "stalled": ("stalled", ("tell-stalled",)),
    },
    "answers": {
        **ENDINGS,
        "answer-lost": ("not-answering", ()),
        "stalled": ("stalled", ("tell-stalled",)),
    },
    "not-answering": {
        **ENDINGS,
        "answered": ("answers", ("tell-answers",)),
        "stalled": ("stalled", ("tell-stalled",)),
    },
    "stalled": {**ENDINGS, "answered": ("answers", FIRST_ANSWER), "moving": ("loading", ())},
    "stopping": {
        "folder-gone": GONE,
        "link-down": LOST,
        "stop-given-up": ("unknown", ("re-observe",)),
        "stop-verified": VERIFIED,
    },
    "stopped": {"folder-gone": ("gone", ())},
    "failed": {"folder-gone": ("gone", ()), "stop-verified": ("stopped", ()), "process-up": UP},
    "gone": {},
    "unknown": {
        **{fact: then for fact, then in ENDINGS.items() if fact != "link-down"},
        "waits": ("queued", ()),
        "start-failed": NOT_STARTED,
        "process-up": UP,
    },
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("fact", FACTS)
def test_every_state_with_every_fact(state: LaunchState, fact: FactName) -> None:
    wanted = TABLE[state].get(fact, (state, ()))
    found = step(state, fact)
    assert (found.state, found.actions) == wanted


@pytest.mark.parametrize("fact", FACTS)
def test_the_same_fact_twice_tells_nothing_twice(fact: FactName) -> None:
    for state in STATES:
        first = step(state, fact)
        second = step(first.state, fact)
        told = [action for action in second.actions if action.startswith(("tell", "record"))]
        assert not told, f"{state} --{fact}--> {first.state} --{fact}--> tells {told}"


def test_an_ended_launch_asks_nothing_any_more() -> None:
    for state in ENDED:
        for fact in FACTS:
            if (state, fact) != ("failed", "process-up"):
                assert not step(state, fact).actions
