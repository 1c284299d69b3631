"""Two launches side by side: each from the store, refreshed from its host where that can be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specconsole.core.launching.difference import Difference, difference
from specconsole.core.launching.difference_side import LaunchSide, side_of
from specconsole.core.launching.effective import Account, decode_account
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.measuring.difference_results import result_rows, results_of
from specconsole.core.measuring.result import Result
from specconsole.core.records import StoredLaunch
from specconsole.core.views.history import HistoryQuery, HistoryRow
from specconsole.core.views.history_facts import (
    facts_of_memory,
    facts_of_reading,
    facts_of_record,
    merged,
    row_of,
)
from specconsole.errors import NotFoundError, SpecconsoleError
from specconsole.services.history import LaunchHistory
from specconsole.services.supervisor import HostTools

Results = Callable[[], Awaitable[Sequence[Result]]]


@dataclass(frozen=True, slots=True)
class _Fresh:
    """What the host just said of a launch."""

    facts: dict[str, Any]
    account: Account | None
    outcome: str
    record: LaunchRecord


class Sides:
    """For one console; `results` gives what was measured."""

    def __init__(self, history: LaunchHistory, results: Results) -> None:
        self._history = history
        self._results = results

    async def difference(self, left_id: str, right_id: str) -> Difference:
        """Everything that is known of both. Raises NotFoundError for a launch that the store does not have."""
        left, right = await self.side(left_id), await self.side(right_id)
        results = await self._results()
        rows, notes = result_rows(results_of(results, left_id), results_of(results, right_id))
        return difference(left, right, rows, notes)

    async def side(self, launch_id: str) -> LaunchSide:
        """One launch. A host that is not open here is not asked, and what only it knows is unknown."""
        store = self._history.store
        launch = await store.launch(launch_id)
        if launch is None:
            raise NotFoundError(f"no launch {launch_id}", try_="specconsole history")
        unknown: list[str] = []
        fresh: _Fresh | None = None
        tools = self._history.open_tools(launch.host)
        if tools is None:
            unknown.append(f"{launch.host} was not asked: of {launch_id} only what is kept here is known")
        else:
            try:
                fresh = await self._ask(tools, launch_id)
            except (SpecconsoleError, TimeoutError) as error:
                why = str(error) or "no answer in time"
                unknown.append(f"{launch.host} can't be asked about {launch_id}: {why}")
            else:
                if fresh is None:
                    launch = await self._gone(launch)
                    unknown.append(f"the folder of {launch_id} is gone from {launch.host}: what is kept here stands")
        if fresh is not None:
            launch = merged(launch, _row(launch, fresh))
            await store.put_launches([launch])
        account = fresh.account if fresh is not None else None
        row = await self._with_notes(launch)
        outcome = fresh.outcome if fresh is not None else None
        return side_of(launch, row, account or await self._kept_account(launch_id), outcome=outcome, unknown=unknown)

    async def _gone(self, launch: StoredLaunch) -> StoredLaunch:
        """Nobody will see it end any more."""
        gone = merged(launch, replace(launch, outcome=launch.outcome or "gone", facts={"alive": False}))
        await self._history.store.put_launches([gone])
        return gone

    async def _with_notes(self, launch: StoredLaunch) -> HistoryRow:
        page = await self._history.page(HistoryQuery(launch_ids=(launch.launch_id,), limit=1))
        return page.rows[0] if page.rows else row_of(launch)

    async def _kept_account(self, launch_id: str) -> Account | None:
        rows = await self._history.store.records("effective", launch_id=launch_id)
        return decode_account(_account_line(rows[-1].body)) if rows else None

    async def _ask(self, tools: HostTools, launch_id: str) -> _Fresh | None:
        supervisor = self._history.supervisor
        watch = supervisor.watches.get(launch_id)
        if watch is None:
            record = await tools.launcher.observe(launch_id)
            if record is None:
                return None
            watch = supervisor.watch(tools, record)
        await watch.settled()
        await watch.account.settled()
        if watch.state == "gone":
            return None
        memory = await tools.memory.kept(watch.record.folder) if tools.memory is not None else ()
        facts = {
            **facts_of_record(watch.record),
            **facts_of_reading(watch.reading, watch.answered_after_s),
            **facts_of_memory(memory),
        }
        return _Fresh(facts, watch.account.found, watch.state, watch.record)


def _row(launch: StoredLaunch, fresh: _Fresh) -> StoredLaunch:
    record = fresh.record
    outcome = fresh.outcome if fresh.outcome in ("stopped", "failed") else ""
    return StoredLaunch(
        launch.launch_id, launch.host, record.folder, started_at_s=record.started_at_s, ended_at_s=record.exit_at_s,
        outcome=outcome, facts=fresh.facts,
    )  # fmt: skip


def _account_line(body: dict[str, Any]) -> bytes:
    import json

    return json.dumps({"schema": 1, **body}).encode()
