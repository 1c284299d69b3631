"""Everything a client may ask for: `services.commands.Commands`, put together from its parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from specconsole.core.launching.profile import Profile
from specconsole.errors import NotFoundError, SpecconsoleError
from specconsole.services.adoption import Adoption
from specconsole.services.commands import (
    AttachOrder,
    FoundServer,
    LaunchOrder,
    LineSource,
    ProfileSummary,
    Progress,
)
from specconsole.services.evidence import collect_evidence
from specconsole.services.form_desk import FormDesk, FormFiles, FormOrder
from specconsole.services.history_commands import HistoryDesk
from specconsole.services.holder_commands import HolderCommands
from specconsole.services.launch_commands import LaunchCommands, Told
from specconsole.services.measuring_commands import MeasuringCommands
from specconsole.services.supervisor import Supervisor

_CHANGES = (
    "launch",
    "relaunch",
    "stop",
    "attach",
    "forget",
    "trust_key",
    "add_host",
    "remove_host",
    "bench",
    "evict",
    "collect_evidence",
)


def _unheard(text: str) -> None:
    del text


class HostDesk(Protocol):
    """What may be asked about hosts and their links."""

    async def known_hosts(self) -> Sequence[str]: ...

    async def add_host(self, name: str) -> None: ...

    async def remove_host(self, name: str) -> None: ...

    async def reconnect(self, name: str) -> None: ...

    async def trust_key(self, host: str, fingerprint: str) -> None: ...

    async def answer(self, question_id: str, text: str | None) -> None: ...


class ConsoleCommands(LaunchCommands):
    """`Commands` for a supervisor; `desk` None: this machine only."""

    def __init__(
        self,
        supervisor: Supervisor,
        desk: HostDesk | None = None,
        measuring: MeasuringCommands | None = None,
        history: HistoryDesk | None = None,
        form_files: FormFiles | None = None,
    ) -> None:
        super().__init__(supervisor)
        self.measuring = measuring
        self.history = history
        self.form = FormDesk(supervisor, form_files, self._start_form) if form_files is not None else None
        looks = supervisor.parts.preflight
        self.holders = HolderCommands(supervisor, looks.hardware) if looks is not None else None
        self._desk = desk
        self._adoption = Adoption(supervisor)
        self.read_only = supervisor.parts.read_only

    async def _start_form(self, order: FormOrder, told: Progress) -> str:
        asked = LaunchOrder(order.profile.name, order.host, {}, order.preflight, order.when_free)
        return await self.launch_profile(order.profile, asked, told, stop_first=order.stop_first)

    def can(self, what: str) -> str:
        """Why `what` can't be done at all now; "" when it can."""
        if self.read_only and what in _CHANGES:
            return "this console is read-only"
        if self.measuring is None and what == "bench":
            return "nothing can be measured in this console"
        if self._desk is None and what in ("add_host", "remove_host", "reconnect", "trust_key", "answer"):
            return "hosts over SSH are not set up in this console"
        return ""

    def why_no_change(self, host: str) -> str:
        """Why nothing may be changed on this host from here; "" when it may."""
        return self._sup.why_no_change(host)

    async def relaunch(self, launch_id: str, overrides: Mapping[str, Any], told: Told = _unheard) -> str:
        """Also of a launch that is only in the history. Raises RefusedError with the reason where its host can't say
        what it was made from."""
        if self.history is not None and launch_id not in self._sup.watches:
            launch_id = await self.history.watched(launch_id)
        return await super().relaunch(launch_id, overrides, told)

    def line_source(self, launch_id: str) -> LineSource | None:
        """None while nothing of its log has arrived."""
        watch = self._sup.watches.get(launch_id)
        if watch is None:
            return self.history.kept.get(launch_id) if self.history is not None else None
        return watch.intake.spool

    async def profiles(self) -> Sequence[ProfileSummary]:
        """Every profile, broken ones with their problem."""
        return await asyncio.to_thread(self._profiles)

    def _profiles(self) -> list[ProfileSummary]:
        found: list[ProfileSummary] = []
        for name in sorted(self._parts.profile_names()):
            try:
                profile = self._parts.read_profile(name)
            except SpecconsoleError as error:
                found.append(ProfileSummary(name, "", "", problem=str(error)))
            else:
                found.append(ProfileSummary(name, profile.engine, _summary(profile), dict(profile.args), profile.host))
        return found

    async def known_hosts(self) -> Sequence[str]:
        """Names that could be added."""
        return await self._desk.known_hosts() if self._desk is not None else ()

    async def add_host(self, name: str) -> None:
        """Adds and connects."""
        if self._desk is not None:
            await self._desk.add_host(name)
        else:
            await self._sup.add_host(name)

    async def remove_host(self, name: str) -> None:
        """Stops watching a host."""
        await self._the_desk().remove_host(name)

    async def reconnect(self, name: str) -> None:
        """Tries again at once."""
        await self._the_desk().reconnect(name)

    async def trust_key(self, host: str, fingerprint: str) -> None:
        """Writes a host's key to known_hosts."""
        self._may_change(host)
        await self._the_desk().trust_key(host, fingerprint)

    async def answer(self, question_id: str, text: str | None) -> None:
        """Answers a question on the board."""
        await self._the_desk().answer(question_id, text)

    async def found_servers(self, host: str) -> Sequence[FoundServer]:
        """Running engines that are not watched yet."""
        return await self._adoption.found_servers(host)

    async def attach(self, order: AttachOrder) -> str:
        """Adopts a server that somebody started by hand."""
        return await self._adoption.attach(order)

    async def collect_evidence(self, launch_id: str, progress: Progress) -> Path:
        """Everything about a hang, into a new folder."""
        watch = self._sup.find(launch_id)
        tools = await self._sup.host(watch.host)
        view = self._sup.board.launches.get(watch.launch_id)
        if view is None:
            raise NotFoundError(f"no launch {launch_id}")
        progress("its processes")
        pids = [process.pid for process in await tools.launcher.processes(watch.launch_id)]
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(self._parts.clock.wall_s()))
        folder = self._parts.state_folder / "evidence" / f"{watch.launch_id}-at-{stamp}"
        host = self._sup.board.hosts.get(watch.host)
        secrets = await asyncio.to_thread(self._sup.places.values_at_hand, watch.launch_id)
        return await collect_evidence(
            tools.transport, pids, view, host, watch.intake.spool, folder, progress, secrets=tuple(secrets.values())
        )

    def _the_desk(self) -> HostDesk:
        if self._desk is None:
            raise NotFoundError("hosts over SSH are not set up in this console")
        return self._desk


def _summary(profile: Profile) -> str:
    return profile.description or " + ".join(part for part in (profile.model, profile.draft_model) if part)
