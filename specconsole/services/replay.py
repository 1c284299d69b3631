"""Plays a recorded start back: its bytes, at their times, through the same spool, reader and views as a live one.

Nothing can be changed in a recording; every command says so.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from specconsole.core.reading.model import START_PHASES, Phase, Reading
from specconsole.core.reading.reading import Reader
from specconsole.core.views.host import GpuView, HostView
from specconsole.core.views.launch import HealthAnswer, LaunchState, LaunchView
from specconsole.ports import Clock
from specconsole.services.board import Board
from specconsole.services.commands import LineSource
from specconsole.services.looking_only import LookingOnly
from specconsole.services.spool import Spool

if TYPE_CHECKING:
    from specconsole.demo.recording import Recording

LAUNCH_ID = "recording"
HOST = "recorded-h200"
STEP_S = 0.1
HISTORY_STEP_S = 5.0
_WHY_NOT = "this is a recording; `specconsole` alone is the live window"


class ReplayCommands(LookingOnly):
    """The commands of a window that shows a recording."""

    def __init__(self, spool: Spool) -> None:
        super().__init__(_WHY_NOT)
        self._spool = spool

    def line_source(self, launch_id: str) -> LineSource | None:
        return self._spool if launch_id == LAUNCH_ID and self._spool.size_bytes else None


class Replay:
    """`run` plays once, from the launch to the recording's end, `speed` times as fast as it was.

    The recording's time is the launch's age: rates, estimates and silences are those of the day it was made.
    """

    def __init__(self, recording: Recording, folder: Path, clock: Clock, *, speed: float = 1.0) -> None:
        """`folder`: where the spool may be written; the caller removes it."""
        self._recording = recording
        self._clock = clock
        self._speed = speed
        self._spool = Spool(folder)
        self._reader = Reader(engine=recording.engine)
        self._phase: Phase | None = None
        self._answered = False
        self._began_s = clock.monotonic_s()
        self.board = Board()
        self.commands = ReplayCommands(self._spool)

    @property
    def seconds(self) -> float:
        """Where it is: seconds since the launch, in the recording's time."""
        played = (self._clock.monotonic_s() - self._began_s) * self._speed
        return min(played, self._recording.length_s)

    async def run(self) -> None:
        """Plays to the end, then stands there."""
        self._began_s = self._clock.monotonic_s()
        while True:
            at_s = self.seconds
            self.show(at_s)
            if at_s >= self._recording.length_s:
                self.board.tell("note", HOST, "end of the recording; q leaves", self._clock.wall_s())
                return
            await self._clock.sleep(STEP_S)
            await asyncio.sleep(0)

    def show(self, at_s: float) -> None:
        """Takes in all that was written up to `at_s` and publishes what is known then."""
        done, size = self._spool.size_bytes, self._recording.size_at(at_s)
        if size > done:
            data = self._recording.log[done:size]
            self._spool.append(data)
            self._reader.feed(data, at_s)
        reading = self._reader.reading(at_s)
        health: HealthAnswer = self._recording.health_at(at_s)  # type: ignore[assignment]  # the recording's words are these
        self._tell(reading, health, at_s)
        self.board.publish_launch(self._launch(reading, health, at_s))
        self.board.publish_host(self._host(at_s))

    def _tell(self, reading: Reading, health: HealthAnswer, at_s: float) -> None:
        now = self._clock.wall_s()
        if reading.phase != self._phase:
            if self._phase is not None:
                self.board.tell("phase-changed", LAUNCH_ID, reading.phase, now)
            self._phase = reading.phase
        if health == "200" and not self._answered:
            self._answered = True
            self.board.tell("answers", LAUNCH_ID, f"health said 200 {at_s:.0f} s after the launch", now)

    def _launch(self, reading: Reading, health: HealthAnswer, at_s: float) -> LaunchView:
        answered = next((at for at, answer in self._recording.health if answer == "200"), None)
        return LaunchView(
            launch_id=LAUNCH_ID,
            name="eagle3-topk1-steps3",
            host=HOST,
            engine=self._recording.engine,
            port=self._recording.port,
            state=_state(reading, health),
            reading=reading,
            health=health,
            answered_after_s=answered if answered is not None and at_s >= answered else None,
            started_at_s=self._recording.launched_at.timestamp(),
            age_s=at_s,
            owner="recorded",
            command=self._recording.command,
            as_of_s=self._clock.monotonic_s(),
        )

    def _host(self, at_s: float) -> HostView:
        sample = self._recording.gpu_at(at_s)
        if sample is None:
            return HostView(HOST, "up", as_of_s=self._clock.monotonic_s(), gpu_note="no sample yet")
        past = [self._recording.gpu_at(at_s - back * HISTORY_STEP_S) for back in range(119, -1, -1)]
        gpu = GpuView(
            index=0,
            name=self._recording.gpu_name,
            util_pct=sample.util_pct,
            memory_used_bytes=sample.memory_used_bytes,
            memory_total_bytes=sample.memory_total_bytes,
            temperature_c=sample.temperature_c,
            power_w=sample.power_w,
            power_limit_w=sample.power_limit_w,
            sm_clock_mhz=sample.sm_clock_mhz,
            util_history_pct=tuple(one.util_pct if one is not None else None for one in past),
            memory_history_ratio=tuple(
                one.memory_used_bytes / one.memory_total_bytes if one is not None else None for one in past
            ),
        )
        return HostView(HOST, "up", as_of_s=self._clock.monotonic_s(), gpus=(gpu,))


def _state(reading: Reading, health: HealthAnswer) -> LaunchState:
    """As the recorded health answers and the log say; nothing of it was proven by a request of ours."""
    if reading.phase == "failed":
        return "failed"
    if reading.phase in ("stopping", "stopped"):
        return reading.phase
    if health == "200":
        return "answers"
    return "starting" if reading.phase == "starting" or reading.phase not in START_PHASES else "loading"
