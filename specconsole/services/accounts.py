"""Finds out how a launch that answers really runs, once, and keeps it with the launch: in its folder on the host and in
the store.

What another console found out is read from the folder. Trouble costs the account, never the launch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict

from specconsole.core.launching.build_identity import BUILD_IDENTITY, build_arguments, parse_build
from specconsole.core.launching.effective import (
    Account,
    Said,
    asked_for_speculation,
    decode_account,
    encode_account,
)
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.reading.model import Reading
from specconsole.core.records import Store, StoredRecord
from specconsole.errors import SpecconsoleError
from specconsole.ports import Clock, HttpClient, ServerApi, Transport
from specconsole.services.spool import Spool

FILE_NAME = "effective.json"
_MAX_LINES = 64
_SEARCHED_BYTES = 32 * 1024 * 1024
"""Of the log's beginning: the account is printed before the first request."""
_BUILD_TIMEOUT_S = 20.0


class Accounts:
    """For the launches of one host."""

    def __init__(self, transport: Transport, store: Store | None, clock: Clock) -> None:
        self._transport = transport
        self._store = store
        self._clock = clock

    async def find(
        self,
        record: LaunchRecord,
        reading: Reading | None,
        spool: Spool | None,
        api: ServerApi,
        http: HttpClient | None,
    ) -> Account | None:
        """The account of a launch; None when its folder says nothing of what was asked.

        `http` None: the server is not asked, what its log says must do.
        """
        spec = record.spec
        if spec is None:
            return None
        known = await self.kept(record)
        if known is not None:
            return known
        said = await asyncio.to_thread(_said, spec, reading, spool, api.account_words)
        found = await api.account(http if spec.port is not None else None, spec.reach_address, spec.port or 0, said)
        drafts = asked_for_speculation(spec.settings, spec.draft_model)
        account = api.judge(spec.settings, found, drafts=drafts, build=await self._build(spec))
        await self._keep(record, account)
        return account

    async def kept(self, record: LaunchRecord) -> Account | None:
        """What was found out earlier; None without it."""
        try:
            return decode_account(await self._transport.read_file(f"{record.folder}/{FILE_NAME}", max_bytes=1 << 20))
        except (SpecconsoleError, TimeoutError):
            return None

    async def _build(self, spec: LaunchSpec) -> dict[str, str]:
        try:
            done = await self._transport.run_sh(BUILD_IDENTITY, build_arguments(spec), timeout_s=_BUILD_TIMEOUT_S)
        except (SpecconsoleError, TimeoutError):
            return {}
        return parse_build(done.stdout)

    async def _keep(self, record: LaunchRecord, account: Account) -> None:
        try:
            await self._transport.write_file(f"{record.folder}/{FILE_NAME}", encode_account(account))
        except (SpecconsoleError, TimeoutError):
            return  # a full or read-only disk: the next console asks again
        if self._store is not None:
            row = StoredRecord("effective", record.launch_id, self._clock.wall_s(), asdict(account), record.launch_id)
            try:
                await self._store.put_records([row])
            except SpecconsoleError:
                return  # the folder has it


def _said(spec: LaunchSpec, reading: Reading | None, spool: Spool | None, words: tuple[str, ...]) -> Said:
    return Said(
        args=dict(reading.server.args) if reading is not None else {},
        version=reading.server.version if reading is not None else None,
        asked=spec.settings,
        env=spec.env,
        draft_model=spec.draft_model,
        lines=tuple(_account_lines(spool, words)) if spool is not None and words else (),
    )


def _account_lines(spool: Spool, words: tuple[str, ...]) -> Iterator[str]:
    wanted = [word.encode() for word in words]
    seen = found = 0
    for _, block in spool.blocks(0):
        seen += len(block)
        if any(word in block for word in wanted):
            for line in block.splitlines():
                if any(word in line for word in wanted):
                    yield line[:65536].decode("utf-8", "replace")
                    found += 1
                    if found >= _MAX_LINES:
                        return
        if seen > _SEARCHED_BYTES:
            return
