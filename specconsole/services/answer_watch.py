"""Asks one launch again and again whether it answers, at the pace that its phase deserves, and tells what changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from specconsole.core.launching.asking import LOST_AFTER, STILL_S, Pulse, interval_s
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.lifecycle import FactName
from specconsole.core.reading.model import Phase
from specconsole.core.views.launch import HealthAnswer
from specconsole.ports import Clock
from specconsole.services.answers import Answers, Asked, Prove

_RETRY_S = 2.0


@dataclass(frozen=True, slots=True)
class Situation:
    """What the next question depends on."""

    record: LaunchRecord
    version: str | None
    """The server's, as its log says."""
    phase: Phase | None


class AnswerWatch:
    """`run` goes on for ever; it asks between `begin` and `hush`."""

    def __init__(
        self,
        answers: Answers,
        clock: Clock,
        situation: Callable[[], Situation],
        tell: Callable[[FactName | None], Awaitable[None]],
    ) -> None:
        """`tell` is awaited after every question, with the fact that it brought to light or None."""
        self._answers = answers
        self._clock = clock
        self._situation = situation
        self._tell = tell
        self._asking = False
        self._failed = 0
        self._pulse = Pulse()
        self._question: asyncio.Task[Asked] | None = None
        self.health: HealthAnswer = "not-asked"
        self.detail = ""
        self.proven = False
        """Whether it has answered, under our eyes or another console's, while we watched."""
        self.saw_silence = False
        """Whether it was asked before it answered: only then is the time to its first answer known."""
        self.asked_once = asyncio.Event()

    def begin(self) -> None:
        """From now on it is asked."""
        self._asking = True

    async def hush(self) -> None:
        """Also breaks off the question that is under way: llama.cpp and vLLM wait for it when they are told to end."""
        self._asking = False
        if self._question is not None and not self._question.done():
            self._question.cancel()
            await asyncio.wait({self._question})

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                now = self._situation()
                spec = now.record.spec
                # An adopted server is somebody's: it gets no request unasked (SGLang's /health generates tokens).
                if not self._asking or spec is None or spec.port is None or spec.adopted:
                    self.asked_once.set()
                    await self._clock.sleep(0.25)
                    continue
                asked = await self._ask(now)
                if asked is None:
                    continue
                await self._tell(self._fact(asked))
                self.asked_once.set()
                costs = self._answers.costs(now.record, now.version)
                pause_s = interval_s(now.phase, asked.health, proven=self.proven, costs=costs)
                await self._clock.sleep(_RETRY_S if self._failed else pause_s)
        finally:
            await asyncio.shield(self.hush())

    async def _ask(self, now: Situation) -> Asked | None:
        """None when it was hushed meanwhile."""
        # What another console has proven needs no second request, which costs the server work.
        prove: Prove = "nothing" if self.proven else "owner" if now.record.answered_after_s else "request"
        self._question = asyncio.create_task(self._put(now, prove))
        # Waiting for it this way, a question that `hush` cancels does not end the loop.
        await asyncio.wait({self._question})
        if self._question.cancelled() or not self._asking:
            return None
        return self._question.result()

    async def _put(self, now: Situation, prove: Prove) -> Asked:
        asked = await self._answers.ask(now.record, version=now.version, prove=prove)
        if not (self.proven and asked.health == "200" and self._answers.shallow):
            return asked
        running, tokens = await self._answers.progress(now.record)
        pace = self._pulse.look(self._clock.monotonic_s(), running, tokens)
        if pace == "still":
            return Asked("timeout", f"health is 200, but {running} requests run and no token came for {STILL_S:.0f} s")
        if pace in ("idle", "unknown") and self._pulse.due(self._clock.monotonic_s()):
            asked = await self._answers.again(now.record)
            if asked.proven:
                self._pulse.proved_at_s = self._clock.monotonic_s()
        return asked

    def _fact(self, asked: Asked) -> FactName | None:
        self.health, self.detail = asked.health, asked.detail
        if asked.proven or (asked.health == "200" and self.proven):
            self._failed = 0
            self.proven = True
            return "answered"
        if asked.health == "link-down":
            return "link-down"
        if asked.health not in ("200", "not-asked"):
            self.saw_silence = True
        if self.proven:
            self._failed += 1
            if self._failed >= LOST_AFTER:
                return "answer-lost"
        return None
