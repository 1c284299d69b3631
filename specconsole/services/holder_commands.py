"""What a client may ask about who holds a host's ports and GPUs. Part of `services.commands.Commands`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from specconsole.core.hardware.holders import Holder, HoldersPicture
from specconsole.ports import HardwareTools
from specconsole.services.holders import Evicted, HostHolders, Told
from specconsole.services.launch_view import view_of_record
from specconsole.services.supervisor import HostTools, Supervisor


class HolderCommands:
    """For a supervisor's hosts."""

    def __init__(self, supervisor: Supervisor, hardware: HardwareTools) -> None:
        self._sup = supervisor
        self._hardware = hardware

    async def look(self, host: str, *, port: int | None = None, gpu: int | None = None) -> HoldersPicture:
        """Who holds this port, this GPU, or any of the host's; changes nothing."""
        return await (await self._of(host)).look(port=port, gpu=gpu)

    async def one(self, host: str, pid: int) -> Holder:
        """That process. Raises RefusedError when it holds neither port nor GPU."""
        return await (await self._of(host)).one(pid)

    async def evict(self, host: str, picked: Holder, typed: str, told: Told, *, grace_s: float = 10.0) -> Evicted:
        """Ends one process that a person has picked, and confirmed by typing its pid or name."""
        self._sup.may_change(host)
        return await (await self._of(host)).evict(picked, typed, told, grace_s=grace_s)

    async def _of(self, host: str) -> HostHolders:
        tools = await self._sup.host(host)
        return HostHolders(tools.transport, self._hardware, partial(self._owners, tools))

    async def _owners(self, tools: HostTools, launch_ids: Sequence[str]) -> Mapping[str, tuple[str, str, bool]]:
        """From the launch folders of this account: another account's launches stay without an owner's name."""
        found = {}
        for record in await tools.launcher.observe_some(launch_ids):
            view = view_of_record(record, tools.name, self._sup.parts.us)
            found[record.launch_id] = (view.name, view.owner, view.ours)
        return found
