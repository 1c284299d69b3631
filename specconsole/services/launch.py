"""Watches one launch: carries out what `core.launching.lifecycle` says and publishes the view.

Three loops beside each other: the log, the process, the answers. Trouble with the link is a state, not an end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from specconsole.core.hardware.gpu_activity import gpu_activity
from specconsole.core.launching import lifecycle
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.lifecycle import FactName
from specconsole.core.launching.observed import facts_of
from specconsole.core.launching.stopping import StopEvent, describe_exit
from specconsole.core.reading.model import Advice, Phase, Reading
from specconsole.core.views.launch import LaunchState
from specconsole.errors import SpecconsoleError, TransportError
from specconsole.ports import Clock, HttpClient, Launcher
from specconsole.services.account_watch import AccountWatch
from specconsole.services.answer_watch import AnswerWatch, Situation
from specconsole.services.answers import Answers
from specconsole.services.board import Board, FactKind
from specconsole.services.first_answer import FirstAnswer
from specconsole.services.launch_view import (
    WhoWeAre,
    failure_note,
    history_note,
    keep_time,
    probe_views,
    view_of_record,
    with_outlook,
)
from specconsole.services.log_intake import LogIntake
from specconsole.services.remedies import remedy, with_remedy

_LOADING: frozenset[Phase] = frozenset(
    ("distributed", "download", "weights", "kv-cache", "compile", "graph-capture", "warm-up", "ready", "serving")
)
_LINK_RETRY_S = 2.0
_PUBLISH_S = 0.5
_DISK_RETRY_S = 5.0

Answered = Callable[["LaunchWatch"], Awaitable[None]]
"""Called once, when the first answer is proven under our eyes."""


class LaunchWatch:
    """One launch under our eyes; `run` ends when the launch is over and its log is read."""

    def __init__(
        self,
        record: LaunchRecord,
        launcher: Launcher,
        intake: LogIntake,
        answers: Answers,
        board: Board,
        clock: Clock,
        us: WhoWeAre,
        on_answered: Answered,
        account: AccountWatch,
        http: HttpClient,
        first_answer: FirstAnswer,
    ) -> None:
        self.record, self._ended_before_us = record, record.over
        self._first_answer = first_answer
        self.intake = intake
        self._launcher = launcher
        self._board = board
        self._clock = clock
        self._us = us
        self._on_answered = on_answered
        self.account = account
        self.http = http
        self.state: LaunchState = "preparing" if record.alive else "queued" if record.waits else "unknown"
        self._asker = AnswerWatch(answers, clock, self._situation, self._asked)
        self._trouble = ""
        self._log_trouble = ""
        """Why the log can't be kept here; its launch is as it was."""
        self._remedy: Advice | None = None
        self._left_over: tuple[str, ...] = ()
        self._stale_since_s: float | None = None
        self._news: LaunchRecord | Literal["folder-gone", "link-down"] | None = None
        self._has_news = asyncio.Event()
        self._phase: Phase | None = None
        self._reading: Reading | None = None
        self._over = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._done = asyncio.Event()
        self.past_starts_s: tuple[float, ...] = ()
        """Seconds that earlier starts of this kind took until they answered, oldest first."""

    @property
    def launch_id(self) -> str:
        return self.record.launch_id

    @property
    def host(self) -> str:
        return self._launcher.host

    @property
    def reading(self) -> Reading | None:
        """As of the last publication."""
        return self._reading

    @property
    def answered_after_s(self) -> float | None:
        """Seconds from the start to the first proven answer; None when it never answered under our eyes."""
        return self._first_answer.after_s

    @property
    def over(self) -> bool:
        """Whether it has ended, and nothing more is asked of its host."""
        return self._over.is_set()

    async def settled(self) -> None:
        """Waits until the log is read so far and its answer was asked for once, or it is over."""
        await self._caught_up.wait()
        await self._asker.asked_once.wait()
        if self._over.is_set():
            await self._done.wait()

    async def run(self) -> None:
        """Until the launch is over. Expected trouble becomes state; what escapes is a bug."""
        await self.intake.open()
        try:
            await self._observed(self.record)
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._follow(), name=f"follow {self.launch_id}"),
                    group.create_task(self._watch_process(), name=f"process {self.launch_id}"),
                    group.create_task(self._asker.run(), name=f"ask {self.launch_id}"),
                    group.create_task(self._learn_account(), name=f"account {self.launch_id}"),
                ]
                await self._over.wait()
                for task in tasks:
                    task.cancel()
            await self._finish()
        finally:
            self.account.give_up()
            for event in (self._caught_up, self._asker.asked_once, self._done):
                event.set()
            await asyncio.shield(self.intake.close())

    # ---------------------------------------------------------------- the log

    async def _follow(self) -> None:
        pause_s = 0.1
        published_at = 0.0
        while True:
            try:
                came = await self.intake.advance()
            except (TransportError, TimeoutError):
                await self._fact("link-down")
                self._caught_up.set()
                await self._clock.sleep(_LINK_RETRY_S)
                continue
            except SpecconsoleError as error:
                await self._cannot_keep(error)
                continue
            self._log_trouble = ""
            # A server that never stops writing leaves no moment without news: what the last look saw is enough.
            if not came or self.intake.reader.offset >= (self.record.log_bytes or 0):
                self._caught_up.set()
            now = self._clock.monotonic_s()
            if came or now - published_at >= _PUBLISH_S:
                published_at = now
                await self._publish_reading()
            pause_s = 0.1 if came else min(pause_s * 1.5, 0.5)
            # A log that floods is read without a pause, but others get their turn.
            await self._clock.sleep(0 if came and self.intake.reader.offset < (self.record.log_bytes or 0) else pause_s)

    async def _cannot_keep(self, error: SpecconsoleError) -> None:
        """This console's disk is full, or its folder is gone: said, and tried again from the last checkpoint."""
        if str(error) != self._log_trouble:
            self._log_trouble = str(error)
            self._tell("note", self._log_trouble)
        self._caught_up.set()
        self.publish()
        await self._clock.sleep(_DISK_RETRY_S)
        with suppress(SpecconsoleError):
            await self.intake.reopen()

    async def _publish_reading(self) -> None:
        over = self.state in lifecycle.ENDED
        reading = self._reading = self._read(over=over)
        if reading.phase != self._phase:
            if self._phase is not None and not over:
                part = f" ({reading.part})" if reading.part else ""
                self._tell("phase-changed", f"{reading.phase}{part}")
            self._phase = reading.phase
        if not over:
            self.account.note_phase(reading.phase)
            if reading.phase in _LOADING:
                await self._fact("phase-loading")
            if reading.stalled is not None:
                await self._fact("stalled" if reading.stalled else "moving")
        self.publish()

    def _read(self, *, over: bool) -> Reading:
        now_s = self._clock.monotonic_s()
        reading = self.intake.shown.reading(
            None if over else now_s,
            dead=over and self.record.alive is False,
            exit_code=self.record.exit_status if over else None,
            stop_asked=self.record.stop is not None,
            gpu=None if over else gpu_activity(self._board.hosts.get(self.host), self.record.launch_id, now_s),
        )
        return with_remedy(reading, self._remedy)

    def report(self, record: LaunchRecord | None) -> None:
        """What the host said of it just now; None: its folder is gone."""
        self._news = record if record is not None else "folder-gone"
        self._has_news.set()

    def report_link_down(self) -> None:
        """The host can't be asked."""
        self._news = "link-down"
        self._has_news.set()

    async def _watch_process(self) -> None:
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            news = self._news
            if isinstance(news, LaunchRecord):
                self._trouble = ""
                await self._fact("link-up")
                await self._observed(news)
            elif news is not None:
                await self._fact(news)
            self.publish()

    async def _observed(self, record: LaunchRecord) -> None:
        self.record = record
        self._first_answer.observed(record)
        if record.moment.now_s is not None:
            self.intake.host_offset_s = record.moment.now_s - self._clock.wall_s()
        if record.problem and record.spec is None:
            self._trouble = record.problem
        facts = facts_of(record)
        if facts is None:
            await self._gone(record)
        for fact in facts or ():
            await self._fact(fact)

    async def _gone(self, record: LaunchRecord) -> None:
        if self.state in lifecycle.ENDED or self.state == "stopping":
            return
        try:
            if not self.intake.final:
                await self.intake.drain()
        except (TransportError, TimeoutError):
            return
        except SpecconsoleError as error:
            # That it is gone matters more than that its last words can't be kept here.
            self._log_trouble = str(error)
        reading = self._reading = self._read(over=True)
        # A stop that was asked for, and whose console died before it could look around, is still a stop.
        meant = record.stop is not None or reading.phase == "stopped"
        await self._fact("ended-clean" if meant else "process-gone")

    def _situation(self) -> Situation:
        version = self._reading.server.version if self._reading is not None else None
        return Situation(self.record, version, self._phase)

    async def _asked(self, fact: FactName | None) -> None:
        if fact == "answered":
            await self._first_answer.note(saw_silence=self._asker.saw_silence)
            self.account.begin()
        if fact is not None:
            await self._fact(fact)
        self.publish()

    async def _learn_account(self) -> None:
        for note in await self.account.learn(lambda: (self.record, self._reading, self.intake.spool)):
            self._tell("note", note)
        self.publish()

    async def note_stop(self, event: StopEvent) -> None:
        """What a stop, run by this console, has to say."""
        if event.phase == "asked":
            await self._fact("stop-asked")
        if event.phase == "finished":
            self._left_over = tuple(str(one) for one in event.left_over)
            self.record = await self._launcher.observe(self.launch_id) or self.record
            if self.record.stop is not None:
                # Without a marker it had ended by itself before anybody asked.
                await self._fact("stop-verified" if not event.alive else "stop-given-up")
        self.publish()

    async def give_up_stop(self) -> None:
        """A stop of ours was cancelled."""
        await self._fact("stop-given-up")

    async def _fact(self, fact: FactName) -> None:
        step = lifecycle.step(self.state, fact)
        if fact == "link-down" and self._stale_since_s is None:
            self._stale_since_s = self._clock.monotonic_s()
        elif fact == "link-up":
            self._stale_since_s = None
        changed = step.state != self.state
        self.state = step.state
        for action in step.actions:
            await self._do(action)
        if changed:
            self.publish()
        if self.state in lifecycle.ENDED:
            self._over.set()

    async def _do(self, action: lifecycle.Action) -> None:
        match action:
            case "ask":
                self._asker.begin()
            case "hush":
                await self._asker.hush()
            case "record-answer":
                if self._first_answer.take_for_history():
                    await self._on_answered(self)
            case "verify-gone":
                await self._verify_gone()
            case "tell-answers":
                after = "" if self.answered_after_s is None else f" after {self.answered_after_s:.1f} s"
                self._tell("answers", f"answers{after}")
            case "tell-failed" if not self._ended_before_us:
                self._tell("failed", failure_note(self.record, self._reading))
            case "tell-stopped" if not self._ended_before_us:
                self._tell("stopped", describe_exit(self.record.exit_status))
            case "tell-stalled":
                reason = self._reading.stall_reason if self._reading is not None else None
                self._tell("stalled", reason or "silent beyond what this phase explains")
            case "tell-started":
                self._tell("note", "its turn has come: started")
            case "re-observe":
                with suppress(SpecconsoleError, TimeoutError):
                    self.report(await self._launcher.observe(self.launch_id))
            case "start" | "follow":
                pass

    async def _verify_gone(self) -> None:
        try:
            self._left_over = tuple(str(one) for one in await self._launcher.processes(self.launch_id))
        except (SpecconsoleError, TimeoutError):
            self._left_over = ("whether something is left could not be seen",)

    async def _finish(self) -> None:
        if self.record.spec is not None and not self.intake.final:
            try:
                await self.intake.drain()
                self.intake.final = self.record.alive is False
                await self.intake.save()
            except (SpecconsoleError, TimeoutError):
                self.intake.final = False
        # The wrapper writes the status down a moment after the server is gone.
        if not self.record.exited:
            with suppress(SpecconsoleError, TimeoutError):
                self.record = await self._launcher.observe(self.launch_id) or self.record
        await self.account.recall(self.record)
        if self.state == "failed":
            self._remedy = await remedy(self._launcher, self.record, self._read(over=True), self.intake.spool)
        await self._publish_reading()

    def trouble(self, text: str) -> None:
        """This console can't watch it; the launch itself is as it was."""
        self._trouble = text
        self._board.tell("note", self.launch_id, text, self._clock.wall_s())
        self.publish()

    def _tell(self, kind: FactKind, text: str) -> None:
        name = self.record.spec.profile if self.record.spec is not None else self.launch_id
        self._board.tell(kind, self.launch_id, f"{name}: {text}", self._clock.wall_s())

    def publish(self) -> None:
        """Puts the present view on the board."""
        now_s = self._clock.monotonic_s()
        before = self._board.launches.get(self.launch_id)
        known = view_of_record(self.record, self._launcher.host, self._us)
        last_s = self.past_starts_s[-1] if self.past_starts_s else None
        view = replace(
            known,
            state=self.state,
            reading=with_outlook(self._reading, self.state, self.past_starts_s, self._first_answer.age_now_s),
            health=self._asker.health,
            health_detail=self._trouble or self._log_trouble or self._asker.detail or known.health_detail,
            answered_after_s=self.answered_after_s,
            spool_path=str(self.intake.spool.path) if self.intake.spool is not None else None,
            left_over=self._left_over,
            stale_since_s=self._stale_since_s,
            as_of_s=now_s,
            running_benches=before.running_benches if before is not None else 0,
            history_note=history_note(last_s),
            last_start_s=last_s,
            account=self.account.found,
            probes=probe_views(self.intake.probes),
        )
        self._board.publish_launch(view if before is None else keep_time(before, view))
