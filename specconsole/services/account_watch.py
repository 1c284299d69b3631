"""When the account of a launch is asked for: once it answers, or, of an adopted server, once its log says `ready`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from specconsole.core.launching.effective import Account
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.reading.model import Phase, Reading
from specconsole.ports import HttpClient, ServerApi
from specconsole.services.accounts import Accounts
from specconsole.services.spool import Spool


class AccountWatch:
    """Of one launch."""

    def __init__(self, accounts: Accounts, api: ServerApi, http: HttpClient, *, adopted: bool) -> None:
        self._accounts = accounts
        self._api = api
        # Somebody else's server gets no request.
        self._http = None if adopted else http
        self._due = asyncio.Event()
        self._known = asyncio.Event()
        self.found: Account | None = None

    def begin(self) -> None:
        """It answers: `learn` may go on."""
        self._due.set()

    def note_phase(self, phase: Phase) -> None:
        """What the log says; of an adopted server its word must do."""
        if self._http is None and phase in ("ready", "serving"):
            self._due.set()

    def give_up(self) -> None:
        """The watch is over; whoever waits for it is let go."""
        self._known.set()

    async def settled(self) -> None:
        """Waits until a launch that answers has been asked."""
        if self._due.is_set():
            await self._known.wait()

    async def learn(self, now: Callable[[], tuple[LaunchRecord, Reading | None, Spool | None]]) -> tuple[str, ...]:
        """Waits for `begin`, then finds it out by what is known `now`; what a person must know of it, one line each."""
        await self._due.wait()
        self.found = await self._accounts.find(*now(), self._api, self._http)
        self._known.set()
        if self.found is not None and self.found.speculation_off:
            return ("a draft was asked for, and the server runs without speculation",)
        return ()

    async def recall(self, record: LaunchRecord) -> None:
        """Of a launch that is over: what was found out while it ran."""
        if self.found is None and record.spec is not None:
            self.found = await self._accounts.kept(record)
