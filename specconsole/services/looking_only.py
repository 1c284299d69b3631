"""Commands of a window that can only be looked at: a recording, or services that do not stand yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from specconsole.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from specconsole.services.commands import (
        AttachOrder,
        FoundServer,
        LaunchOrder,
        LineSource,
        ProfileSummary,
        Progress,
        StopPlan,
    )


class LookingOnly:
    """Every command says `why_not`, and nothing is changed."""

    measuring = None
    history = None
    form = None
    holders = None

    def __init__(self, why_not: str, *, read_only: bool = True) -> None:
        """`read_only` False: for a moment only, so what changes something is shown, and not yet possible."""
        self._why_not = why_not
        self.read_only = read_only

    def can(self, what: str) -> str:
        return self._why_not

    def why_no_change(self, host: str) -> str:
        return self._why_not if self.read_only else ""

    def line_source(self, launch_id: str) -> LineSource | None:
        return None

    def _refuse(self) -> NoReturn:
        raise RefusedError(self._why_not)

    async def profiles(self) -> Sequence[ProfileSummary]:
        return ()

    async def known_hosts(self) -> Sequence[str]:
        return ()

    async def add_host(self, name: str) -> None:
        self._refuse()

    async def remove_host(self, name: str) -> None:
        self._refuse()

    async def reconnect(self, name: str) -> None:
        self._refuse()

    async def trust_key(self, host: str, fingerprint: str) -> None:
        self._refuse()

    async def answer(self, question_id: str, text: str | None) -> None:
        self._refuse()

    async def found_servers(self, host: str) -> Sequence[FoundServer]:
        return ()

    async def launch(self, order: LaunchOrder) -> str:
        self._refuse()

    def agree_to_key_argument(self, profile: str) -> None:
        self._refuse()

    async def relaunch(self, launch_id: str, overrides: Mapping[str, Any]) -> str:
        self._refuse()

    async def stop_plan(self, launch_id: str) -> StopPlan:
        self._refuse()

    async def stop(self, launch_id: str, progress: Progress) -> None:
        self._refuse()

    async def attach(self, order: AttachOrder) -> str:
        self._refuse()

    async def forget(self, launch_id: str) -> None:
        self._refuse()

    async def collect_evidence(self, launch_id: str, progress: Progress) -> Path:
        self._refuse()
