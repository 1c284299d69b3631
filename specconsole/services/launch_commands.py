"""What a client may ask about launches: start, stop, relaunch, forget. Part of `services.commands.Commands`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from specconsole.core.launching import lifecycle
from specconsole.core.launching.command import build_argv, override, profile_of
from specconsole.core.launching.model_files import Model
from specconsole.core.launching.needs import Needs, needs_of, passes_with_time
from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.launching.stopping import StopEvent
from specconsole.errors import BadInputError, ConsentNeededError, NotFoundError, RefusedError, SpecconsoleError
from specconsole.services.commands import LaunchOrder, StopPlan
from specconsole.services.launch import LaunchWatch
from specconsole.services.ordering import order_spec, refuse
from specconsole.services.preflight import Preflight
from specconsole.services.secret_places import secret_values
from specconsole.services.supervisor import HostTools, Supervisor

Told = Callable[[str], None]
ToldStop = Callable[[StopEvent], None]


_HELP_AT_CHECK_S = 120.0
_HELP_AT_LAUNCH_S = 5.0
"""A start does not wait for a `--help` that imports torch: the built-in list serves, and `check` asks for the real
one."""


def _quiet(text: str) -> None:
    del text


def _unheard(finding: Finding) -> None:
    del finding


class LaunchCommands:
    """Starts and ends servers for a supervisor's clients."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._sup = supervisor
        self._parts = supervisor.parts
        self._ports = asyncio.Lock()
        self._agreed: set[str] = set()
        """Profiles whose key may go as an argument, as the person at this console said."""

    def _may_change(self, host: str) -> None:
        self._sup.may_change(host)

    # ---------------------------------------------------------------- start

    async def launch(self, order: LaunchOrder, told: Told = _quiet) -> str:
        """Starts one server; returns its id as soon as its process is recorded on the host."""
        self._may_change(order.host)
        profile = (await asyncio.to_thread(self._parts.read_profile, order.profile)).on(order.host)
        return await self.launch_profile(profile, order, told)

    async def launch_profile(
        self, profile: Profile, order: LaunchOrder, told: Told = _quiet, *, stop_first: str = ""
    ) -> str:
        """The same with a profile that need not stand in a file; `stop_first` is a launch to stop before."""
        self._may_change(order.host)
        if order.allow_key_argument or profile.name in self._agreed:
            profile = replace(profile, allow_key_argument=True)
        # Before the stop: a server that could not be started again stays.
        build_argv(override(profile, order.overrides), profile.port)
        tools = await self._sup.host(order.host)
        secrets = await asyncio.to_thread(secret_values, profile.secrets, profile.source, commands=True)
        if stop_first and self._sup.find(stop_first).state not in lifecycle.ENDED:
            await self.stop(stop_first, told)
        return await self._launch(profile, order, secrets, tools, told)

    async def _launch(
        self,
        profile: Profile,
        order: LaunchOrder,
        secrets: Mapping[str, str],
        tools: HostTools,
        told: Told,
    ) -> str:
        # One at a time: two launches of this console must not be given the same free port.
        async with self._ports:
            us, now_s = self._parts.us, self._parts.clock.wall_s()
            spec = await order_spec(profile, order.overrides, tools.launcher, us, now_s)
            wanted = override(profile, order.overrides)
            needs = needs_of(wanted, spec.port, Model(), Model(), None)
            if order.preflight or order.when_free:
                told(f"{profile.name}: looking at {tools.name} before the start")
                findings, needs = await self._look_for_start(wanted, spec, tools, told, when_free=order.when_free)
                for finding in findings if order.preflight else ():
                    if finding.severity == "warning":
                        told(f"{profile.name}: {finding.text}")
                refuse(findings if order.preflight else (), tools.name)
            spec = replace(
                spec, needs=needs.words(), when_free=order.when_free, look_every_s=max(0.1, order.look_every_s)
            )
            # Of a launch that waits, the memory at its start is not known now.
            keeper = None if order.when_free else tools.memory
            memory = await keeper.look("before-launch") if keeper is not None else None
            await asyncio.to_thread(self._sup.places.remember, spec.launch_id, spec.secret_places)
            record = await tools.launcher.start(spec, secrets)
        if keeper is not None:
            await keeper.keep(record.folder, memory)
        if order.when_free:
            for note in needs.notes:
                told(f"{profile.name}: {note}")
            named = ", ".join(record.waiting.needs) if record.waiting is not None else f"port {spec.port}"
            told(f"{profile.name}: queued as {spec.launch_id} on {tools.name}, until free: {named}")
        else:
            told(f"{profile.name}: started as {spec.launch_id} on {tools.name}, port {spec.port}")
        self._sup.watch(tools, record, secrets)
        await self._sup.indexed(record, tools.name)
        return spec.launch_id

    async def _look_for_start(
        self, wanted: Profile, spec: LaunchSpec, tools: HostTools, told: Told, *, when_free: bool
    ) -> tuple[tuple[Finding, ...], Needs]:
        """What stands against the start, without what may pass while it waits, and what must be free for it."""
        if self._parts.preflight is None:
            needs = needs_of(wanted, spec.port, Model(), Model(), None)
            findings = await tools.launcher.preflight(spec)
            return tuple(one for one in findings if not (when_free and passes_with_time(one, needs))), needs
        preflight = Preflight(tools.transport, tools.launcher, self._parts.preflight, wanted, spec)
        findings = await preflight.run(_unheard, told, help_limit_s=_HELP_AT_LAUNCH_S)
        needs = preflight.needs()
        if when_free:
            findings = tuple(one for one in findings if not passes_with_time(one, needs))
            findings = (*preflight.never_free(), *findings)
        return findings, needs

    def agree_to_key_argument(self, profile: str) -> None:
        """The person agrees that this profile's key goes as an argument, as long as this console runs."""
        self._agreed.add(profile)

    async def preflight(
        self, order: LaunchOrder, found: Callable[[Finding], None] = _unheard, told: Told = _quiet
    ) -> tuple[Finding, ...]:
        """What stands against a start, without starting, gravest first; `found` gets each finding as it comes in.

        The first look at an environment may take a minute: its server is asked for its flags, and `told` says so.
        """
        profile = (await asyncio.to_thread(self._parts.read_profile, order.profile)).on(order.host)
        asked: tuple[Finding, ...] = ()
        try:
            build_argv(override(profile, order.overrides), profile.port)
        except ConsentNeededError as error:
            # The rest is looked at all the same.
            asked = (Finding("argument", "stop", error.what, error.try_, "key-argument"),)
            profile = replace(profile, allow_key_argument=True)
            found(asked[0])
        tools = await self._sup.host(order.host)
        spec = await order_spec(profile, order.overrides, tools.launcher, self._parts.us, self._parts.clock.wall_s())
        wanted = override(profile, order.overrides)
        return (*asked, *await self._look(wanted, spec, tools, told, _HELP_AT_CHECK_S, found))

    async def _look(
        self,
        profile: Profile,
        spec: LaunchSpec,
        tools: HostTools,
        told: Told,
        help_limit_s: float,
        found: Callable[[Finding], None] = _unheard,
    ) -> tuple[Finding, ...]:
        """`profile` with the overrides in it, `spec` made of it."""
        if self._parts.preflight is None:
            return await tools.launcher.preflight(spec)
        preflight = Preflight(tools.transport, tools.launcher, self._parts.preflight, profile, spec)
        return await preflight.run(found, told, help_limit_s=help_limit_s)

    async def relaunch(self, launch_id: str, overrides: Mapping[str, Any], told: Told = _quiet) -> str:
        """Stops it when it runs, then starts the same with `overrides`; returns the new id."""
        watch = self._sup.find(launch_id)
        self._may_change(watch.host)
        spec = watch.record.spec
        if spec is None:
            raise NotFoundError(f"what launch {launch_id} was made from can't be read", try_="launch its profile")
        tools = await self._sup.host(self._host_of(watch))
        # Before the stop: a server that could not be started again stays.
        places = await asyncio.to_thread(self._places_again, spec, watch.host)
        secrets = await asyncio.to_thread(secret_values, places, f"launch {launch_id}", commands=True)
        if watch.state not in lifecycle.ENDED:
            await self.stop(launch_id, told)
        order = LaunchOrder(spec.profile, watch.host, overrides)
        return await self._launch(replace(profile_of(spec), secrets=places), order, secrets, tools, told)

    def _places_again(self, spec: LaunchSpec, host: str) -> dict[str, str]:
        """Where the secrets of a relaunch come from, as far as this console knows by itself: it started the launch, or
        a profile of its own of that name says so. What the record on the host says is not followed."""
        places = self._sup.places.of(spec.launch_id)
        if not set(spec.secret_names) <= set(places):
            with contextlib.suppress(SpecconsoleError):
                places = dict(self._parts.read_profile(spec.profile).on(host).secrets)
        missing = [name for name in spec.secret_names if name not in places]
        if missing:
            raise BadInputError(
                f"this console does not know where the secret {missing[0]} comes from",
                where=f"launch {spec.launch_id}",
                try_="launch its profile",
            )
        return {name: places[name] for name in spec.secret_names}

    # ---------------------------------------------------------------- stop

    async def stop_plan(self, launch_id: str) -> StopPlan:
        """What a stop would hit."""
        watch = self._sup.find(launch_id)
        tools = await self._sup.host(self._host_of(watch))
        processes = await tools.launcher.processes(watch.launch_id)
        view = self._sup.board.launches.get(watch.launch_id)
        return StopPlan(
            launch_id=watch.launch_id,
            owner=view.owner if view is not None else "",
            ours=view.ours if view is not None else False,
            processes=tuple(one.who for one in processes),
            running_requests=await self._running_requests(watch),
            running_benches=view.running_benches if view is not None else 0,
        )

    async def _running_requests(self, watch: LaunchWatch) -> int | None:
        spec = watch.record.spec
        if spec is None or spec.port is None or watch.state not in ("answers", "not-answering", "stalled"):
            return None
        api = self._parts.apis.get(spec.engine)
        return None if api is None else await api.running_requests(watch.http, spec.reach_address, spec.port)

    async def stop(self, launch_id: str, told: Told = _quiet) -> None:
        """Stops and verifies. Raises SpecconsoleError when something of it survived."""
        last = await self.stop_telling(launch_id, lambda event: told(event.text))
        if last.alive:
            raise SpecconsoleError(
                "not everything ended: " + "; ".join(str(one) for one in last.left_over),
                where=launch_id,
                try_="once more, or as the processes' owner",
            )

    async def stop_telling(self, launch_id: str, told: ToldStop, *, grace_s: float | None = None) -> StopEvent:
        """The same with every event; returns the last one. Cancelling it leaves a server that runs, unmarked."""
        watch = self._sup.find(launch_id)
        self._may_change(watch.host)
        tools = await self._sup.host(self._host_of(watch))
        spec = watch.record.spec
        limit = grace_s if grace_s is not None else (spec.grace_s if spec is not None else 20.0)
        api = self._parts.apis.get(spec.engine) if spec is not None else None
        if api is not None and spec is not None and grace_s is None:
            limit = api.grace_s(limit, spec.settings, loading=watch.state in ("starting", "loading"))
        if tools.memory is not None:
            await tools.memory.look_and_keep(watch.record.folder, "before-stop")
        events = tools.launcher.stop(
            watch.launch_id,
            by=self._parts.us.owner,
            at_s=self._parts.clock.wall_s(),
            grace_s=limit,
            drop_requests=self._dropper(watch),
        )
        last: StopEvent | None = None
        try:
            async for event in events:
                if event.phase == "finished" and tools.memory is not None:
                    missing = await tools.memory.after_stop(watch.record.folder)
                    event = replace(event, text="; ".join((event.text, *missing)))
                last = event
                await watch.note_stop(event)
                told(event)
        except asyncio.CancelledError:
            await asyncio.shield(watch.give_up_stop())
            raise
        assert last is not None
        return last

    def _dropper(self, watch: LaunchWatch) -> Callable[[], Awaitable[str]] | None:
        spec = watch.record.spec
        if spec is None or spec.port is None or watch.state not in ("answers", "not-answering", "stalled"):
            return None
        api = self._parts.apis.get(spec.engine)
        if api is None:
            return None
        port, address = spec.port, spec.reach_address
        return lambda: api.drop_requests(watch.http, address, port)

    async def forget(self, launch_id: str) -> None:
        """Drops an ended launch from the list."""
        watch = self._sup.find(launch_id)
        if watch.state not in lifecycle.ENDED:
            raise RefusedError("it has not ended", where=launch_id, try_="stop it first")
        self._sup.forget(watch.launch_id)

    def _host_of(self, watch: LaunchWatch) -> str:
        view = self._sup.board.launches.get(watch.launch_id)
        if view is None:
            raise NotFoundError(f"no launch {watch.launch_id}")
        return view.host
