"""Writes into the store what a later start is judged by: durations of phases, time to answer, and the launches' index.

Trouble with the store costs estimates, never a launch: it is told once on the board.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.launching.start_key import start_key
from specconsole.core.reading.history import History, StartKey, answered_on_timeline, samples_of
from specconsole.core.records import Store, StoredLaunch, StoredRecord
from specconsole.core.views.history_facts import facts_of_memory, facts_of_reading, facts_of_record
from specconsole.errors import SpecconsoleError
from specconsole.ports import Clock
from specconsole.services.board import Board
from specconsole.services.gpu_memory import MemoryKeeper
from specconsole.services.launch import LaunchWatch


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier starts say about one that begins."""

    key: StartKey | None = None
    history: History | None = None
    took_s: tuple[float, ...] = ()
    """Seconds that starts of this profile on this host took until they answered, oldest first."""

    @property
    def last_start_s(self) -> float | None:
        return self.took_s[-1] if self.took_s else None


class Recorder:
    """For one console; `store` None keeps nothing."""

    def __init__(self, store: Store | None, board: Board, clock: Clock) -> None:
        self._store = store
        self._board = board
        self._clock = clock
        self._told = False
        self._indexed: dict[str, StoredLaunch] = {}
        self._answered_s: dict[str, float | None] = {}
        """Launch -> when it answered, in seconds on its reading's timeline; for the end, which writes all again."""

    async def past(self, spec: LaunchSpec, host: str) -> Past:
        """For the estimates of a start that begins."""
        key = start_key(spec, host)
        if self._store is None:
            return Past(key)
        try:
            samples = await self._store.samples(engine=spec.engine)
            starts = await self._store.records("start")
        except SpecconsoleError as error:
            self._trouble(error)
            return Past(key)
        last = [
            row
            for row in starts
            if row.body.get("profile") == spec.profile
            and row.body.get("host") == host
            and row.record_id != spec.launch_id
        ]
        times = [row.body.get("answered_after_s") for row in last]
        took = tuple(float(seconds) for seconds in times if isinstance(seconds, int | float))
        return Past(key, History(samples), took)

    async def answered(self, watch: LaunchWatch) -> None:
        """A start is over and well: how long it took, and its phases."""
        spec = watch.record.spec
        if self._store is None or spec is None or watch.answered_after_s is None:
            return
        body = {
            "profile": spec.profile,
            "host": watch.host,
            "engine": spec.engine,
            "answered_after_s": round(watch.answered_after_s, 3),
        }
        now = watch.intake.reader.reading(self._clock.monotonic_s())
        self._answered_s[spec.launch_id] = answered_on_timeline(now.timeline, now.silent_s)
        row = StoredRecord("start", spec.launch_id, self._clock.wall_s(), body, spec.launch_id)
        try:
            await self._store.put_records([row])
            await self._put_samples(watch, spec)
            await self._store.put_launches([self._row(watch.host, watch.record, "", _said(watch))])
        except SpecconsoleError as error:
            self._trouble(error)

    async def ended(self, watch: LaunchWatch, memory: MemoryKeeper | None = None) -> None:
        """A launch is over; one that never answered still says how long its phases took at least."""
        spec = watch.record.spec
        if self._store is None or spec is None:
            return
        try:
            await self._put_samples(watch, spec)
            seen = await memory.kept(watch.record.folder) if memory is not None else ()
            facts = {**_said(watch), **facts_of_memory(seen)}
            await self._store.put_launches([self._row(watch.host, watch.record, watch.state, facts)])
        except SpecconsoleError as error:
            self._trouble(error)

    async def keep_probes(self, watch: LaunchWatch) -> None:
        """What its probes read, for as long as the store lasts; the log may be gone by then."""
        series = watch.intake.probes.series() if watch.intake.probes is not None else ()
        rows = [
            StoredRecord("probe", f"{watch.launch_id}/{one.name}", self._clock.wall_s(), asdict(one), watch.launch_id)
            for one in series
            if one.count or one.unreadable
        ]
        if rows and self._store is not None:
            try:
                await self._store.put_records(rows)
            except SpecconsoleError as error:
                self._trouble(error)

    async def index(self, host: str, records: Iterable[LaunchRecord]) -> None:
        """Keeps the index of a host's launches; the folders stay the truth."""
        if self._store is None:
            return
        try:
            await self._index([self._row(host, record, "") for record in records if record.spec is not None])
        except SpecconsoleError as error:
            self._trouble(error)

    async def _index(self, rows: list[StoredLaunch]) -> None:
        new = [
            row
            for row in rows
            if (known := self._indexed.get(row.launch_id)) is None or (row.outcome and known.outcome != row.outcome)
        ]
        if new and self._store is not None:
            await self._store.put_launches(new)
            self._indexed.update({row.launch_id: row for row in new})

    async def _put_samples(self, watch: LaunchWatch, spec: LaunchSpec) -> None:
        reading = watch.reading
        if self._store is None or reading is None or not reading.timeline or reading.basis != "whole":
            return
        key = start_key(spec, watch.host, reading.server)
        started = watch.record.started_at_s
        at_s = started if started is not None else self._clock.wall_s()
        answered_s = self._answered_s.get(spec.launch_id)
        samples = samples_of(key, reading.timeline, at_s=at_s, answered_s=answered_s)
        if samples:
            await self._store.put_samples(spec.launch_id, samples)

    def _row(self, host: str, record: LaunchRecord, outcome: str, facts: dict[str, Any] | None = None) -> StoredLaunch:
        spec = record.spec
        return StoredLaunch(
            launch_id=record.launch_id,
            host=host,
            folder=record.folder,
            profile=spec.profile if spec is not None else "",
            engine=spec.engine if spec is not None else "",
            owner=spec.owner if spec is not None else "",
            started_at_s=record.started_at_s,
            ended_at_s=record.exit_at_s,
            outcome=outcome or ("stopped" if record.ended else ""),
            facts={**facts_of_record(record), **(facts or {})},
        )

    def _trouble(self, error: SpecconsoleError) -> None:
        if not self._told:
            self._told = True
            self._board.tell("note", "store", f"the history is not kept: {error}", self._clock.wall_s())


def _said(watch: LaunchWatch) -> dict[str, Any]:
    return facts_of_reading(watch.reading, watch.answered_after_s)
