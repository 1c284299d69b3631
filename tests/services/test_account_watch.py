"""When the account of a launch is made, and from what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from specconsole.adapters.vllm_api import VllmApi
from specconsole.core.launching.effective import Account, Effective
from specconsole.services.account_watch import AccountWatch


class Noting:
    """Stands for `Accounts`; keeps what it was asked with."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    async def find(self, *asked: Any) -> Account:
        self.asked.append(asked)
        return Account(Effective())


async def test_it_is_made_from_what_is_known_when_the_launch_answers() -> None:
    accounts = Noting()
    watch = AccountWatch(accounts, VllmApi(), http=None, adopted=False)  # type: ignore[arg-type]
    now: tuple[Any, ...] = ("record", None, None)
    learning = asyncio.create_task(watch.learn(lambda: now))  # type: ignore[arg-type, return-value]
    await asyncio.sleep(0)
    assert accounts.asked == [], "nothing is asked before it answers"
    now = ("record", "the log as it reads now", Path("spool"))
    watch.begin()
    assert await learning == ()
    assert [asked[:3] for asked in accounts.asked] == [now]
