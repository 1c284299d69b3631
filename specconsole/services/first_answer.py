"""When a launch first answered: seconds from its start, known only to a console that asked before it did."""

from __future__ import annotations

from contextlib import suppress

from specconsole.core.launching.folder import LaunchRecord
from specconsole.errors import SpecconsoleError
from specconsole.ports import Clock, Launcher

_FRESH_S = 3.0
"""A server this young that answers at our first question has only just begun to."""


class FirstAnswer:
    """Of one launch; `after_s` is None while it is not known."""

    def __init__(self, launcher: Launcher, clock: Clock, record: LaunchRecord, *, keeps: bool = True) -> None:
        """`keeps`: it may be written into the launch's folder, for other consoles."""
        self._keeps = keeps
        self._launcher = launcher
        self._clock = clock
        self._recorded = False
        self.after_s: float | None = None
        self.observed(record)

    @property
    def age_now_s(self) -> float | None:
        """Seconds since its start, by the host's uptime; None while unknown."""
        if self._record.age_s is None:
            return None
        return self._record.age_s + max(0.0, self._clock.monotonic_s() - self._at_s)

    def observed(self, record: LaunchRecord) -> None:
        """The folder as it is now; another console may have written the time down."""
        self._record = record
        self._at_s = self._clock.monotonic_s()
        if self.after_s is None:
            self.after_s = record.answered_after_s

    async def note(self, *, saw_silence: bool) -> None:
        """It has answered. `saw_silence`: it was asked before, and did not."""
        if self.after_s is not None or self._record.age_s is None:
            return
        age_s = self.age_now_s or 0.0
        # A server that answers at our first question may have done so for hours.
        if not saw_silence and age_s >= _FRESH_S:
            return
        self.after_s = age_s
        if not self._keeps:
            return
        # Only a convenience for other consoles; our own history has it.
        with suppress(SpecconsoleError, TimeoutError):
            await self._launcher.mark_answered(self._record.launch_id, age_s)

    def take_for_history(self) -> bool:
        """True once, and only for the console under whose eyes it happened."""
        ours = self.after_s is not None and self._record.answered_after_s is None and not self._recorded
        self._recorded = self._recorded or ours
        return ours
