"""What a window may ask about the launch history: a part of `services.commands.Commands`, and its implementation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from specconsole.core.launching.difference import Difference
from specconsole.core.views.history import HistoryPage, HistoryQuery, HistoryRow
from specconsole.core.views.launch import LaunchState, LaunchView
from specconsole.errors import NotFoundError, RefusedError, SpecconsoleError
from specconsole.services.history import RUNS, LaunchHistory
from specconsole.services.history_reading import kept_log
from specconsole.services.history_sides import Sides
from specconsole.services.spool import Spool
from specconsole.services.supervisor import Supervisor, folder_name

if TYPE_CHECKING:
    from specconsole.core.measuring.result import Result


class HistoryCommands(Protocol):
    """Every coroutine raises SpecconsoleError when it did not do what it says."""

    async def page(self, query: HistoryQuery) -> HistoryPage:
        """The newest launches that fit, from the store."""

    async def open(self, launch_id: str) -> str:
        """Puts a launch on the board, its log and reading with it; "" or what stands in the way of more."""

    async def difference(self, left_id: str, right_id: str) -> Difference:
        """Everything that is known of both."""

    async def note(self, launch_id: str, text: str) -> str:
        """Adds a note; "" once the launch's folder has it too, else why it has not yet. It is kept either way."""

    async def tag_line(self, launch_id: str, line: str) -> str:
        """`best -old`: puts tags on and takes others off; answers as `note` does."""

    async def undo(self, launch_id: str) -> str:
        """Takes back this person's last note or tag; answers as `note` does."""


async def _no_results() -> Sequence[Result]:
    return ()


class HistoryDesk(LaunchHistory):
    """`HistoryCommands` over a supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        super().__init__(supervisor)
        self._sides = Sides(self, _no_results)
        self.kept: dict[str, Spool] = {}
        """Logs of launches on the board whose hosts can't be asked."""

    def use_results(self, results: Callable[[], Awaitable[Sequence[Result]]]) -> None:
        """Where measured results come from."""
        self._sides = Sides(self, results)

    async def difference(self, left_id: str, right_id: str) -> Difference:
        if left_id == right_id:
            raise NotFoundError("a launch does not differ from itself", where=left_id, try_="another one")
        return await self._sides.difference(left_id, right_id)

    async def look(self, launch_id: str) -> HistoryRow:
        """Looks at what became of a launch, where its host is open. A server that runs is asked nothing."""
        row = await self.find(launch_id)
        tools = self.open_tools(row.host)
        record = await tools.launcher.observe(row.launch_id) if tools is not None else None
        if record is not None and not record.over:
            self.seen[row.launch_id] = RUNS if record.alive else "queued"
        else:
            await self._sides.side(row.launch_id)
        return await self.find(row.launch_id)

    async def open(self, launch_id: str) -> str:
        if launch_id in self.supervisor.watches:
            return ""
        row = await self.find(launch_id)
        tools = self.open_tools(row.host)
        why = f"{row.host} is not watched here"
        if tools is not None:
            try:
                record = await tools.launcher.observe(launch_id)
            except (SpecconsoleError, TimeoutError) as error:
                why = str(error) or f"{row.host} does not answer"
            else:
                if record is not None:
                    self.supervisor.watch(tools, record)
                    return ""
                why = f"its folder is gone from {row.host}"
        await self._show_kept(row)
        return why

    async def watched(self, word: str) -> str:
        """The id of a launch that is watched from here on. Raises RefusedError with what stands in the way."""
        row = await self.find(word)
        if row.launch_id not in self.supervisor.watches and (why := await self.open(row.launch_id)):
            raise RefusedError(
                f"{row.profile} can't be started again as it was: {why}", where=row.launch_id,
                try_=f"specconsole launch {row.profile}",
            )  # fmt: skip
        return row.launch_id

    async def _show_kept(self, row: HistoryRow) -> None:
        folder = self._parts.state_folder / "spool" / folder_name(row.host) / row.launch_id
        ended = row.outcome in ("stopped", "failed")
        found = await asyncio.to_thread(kept_log, folder, row.engine, ended=ended, stopped=row.outcome == "stopped")
        now_s = self._parts.clock.monotonic_s()
        states: dict[str, LaunchState] = {"stopped": "stopped", "failed": "failed", "gone": "gone"}
        view = LaunchView(
            row.launch_id, row.profile, row.host, row.engine, row.port, states.get(row.outcome, "unknown"),
            reading=found[1] if found is not None else None, answered_after_s=row.answered_after_s,
            started_at_s=row.started_at_s or row.at_s or None, ended_at_s=row.ended_at_s, exit_status=row.exit_status,
            owner=row.owner, ours=row.owner == self._parts.us.owner, tags=row.tags, command=row.command,
            spool_path=str(found[0].path) if found is not None else None, stale_since_s=now_s, as_of_s=now_s,
            health_detail="from this console's history",
        )  # fmt: skip
        if found is not None:
            self.kept[row.launch_id] = found[0]
        self.supervisor.board.publish_launch(view)
