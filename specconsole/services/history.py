"""The launch history as clients ask for it: pages of it, one launch by a word, notes and tags.

The store is asked, not the hosts: what is watched just now adds its present state, everything else stands as it was
last seen. Nothing here waits for a network but the sending of notes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.records import Store
from specconsole.core.views.history import HistoryPage, HistoryQuery, HistoryRow
from specconsole.errors import NotFoundError, RefusedError, SpecconsoleError
from specconsole.services.notes import LaunchNotes
from specconsole.services.supervisor import HostTools, Supervisor

LAST = "last"
"""The word for the newest launch."""
Changed = Callable[[], Awaitable[None]]
"""Called after a note or a tag of this console is kept."""
RUNS = "runs"
"""State of a launch whose process was seen, and that was asked nothing."""
_NAMED = 6
"""Candidates that an error names."""


class LaunchHistory:
    """For one console."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self._parts = supervisor.parts
        self.notes = LaunchNotes(self.store, self._parts.clock, self._parts.us.owner)
        supervisor.on_found.append(self._exchange)
        self.on_changed: list[Changed] = []
        self.seen: dict[str, str] = {}
        """State of launches that were looked at without being watched: `runs` or `queued`."""

    @property
    def store(self) -> Store:
        """Raises RefusedError where this console keeps nothing."""
        if self._parts.store is None:
            raise RefusedError("this console keeps no history")
        return self._parts.store

    # ---------------------------------------------------------------- looking

    async def page(self, query: HistoryQuery) -> HistoryPage:
        """The newest launches that fit."""
        page = await self.store.history(query)
        return replace(page, rows=tuple(self._now(row) for row in page.rows))

    def _now(self, row: HistoryRow) -> HistoryRow:
        view = self.supervisor.board.launches.get(row.launch_id)
        if view is None or view.stale_since_s is not None:
            return replace(row, state=self.seen.get(row.launch_id, ""))
        known = row if view.answered_after_s is None else replace(row, answered_after_s=view.answered_after_s)
        reading = view.reading
        if reading is not None and reading.failure is not None and view.state == "failed":
            known = replace(known, cause=reading.failure.failure_class, cause_line=reading.failure.line or "")
        if reading is not None and reading.metrics is not None and known.accept_length is None:
            known = replace(known, accept_length=reading.metrics.accept_length)
        # Its log is read anew at each start of a console; until then the store knows better.
        return known if view.state in ("unknown", "preparing") and row.outcome else replace(known, state=view.state)

    async def find(self, word: str) -> HistoryRow:
        """The launch that is meant: an id, a beginning that only one id has, `last`, or a profile's name (its newest
        launch). Raises NotFoundError, which names the candidates of a beginning that several have."""
        if word == LAST:
            return await self._newest(HistoryQuery(limit=1), "nothing was launched yet")
        exact = await self.page(HistoryQuery(launch_ids=(word,), limit=1))
        if exact.rows:
            return exact.rows[0]
        begins = await self.page(HistoryQuery(id_begins=word, limit=_NAMED)) if word else HistoryPage(())
        if len(begins.rows) == 1:
            return begins.rows[0]
        named = await self.page(HistoryQuery(profile=word, limit=1))
        if named.rows:
            return named.rows[0]
        if begins.rows:
            raise NotFoundError(several_text(word, begins.rows, more=begins.more), try_="more of the id")
        raise NotFoundError(f"no launch {word}", try_="specconsole history; --host HOST to look on another host")

    async def _newest(self, query: HistoryQuery, none: str) -> HistoryRow:
        page = await self.page(query)
        if not page.rows:
            raise NotFoundError(none, try_="specconsole launch PROFILE")
        return page.rows[0]

    # ---------------------------------------------------------------- notes and tags

    async def note(self, launch_id: str, text: str) -> str:
        """Adds a note; "" once the launch's folder has it too, else why it has not yet."""
        self._may_write()
        await self.notes.note(launch_id, text)
        return await self._kept(launch_id)

    async def tag(self, launch_id: str, on: Sequence[str], off: Sequence[str]) -> str:
        """Puts tags on and takes others off; answers as `note` does."""
        self._may_write()
        await self.notes.tag(launch_id, on, off)
        return await self._kept(launch_id)

    async def tag_line(self, launch_id: str, line: str) -> str:
        """`best -old`, as a person types it; answers as `note` does."""
        self._may_write()
        row = await self.find(launch_id)
        await self.notes.tag_line(launch_id, line, row.tags)
        return await self._kept(launch_id)

    async def undo(self, launch_id: str) -> str:
        """Takes back this person's last change; answers as `note` does."""
        self._may_write()
        await self.notes.undo(launch_id)
        return await self._kept(launch_id)

    async def _kept(self, launch_id: str) -> str:
        for heard in self.on_changed:
            await heard()
        return await self.send(launch_id)

    def _may_write(self) -> None:
        if self._parts.read_only:
            raise RefusedError("this console is read-only", try_="start it without --read-only")

    async def send(self, launch_id: str) -> str:
        """Writes to the launch's folder what it lacks; "" when it has all, else why not."""
        row = (await self.store.history(HistoryQuery(launch_ids=(launch_id,), limit=1))).rows
        if not row or not row[0].folder:
            return "it has no folder"
        if why := self.supervisor.why_no_change(row[0].host):
            return why
        tools = self.open_tools(row[0].host)
        if tools is None:
            return f"{row[0].host} is not open here"
        return await self.notes.send(tools.transport, launch_id, row[0].folder)

    def open_tools(self, host: str) -> HostTools | None:
        """The tools of a host that is open; None for any other: nothing here connects by itself."""
        return self.supervisor.opened(host)

    async def _exchange(self, tools: HostTools, records: Sequence[LaunchRecord]) -> None:
        """Brings notes and tags of these launches up to date here and on their host."""
        writes = not self.supervisor.why_no_change(tools.name)
        try:
            await self.notes.exchange(tools.transport, {one.launch_id: one.folder for one in records}, writes=writes)
        except (SpecconsoleError, TimeoutError):
            return  # the next look does it


def several_text(word: str, rows: Sequence[HistoryRow], *, more: bool) -> str:
    """`3 launches begin with 2026: ID (profile @ host, stopped), ...`."""
    count = f"more than {len(rows)}" if more else str(len(rows))
    named = ", ".join(f"{row.launch_id} ({row.profile} @ {row.host}, {row.state_text})" for row in rows)
    return f"{count} launches begin with {word}: {named}"
