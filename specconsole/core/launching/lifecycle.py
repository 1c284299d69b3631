"""The life of a launch: (state, fact) -> state and what to do. Pure; `services/launch` only executes.

The states are those of `core.views.launch.LaunchState`. A fact is what was observed; it never carries a wish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from specconsole.core.views.launch import LaunchState

FactName = Literal[
    "start-asked",  # its turn has come
    "start-failed",  # no server was started
    "waits",  # what waits for its turn runs on the host
    "process-up",  # the recorded process runs
    "phase-early",  # the log says: nothing loads yet
    "phase-loading",  # the log says: something loads, compiles, captures or warms up
    "answered",  # own process holds the port, health 200, a request of 16 tokens came back whole
    "answer-lost",  # it had answered, and repeatedly does not
    "stalled",  # silent beyond what this phase explains
    "moving",  # the silence ended
    "stop-asked",  # somebody asked for a stop
    "stop-given-up",  # the stop was cancelled, or left something that runs
    "process-gone",  # the recorded process is gone, and its log does not say that it was meant to
    "ended-clean",  # the recorded process is gone, and its log says that it was asked to end (by hand, by a scheduler)
    "stop-verified",  # nothing of it is left
    "folder-gone",  # the host no longer has its folder
    "link-down",
    "link-up",
]
FACTS: tuple[FactName, ...] = get_args(FactName)

Action = Literal[
    "start",
    "tell-started",  # its turn had come
    "follow",  # read the log
    "ask",  # ask whether it answers
    "hush",  # stop asking
    "record-answer",  # time to answer and the phases' durations, into the history
    "verify-gone",  # look whether anything of it is left
    "tell-answers",
    "tell-failed",
    "tell-stopped",
    "tell-stalled",
    "re-observe",  # the folder decides
]

RUNNING: tuple[LaunchState, ...] = ("starting", "loading", "answers", "not-answering", "stalled")
ENDED: tuple[LaunchState, ...] = ("stopped", "failed", "gone")


@dataclass(frozen=True, slots=True)
class Step:
    """What follows from a fact."""

    state: LaunchState
    actions: tuple[Action, ...] = ()


def step(state: LaunchState, fact: FactName) -> Step:
    """What a launch in `state` becomes by `fact`. A fact that changes nothing gives the same state and no action."""
    if state in ENDED:
        return _ended(state, fact)
    match fact:
        case "link-down":
            return Step("unknown", ("hush",)) if state not in ("unknown", "queued") else Step(state)
        case "link-up":
            # What it is now, the observation that proves the link says in the next fact.
            return Step(state)
        case "folder-gone":
            return Step(state) if state in ("queued", "preparing") else Step("gone", ("hush",))
        case "start-failed":
            return Step("failed", ("tell-failed",)) if state in ("queued", "preparing", "unknown") else Step(state)
        case "start-asked":
            return Step("preparing", ("start",)) if state == "queued" else Step(state)
        case "waits":
            return Step("queued") if state in ("preparing", "unknown") else Step(state)
        case "process-up":
            if state == "queued":
                return Step("starting", ("tell-started", "follow", "ask"))
            return Step("starting", ("follow", "ask")) if state in ("preparing", "unknown") else Step(state)
        case "stop-asked":
            return Step(state) if state == "stopping" else Step("stopping", ("hush",))
        case "stop-given-up":
            return Step("unknown", ("re-observe",)) if state == "stopping" else Step(state)
        case "stop-verified":
            return Step("stopped", ("hush", "tell-stopped"))
        case "process-gone" | "ended-clean":
            if state == "stopping":
                # A stop is not over when the process is gone: it still looks for what is left.
                return Step(state)
            if fact == "ended-clean":
                return Step("stopped", ("hush", "verify-gone", "tell-stopped"))
            return Step("failed", ("hush", "verify-gone", "tell-failed"))
        case _:
            return _from_log_or_answer(state, fact)


def _from_log_or_answer(state: LaunchState, fact: FactName) -> Step:
    if state not in RUNNING:
        return Step(state)
    match fact:
        case "answered":
            if state == "answers":
                return Step(state)
            first: tuple[Action, ...] = ("record-answer", "tell-answers")
            return Step("answers", first if state in ("starting", "loading", "stalled") else ("tell-answers",))
        case "answer-lost":
            return Step("not-answering") if state == "answers" else Step(state)
        case "stalled":
            return Step(state) if state == "stalled" else Step("stalled", ("tell-stalled",))
        case "moving":
            return Step("loading") if state == "stalled" else Step(state)
        case "phase-loading":
            return Step("loading") if state == "starting" else Step(state)
        case _:
            # "phase-early": phases can be entered again, and a launch never goes back to less than it has shown.
            return Step(state)


def _ended(state: LaunchState, fact: FactName) -> Step:
    # `gone` (no folder any more) and a stopped or failed launch are final, but for two late truths: that what we took
    # for a failure was a stop asked for elsewhere and verified, and that the process runs after all.
    if fact == "stop-verified" and state == "failed":
        return Step("stopped")
    if fact == "process-up" and state == "failed":
        return Step("starting", ("follow", "ask"))
    if fact == "folder-gone" and state != "gone":
        return Step("gone")
    return Step(state)
