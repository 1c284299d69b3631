"""Starts, watches and stops a launch through the product, and notes what it said meanwhile."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from specconsole.core.launching.lifecycle import ENDED
from specconsole.core.launching.stopping import StopEvent
from specconsole.core.reading.model import EtaRange
from specconsole.core.views.launch import LaunchView
from specconsole.services.commands import LaunchOrder
from specconsole.wiring import Console
from tests.engines import witness

START_LIMIT_S = 420.0
"""A start that takes 25 s alone takes minutes beside other work on two cores."""


@dataclass
class Start:
    """One start as the board told it."""

    launch_id: str
    port: int
    session: int
    began_s: float
    phases: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    told: list[tuple[float, EtaRange]] = field(default_factory=list)
    progress: set[tuple[str, int, int | None]] = field(default_factory=set)
    """(unit, done, total) of every bar state that was shown."""
    answered_s: float | None = None

    def see(self, view: LaunchView) -> None:
        reading = view.reading
        if not self.states or self.states[-1] != view.state:
            self.states.append(view.state)
        if reading is None:
            return
        phase = f"{reading.phase}:{reading.part}" if reading.part else reading.phase
        if not self.phases or self.phases[-1] != phase:
            self.phases.append(phase)
        if reading.progress is not None:
            self.progress.add((reading.progress.unit, reading.progress.done, reading.progress.total))
        if reading.ready_eta_s is not None and self.answered_s is None:
            self.told.append((time.monotonic() - self.began_s, reading.ready_eta_s))

    def eta_error(self) -> str:
        """Median distance of what was foretold to what came, and how often the range held it; "" without estimates."""
        if not self.told or self.answered_s is None:
            return ""
        left = [(self.answered_s - at, eta) for at, eta in self.told if at < self.answered_s]
        if not left:
            return ""
        error = statistics.median(abs(eta.mid - real) for real, eta in left)
        held = sum(eta.low <= real <= eta.high for real, eta in left) / len(left)
        return f"{error:.1f} s of {self.answered_s:.0f} s, in range {held:.0%}"


async def start(console: Console, host: str, profile: Path, *, preflight: bool = True) -> Start:
    """Launches; returns as soon as its process is recorded on the host."""
    began_s = time.monotonic()
    launch_id = await console.commands.launch(LaunchOrder(str(profile), host, preflight=preflight))
    record = console.supervisor.find(launch_id).record
    assert record.process is not None
    assert record.spec is not None
    assert record.spec.port is not None
    return Start(launch_id, record.spec.port, record.process.pid, began_s)


async def until(
    console: Console, start: Start, condition: Callable[[LaunchView], bool], *, limit_s: float = START_LIMIT_S
) -> LaunchView:
    """The view once `condition` holds; an end that nobody waited for fails."""

    def seen(view: LaunchView) -> bool:
        start.see(view)
        return condition(view) or view.state in ENDED

    view = await console.supervisor.wait(start.launch_id, seen, timeout_s=limit_s)
    assert condition(view), f"{view.state}: {view.reading.failure if view.reading else view.health_detail}"
    return view


async def answers(console: Console, start: Start, *, limit_s: float = START_LIMIT_S) -> LaunchView:
    """Waits for the proven answer."""
    view = await until(console, start, lambda view: view.state == "answers", limit_s=limit_s)
    start.answered_s = time.monotonic() - start.began_s
    return view


async def stop(console: Console, start: Start) -> tuple[StopEvent, float]:
    """Stops it through the product; the witness then looks for what is left. (last event, seconds)."""
    began_s = time.monotonic()
    event = await console.commands.stop_telling(start.launch_id, lambda event: None)
    took_s = time.monotonic() - began_s
    left = await asyncio.to_thread(witness.left_of, start.launch_id, start.session)
    assert left == {}, f"left over: {left}"
    assert event.clean, event
    assert not witness.listens(start.port)
    view = await console.supervisor.wait(start.launch_id, lambda view: view.state in ENDED, timeout_s=60)
    assert view.state == "stopped", (view.state, view.reading.failure if view.reading else None)
    # `leaked shared_memory objects`, `EngineDeadError`, a KILL of its own tree: words of a clean stop.
    assert view.reading is None or view.reading.failure is None, view.reading
    return event, took_s
