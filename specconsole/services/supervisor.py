"""Owns everything that lives: hosts, watched launches, their tasks. Runs under the window and headless alike.

Leaving the block ends watching, never a server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.probe_pattern import probes_of
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.server_key import server_key
from specconsole.core.records import Store
from specconsole.core.views.launch import LaunchView
from specconsole.errors import NotFoundError, RefusedError, SpecconsoleError, TransportError
from specconsole.ports import Clock, HttpClient, Launcher, ServerApi, Transport
from specconsole.services.account_watch import AccountWatch
from specconsole.services.accounts import Accounts
from specconsole.services.answers import Answers
from specconsole.services.board import Board
from specconsole.services.first_answer import FirstAnswer
from specconsole.services.gpu_memory import MemoryKeeper
from specconsole.services.known_places import KnownPlaces
from specconsole.services.launch import LaunchWatch
from specconsole.services.launch_view import WhoWeAre
from specconsole.services.log_intake import LogIntake
from specconsole.services.preflight import PreflightTools
from specconsole.services.recorder import Recorder

_DISCOVER_S = 3.0
_RETRY_S = 2.0
_ENDED_SHOWN = 50
"""Ended launches that are listed; older folders stay on the host."""


@dataclass(frozen=True, slots=True)
class HostTools:
    """What is needed to work on one host; `wiring` makes it."""

    name: str
    transport: Transport
    launcher: Launcher
    http: HttpClient
    background: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = ()
    """What runs as long as the host is open (the link's keeper, the sampler)."""
    memory: MemoryKeeper | None = None
    """Writes GPU memory down with each launch."""


OpenHost = Callable[[str], Awaitable[HostTools]]
Found = Callable[[HostTools, Sequence[LaunchRecord]], Awaitable[None]]
"""Told of launches that were found on a host, before anybody waits for them."""


@dataclass(slots=True)
class Parts:
    """What a supervisor is made of."""

    clock: Clock
    us: WhoWeAre
    state_folder: Path
    """Local; spools and checkpoints."""
    open_host: OpenHost
    apis: Mapping[str, ServerApi]
    read_profile: Callable[[str], Profile]
    profile_names: Callable[[], Iterable[str]]
    store: Store | None = None
    read_only: bool = False
    board: Board = field(default_factory=Board)
    read_only_hosts: frozenset[str] = frozenset()
    """Hosts, by name and by address, on which this console may change nothing (hosts.toml)."""
    preflight: PreflightTools | None = None
    """None: only the launcher's own looks are made before a start."""


class Supervisor:
    """`async with Supervisor(parts) as sup`; `sup.board` and `sup.commands` are for clients."""

    def __init__(self, parts: Parts, hosts: Iterable[str] = ("local",)) -> None:
        self.parts = parts
        self.board = parts.board
        self._recorder = Recorder(parts.store, parts.board, parts.clock)
        self._names = tuple(hosts)
        self._hosts: dict[str, HostTools] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self.watches: dict[str, LaunchWatch] = {}
        self.places = KnownPlaces(parts.state_folder / "secret-places")
        self.on_found: list[Found] = []
        self._forgotten: set[str] = set()
        self._known: dict[str, set[str]] = {}
        """Folders that were looked at, by host."""
        self._looping: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._group: asyncio.TaskGroup | None = None
        self._discovered: dict[str, asyncio.Event] = {}

    async def __aenter__(self) -> Supervisor:
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        for name in self._names:
            self._loop(name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None
        for task in list(self._tasks):
            task.cancel()
        try:
            await self._group.__aexit__(kind, error, trace)
        finally:
            for tools in self._hosts.values():
                await tools.http.aclose()
                await tools.transport.aclose()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        assert self._group is not None
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ---------------------------------------------------------------- hosts

    def why_no_change(self, host: str) -> str:
        """Why nothing may be changed on a host from here; "" when it may."""
        if self.parts.read_only:
            return "this console is read-only"
        view = self.board.hosts.get(host)
        read_only = host in self.parts.read_only_hosts or (view is not None and view.read_only)
        return f"{host} is read-only (hosts.toml)" if read_only else ""

    def may_change(self, host: str) -> None:
        """Raises RefusedError where nothing may be changed."""
        if why := self.why_no_change(host):
            try_ = "start it without --read-only" if self.parts.read_only else "change it in hosts.toml"
            raise RefusedError(why, try_=try_)

    async def host(self, name: str) -> HostTools:
        """The tools for a host, opened when first asked for. Raises TransportError."""
        async with self._opening.setdefault(name, asyncio.Lock()):
            if name not in self._hosts:
                self._hosts[name] = await self.parts.open_host(name)
                for work in self._hosts[name].background:
                    self._spawn(work(), f"background {name}")
            return self._hosts[name]

    def opened(self, name: str) -> HostTools | None:
        """The tools of a host that is open; None for another, which is not opened for it."""
        return self._hosts.get(name)

    @property
    def open_hosts(self) -> tuple[str, ...]:
        """Hosts that are open now."""
        return tuple(self._hosts)

    async def add_host(self, name: str) -> None:
        """Opens a host and looks for launches there. Raises TransportError when it can't be opened; nothing stays."""
        await self.host(name)
        if name not in self._names:
            self._names = (*self._names, name)
            self._loop(name)

    def _loop(self, name: str) -> None:
        if name not in self._looping:
            self._looping.add(name)
            self._spawn(self._run_host(name), f"host {name}")

    async def drop_host(self, name: str) -> None:
        """Stops watching a host and everything on it; what runs there goes on."""
        self._names = tuple(other for other in self._names if other != name)
        dropped = [launch_id for launch_id, watch in self.watches.items() if watch.host == name]
        mine = {f"host {name}", f"background {name}", *(f"watch {launch_id}" for launch_id in dropped)}
        ending = [task for task in self._tasks if task.get_name() in mine]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        for launch_id in dropped:
            del self.watches[launch_id]
            self.board.drop_launch(launch_id)
        tools = self._hosts.pop(name, None)
        if tools is not None:
            await tools.http.aclose()
            await tools.transport.aclose()
        self._discovered.pop(name, None)
        self._known.pop(name, None)
        self._looping.discard(name)
        self.board.drop_host(name)

    async def _run_host(self, name: str) -> None:
        found = self._discovered.setdefault(name, asyncio.Event())
        told = ""
        while True:
            try:
                tools = await self.host(name)
                await self._look(tools)
                told = ""
                found.set()
                await self.parts.clock.sleep(self._pace_s(name))
            except (TransportError, TimeoutError) as error:
                for watch in self._on(name):
                    watch.report_link_down()
                told = self._tell_once(name, told, str(error) or "no answer in time")
                await self.parts.clock.sleep(_RETRY_S)
            except SpecconsoleError as error:
                told = self._tell_once(name, told, str(error))
                found.set()
                await self.parts.clock.sleep(_RETRY_S)

    def _tell_once(self, name: str, told: str, text: str) -> str:
        if text != told:
            self.board.tell("note", name, text, self.parts.clock.wall_s())
        return text

    def _on(self, name: str) -> list[LaunchWatch]:
        """Watches on a host that are not over."""
        return [watch for watch in self.watches.values() if watch.host == name and not watch.over]

    def _pace_s(self, name: str) -> float:
        """Seconds until the next look: one short script on the host, for all its launches together."""
        states = {watch.state for watch in self._on(name)}
        if states & {"preparing", "starting", "stopping", "unknown"}:
            return 1.0
        return 2.0 if states else _DISCOVER_S

    async def discovered(self, name: str) -> None:
        """Waits until the launches of a host have been looked for once."""
        await self._discovered.setdefault(name, asyncio.Event()).wait()

    async def _look(self, tools: HostTools) -> None:
        """New folders and the launches that run, in one script; what has ended is not asked for again."""
        now = self._on(tools.name)
        # A host that was only launched on, or asked about one launch, is not searched for others.
        ids = await tools.launcher.list_ids() if tools.name in self._names else ()
        known = self._known.setdefault(tools.name, set())
        new = [one for one in ids if one not in known]
        records = await tools.launcher.observe_some([*new, *(watch.launch_id for watch in now)])
        found = {record.launch_id: record for record in records}
        for watch in now:
            watch.report(found.get(watch.launch_id))
        await self._begin(tools, [found[one] for one in new if one in found])
        known.update(new)
        await self._recorder.index(tools.name, [found[one] for one in new if one in found])
        for heard in self.on_found if new else ():
            await heard(tools, [found[one] for one in new if one in found])

    async def _begin(self, tools: HostTools, records: list[LaunchRecord]) -> None:
        running = [record for record in records if not record.over]
        ended = [record for record in records if record.over][-_ENDED_SHOWN:]
        for record in (*running, *ended):
            if record.launch_id not in self.watches and record.launch_id not in self._forgotten:
                secret = record.spec is not None and record.spec.secret_names
                values = await asyncio.to_thread(self.places.values_at_hand, record.launch_id) if secret else {}
                self.watch(tools, record, values)

    # ---------------------------------------------------------------- launches

    def watch(self, tools: HostTools, record: LaunchRecord, secrets: Mapping[str, str] | None = None) -> LaunchWatch:
        """Begins to watch a launch; a second call for the same one gives the first watch. `secrets`: those whose values
        are known here, masked in its log; the server's key among them goes with every request."""
        known = self.watches.get(record.launch_id)
        if known is not None:
            return known
        spec = record.spec
        engine = spec.engine if spec is not None and spec.engine != "other" else None
        intake = LogIntake(
            tools.transport,
            record.log_path,
            self.parts.state_folder / "spool" / folder_name(tools.name) / record.launch_id,
            self.parts.clock,
            engine=engine,
            secrets=(secrets or {}).values(),
            log_command=spec.log_command if spec is not None else (),
            probes=probes_of(spec.probes) if spec is not None else (),
        )
        intake.launch_age_s = record.age_s
        api = self.parts.apis.get(spec.engine if spec is not None else "other") or self.parts.apis["other"]
        key = server_key(secrets or {}, spec.settings if spec is not None else None)
        http = tools.http.with_key(key) if key else tools.http
        adopted = spec is not None and spec.adopted
        watch = LaunchWatch(
            record,
            tools.launcher,
            intake,
            Answers(tools.launcher, http, api),
            self.board,
            self.parts.clock,
            self.parts.us,
            partial(self._answered, tools.memory),
            AccountWatch(Accounts(tools.transport, self.parts.store, self.parts.clock), api, http, adopted=adopted),
            http,
            FirstAnswer(tools.launcher, self.parts.clock, record, keeps=not self.why_no_change(tools.name)),
        )
        self.watches[record.launch_id] = watch
        watch.publish()
        self._loop(tools.name)
        self._spawn(self._run_watch(watch), f"watch {record.launch_id}")
        return watch

    async def _answered(self, memory: MemoryKeeper | None, watch: LaunchWatch) -> None:
        await self._recorder.answered(watch)
        if memory is not None:
            await memory.look_and_keep(watch.record.folder, "answers")

    async def _run_watch(self, watch: LaunchWatch) -> None:
        spec = watch.record.spec
        if spec is not None:
            past = await self._recorder.past(spec, watch.host)
            watch.past_starts_s = past.took_s
            watch.intake.use_history(past.key, past.history)
        try:
            await watch.run()
            tools = self._hosts.get(watch.host)
            await self._recorder.ended(watch, tools.memory if tools is not None else None)
        except* SpecconsoleError as group:
            # This console can't keep the log (state folder not writable): said, and the others go on.
            watch.trouble(str(group.exceptions[0]))
        finally:
            # Whatever ends the watch: the series is kept with the launch.
            await asyncio.shield(self._recorder.keep_probes(watch))

    async def indexed(self, record: LaunchRecord, host: str) -> None:
        """Puts a launch of this console's into the history, before its console may end."""
        await self._recorder.index(host, [record])

    def forget(self, launch_id: str) -> None:
        """Drops an ended launch from the list; its folder on the host stays."""
        self.watches.pop(launch_id, None)
        self._forgotten.add(launch_id)
        self.board.drop_launch(launch_id)

    def find(self, wanted: str) -> LaunchWatch:
        """A launch by id, by a unique start of its id, or by its profile's name (the newest). Raises NotFoundError."""
        if wanted in self.watches:
            return self.watches[wanted]
        begins = [watch for launch_id, watch in self.watches.items() if launch_id.startswith(wanted)]
        if len(begins) == 1:
            return begins[0]
        named = [
            watch
            for _, watch in sorted(self.watches.items())
            if watch.record.spec is not None and watch.record.spec.profile == wanted
        ]
        running = [watch for watch in named if watch.record.alive]
        if running or named:
            return (running or named)[-1]
        if wanted and begins:
            raise NotFoundError(_several(wanted, begins), try_="more of the id")
        raise NotFoundError(f"no launch {wanted}", try_="specconsole status")

    async def wait(
        self, launch_id: str, until: Callable[[LaunchView], bool], *, timeout_s: float | None = None
    ) -> LaunchView:
        """The launch's view once `until` holds. Raises TimeoutError, NotFoundError when it is no longer watched."""
        async with asyncio.timeout(timeout_s):
            while True:
                view = self.board.launches.get(launch_id)
                if view is None:
                    raise NotFoundError(f"no launch {launch_id}")
                if until(view):
                    return view
                await self.parts.clock.sleep(0.05)


def _several(wanted: str, watches: Sequence[LaunchWatch]) -> str:
    """Names the launches whose ids begin so, the newest first."""
    ordered = sorted(watches, key=lambda watch: watch.launch_id, reverse=True)
    named = [
        f"{watch.launch_id} ({watch.record.spec.profile if watch.record.spec is not None else '?'}, {watch.state})"
        for watch in ordered[:6]
    ]
    more = f" and {len(ordered) - 6} more" if len(ordered) > 6 else ""
    return f"{len(ordered)} launches begin with {wanted}: {', '.join(named)}{more}"


def folder_name(host: str) -> str:
    """A host's name as a folder's: `user@host` and ports keep apart, separators can't lead out."""
    return "".join(c if c.isalnum() or c in "-_.@" else f"%{ord(c):02x}" for c in host).lstrip(".") or "_"
