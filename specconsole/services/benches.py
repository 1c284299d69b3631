"""Benchmarks for a console's clients: start, watch, find again, cancel; and what was measured so far."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

import msgspec

from specconsole.core.launching.effective import Account, Said
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.measuring.bench_shape import BenchShape
from specconsole.core.measuring.progress import BenchView
from specconsole.core.measuring.result import Result
from specconsole.core.measuring.run_plan import BenchOrder
from specconsole.core.measuring.speeds import speeds_seen
from specconsole.core.measuring.table_view import progress_text, results_view
from specconsole.errors import BadInputError, NotFoundError, SpecconsoleError, TransportError
from specconsole.ports import BenchLauncher, HttpClient, Transport
from specconsole.services.bench_folder import RunFolder, find_folder, remove_folder
from specconsole.services.bench_log import LogPart, log_part, no_log
from specconsole.services.bench_parts import BenchParts
from specconsole.services.bench_start import (
    NoPythonError,
    Prepared,
    find_python,
    prepare,
    run_files,
    run_spec,
    shape_of,
)
from specconsole.services.bench_store import BenchStore, Choice
from specconsole.services.bench_target import (
    Target,
    has_metrics,
    model_name,
    parse_url,
    target_of_launch,
    target_of_url,
)
from specconsole.services.bench_tunnel import open_tunnel
from specconsole.services.bench_watch import BenchWatch
from specconsole.services.ordering import new_launch_id
from specconsole.services.supervisor import Supervisor

_LOOK_S = 10.0
STOP_GRACE_S = 15.0
LOCAL = "local"
Heard = Callable[[BenchView], None]


@dataclass(slots=True)
class _Running:
    watch: BenchWatch
    task: asyncio.Task[None]


class Benches:
    """`async with Benches(...)`; leaving the block ends watching, never a run (but one through a tunnel of ours)."""

    def __init__(self, supervisor: Supervisor, parts: BenchParts) -> None:
        self._sup = supervisor
        self._parts = parts
        self._clock = supervisor.parts.clock
        self.store = BenchStore(supervisor.parts.store) if supervisor.parts.store is not None else None
        self._running: dict[str, _Running] = {}
        self._group: asyncio.TaskGroup | None = None
        self._choice: Choice | None = None
        """None before it was read."""
        self._stored: tuple[Result, ...] | None = None
        """As the store has them; None before they were read, or after it changed."""
        self._tasks: list[asyncio.Task[None]] = []
        self._heard: list[Heard] = []

    async def __aenter__(self) -> Benches:
        self._group = asyncio.TaskGroup()
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None
        for task in (*self._tasks, *(one.task for one in self._running.values())):
            task.cancel()
        await self._group.__aexit__(kind, error, trace)

    def begin_looking(self) -> None:
        """Keeps looking for runs until the block is left."""
        assert self._group is not None
        self._tasks.append(self._group.create_task(self.keep_looking(), name="benches"))

    # ---------------------------------------------------------------- before

    async def prepare_launch(self, launch: str, order: BenchOrder, *, model: str | None = None) -> tuple[Prepared, str]:
        """Looks at everything, starts nothing; the second value is the host. Raises what stands against it."""
        watch = self._sup.find(launch)
        await watch.account.settled()
        view = self._sup.board.launches[watch.launch_id]
        secrets = await asyncio.to_thread(self._sup.places.values_at_hand, watch.launch_id)
        target = target_of_launch(watch, view, secrets)
        return await self._prepare(target, watch.http, order, model), watch.host

    async def prepare_url(
        self, url: str, host: str, order: BenchOrder, *, key: str = "", model: str | None = None,
        ca_pem: str | None = None,
    ) -> Prepared:  # fmt: skip
        """The same for any server that `host` can reach by `url`; `ca_pem` stands for the system's authorities."""
        tools = await self._sup.host(host)
        async with AsyncExitStack() as stack:
            plain = tools.http
            if parse_url(url)[0] == "https":
                plain = tools.http.with_tls(ca_pem)
                stack.push_async_callback(plain.aclose)
            target = await target_of_url(url, plain, key, ca_pem)
            http = plain.with_key(key) if key else plain
            api = self._sup.parts.apis.get(target.engine)
            if api is not None:
                said = await api.account(http, target.address, target.port, Said())
                target = replace(target, account=Account(said))
            return await self._prepare(target, http, order, model)

    async def _prepare(self, target: Target, http: HttpClient, order: BenchOrder, model: str | None) -> Prepared:
        workload, prompts = await asyncio.to_thread(self._parts.read_workload, order.workload)
        name = await model_name(http, target, model)
        metrics = await has_metrics(http, target)
        seen = speeds_seen(await self.results(), target.name, workload.name)
        return await asyncio.to_thread(
            prepare, target, order, workload, prompts, model=name, metrics=metrics, speeds=seen
        )

    # ---------------------------------------------------------------- run

    async def start(self, prepared: Prepared, host: str, *, from_here: bool = False) -> str:
        """Starts the run on `host`, or from this machine through the tunnel; returns its id.

        Raises NoPythonError when the host can't run it.
        """
        self._may_change(host)
        tools = await self._sup.host(host)
        gpus = await self._parts.look_at_gpus(tools.transport)
        bench_id = new_launch_id(self._clock.wall_s())
        shape = shape_of(prepared, bench_id, server_host=host, gpu_names=gpus.names, tunnel=from_here and host != LOCAL)
        zipped = await asyncio.to_thread(self._parts.loadgen_zip)
        target = prepared.target
        tunnel = AsyncExitStack()
        address, port, transport = target.address, target.port, tools.transport
        if from_here and host != LOCAL:
            address, port = "127.0.0.1", await tunnel.enter_async_context(open_tunnel(transport, address, port))
            transport = (await self._sup.host(LOCAL)).transport
        try:
            own = self._parts.python if transport.host == LOCAL else ""
            python = await find_python(transport, target, own)
            launcher = self._parts.launcher(transport)
            files = await asyncio.to_thread(
                run_files,
                prepared,
                zipped,
                address=address,
                port=port,
                log_file=shape.log_path,
                gpus=bool(gpus.names) and not shape.conditions.through_tunnel,
            )
            folder = await launcher.prepare(bench_id, files)
            us = self._sup.parts.us
            spec = run_spec(shape, folder, python, owner=us.owner, client_id=us.client_id, now_s=self._clock.wall_s())
            record = await launcher.start(spec, {})
        except BaseException:
            await tunnel.aclose()
            raise
        self._begin(record, shape, transport, launcher, tunnel)
        return bench_id

    def _may_change(self, host: str) -> None:
        self._sup.may_change(host)

    def _begin(
        self,
        record: LaunchRecord,
        shape: BenchShape,
        transport: Transport,
        launcher: BenchLauncher,
        tunnel: AsyncExitStack | None = None,
    ) -> BenchWatch:
        assert self._group is not None
        watch = BenchWatch(
            record, shape, transport, launcher, self._parts, self.store, self._clock, self._changed, self.publish
        )
        task = self._group.create_task(self._run(watch, tunnel or AsyncExitStack()), name=f"bench {watch.bench_id}")
        self._running[watch.bench_id] = _Running(watch, task)
        self._changed(watch.view)
        return watch

    async def _run(self, watch: BenchWatch, tunnel: AsyncExitStack) -> None:
        async with tunnel:
            try:
                await watch.run()
            except SpecconsoleError as error:
                # The store's disk is full: the run's own folder keeps everything, and it is read again later.
                watch.view = replace(watch.view, state="failed", problem=str(error))
        self._changed(watch.view)
        with suppress(SpecconsoleError):
            await self.publish(changed=True)

    async def wait(self, bench_id: str, told: Heard | None = None) -> Result:
        """The result once the run is over. Cancelling this cancels nothing but the waiting."""
        one = self._one(bench_id)
        if told is not None:
            self._heard.append(told)
        try:
            await asyncio.wait([one.task])
        finally:
            if told is not None:
                self._heard.remove(told)
        if one.watch.view.problem and not one.watch.result.points:
            raise SpecconsoleError(one.watch.view.problem, where=one.watch.shape.name)
        return one.watch.result

    async def cancel(self, bench_id: str) -> Result:
        """Ends a run and proves it; what was measured is kept."""
        one = self._one(bench_id)
        self._may_change(one.watch.view.host)
        one.watch.stopping = True
        launcher = one.watch.launcher
        events = launcher.stop(bench_id, by=self._sup.parts.us.owner, at_s=self._clock.wall_s(), grace_s=STOP_GRACE_S)
        last = None
        async for event in events:
            last = event
        if last is not None and last.left_over:
            raise SpecconsoleError(f"not everything of it ended: {last.left_over[0]}", where=bench_id)
        await asyncio.wait([one.task])
        return one.watch.result

    def _one(self, bench_id: str) -> _Running:
        if bench_id in self._running:
            return self._running[bench_id]
        begins = [one for key, one in self._running.items() if key.startswith(bench_id)]
        if len(begins) == 1:
            return begins[0]
        raise NotFoundError(f"no run {bench_id}", try_="specconsole results list")

    @property
    def views(self) -> tuple[BenchView, ...]:
        """Of this console's runs, the oldest first."""
        return tuple(one.watch.view for one in self._running.values())

    # ---------------------------------------------------------------- found again

    async def look(self, host: str, *, follow: bool = True) -> tuple[str, ...]:
        """Takes up runs on a host that this console doesn't know: running ones are followed (unless `follow` is
        False), ended ones are finished. Returns the ids taken up; wait for them with `wait`."""
        tools = await self._sup.host(host)
        launcher = self._parts.launcher(tools.transport)
        stored = await self.store.known() if self.store is not None else {}
        done = {key for key, ended in stored.items() if ended != "unfinished"}
        new = [one for one in await launcher.list_ids() if one not in done and one not in self._running]
        taken: list[str] = []
        for record in await launcher.observe_some(new):
            shape = _shape_in(record)
            if shape is None or (record.alive and not follow):
                continue
            self._begin(record, shape, tools.transport, launcher)
            taken.append(record.launch_id)
        return tuple(taken)

    async def keep_looking(self) -> None:
        """For a window: other consoles' runs appear, and what ended meanwhile is finished."""
        with suppress(SpecconsoleError):
            await self.publish()
        while True:
            for host in self._sup.open_hosts:
                with suppress(SpecconsoleError, TimeoutError, TransportError):
                    await self.look(host)
            await self._clock.sleep(_LOOK_S)

    # ---------------------------------------------------------------- results

    async def results(self) -> tuple[Result, ...]:
        """Stored ones and those that are being measured, the oldest first."""
        if self._stored is None:
            self._stored = await self.store.results() if self.store is not None else ()
        stored = {r.result_id: r for r in self._stored}
        for key, one in self._running.items():
            if not one.watch.view.over and one.watch.result.points:
                stored[key] = one.watch.result
        return tuple(sorted(stored.values(), key=lambda r: r.started_at_s))

    async def choice(self) -> Choice:
        """What is pinned and hidden: by whoever chose last, in whichever window."""
        if self._choice is None:
            self._choice = await self.store.choice() if self.store is not None else Choice()
        return self._choice

    async def pin(self, result_id: str | None) -> None:
        """Compares with this result from now on."""
        await self._choose(replace(await self.choice(), baseline_id=result_id))

    async def hide(self, result_ids: frozenset[str]) -> None:
        """Shows all but these from now on."""
        await self._choose(replace(await self.choice(), hidden=result_ids))

    async def _choose(self, choice: Choice) -> None:
        self._choice = choice
        if self.store is not None:
            await self.store.put_choice(choice, self._clock.wall_s())

    async def log_part(self, launch_id: str, start: int, stop: int) -> LogPart:
        """What a launch's log said between two sizes of it. Raises SpecconsoleError."""
        view = self._sup.board.launches.get(launch_id)
        if view is None or not view.log_path:
            raise no_log(launch_id)
        tools = await self._sup.host(view.host)
        secrets = await asyncio.to_thread(self._sup.places.values_at_hand, launch_id)
        return await log_part(tools.transport, launch_id, view.log_path, start, stop, secrets.values())

    def workload_names(self) -> Sequence[str]:
        """Those that there are."""
        return self._parts.workload_names()

    async def note(self, result_id: str, text: str) -> None:
        """Stands with the result from now on."""
        if self.store is not None:
            await self.store.add_note(result_id, text, self._clock.wall_s())
            await self.publish(changed=True)

    async def folders(self, result_id: str, hosts: Sequence[str]) -> list[RunFolder]:
        """Where of these hosts the run's files are. Raises SpecconsoleError, TimeoutError."""
        found = []
        for host in dict.fromkeys(hosts):
            tools = await self._sup.host(host)
            one = await find_folder(tools.transport, self._parts.launcher(tools.transport), result_id)
            found += [one] if one is not None else []
        return found

    async def remove(self, result_id: str, folders: Sequence[RunFolder] = ()) -> None:
        """Removes a result for good, and the run's files in `folders`. Raises SpecconsoleError."""
        for one in folders:
            self._may_change(one.host)
            await remove_folder((await self._sup.host(one.host)).transport, one)
        if self.store is not None:
            await self.store.remove(result_id, self._clock.wall_s())
            await self.publish(changed=True)

    async def requests(self, result_id: str) -> Mapping[int, Sequence[Mapping[str, Any]]]:
        """The request lines of a result, by index of the point. Raises NotFoundError."""
        found = next((r for r in await self.results() if r.result_id == result_id), None)
        if found is None or self.store is None:
            raise NotFoundError(f"no result {result_id}")
        return await self.store.requests(found)

    async def publish(self, *, changed: bool = False) -> None:
        """Puts the results on the board. `changed`: the store holds others than before."""
        if changed:
            self._stored = None
        found = await self.results()
        board, choice = self._sup.board, await self.choice()
        board.publish_measured(found, choice.baseline_id, choice.hidden)
        shown = tuple(result for result in found if result.result_id not in choice.hidden)
        board.publish_results(results_view(shown, self.views, choice.baseline_id))

    def _changed(self, view: BenchView) -> None:
        board = self._sup.board
        if board.results.rows:
            # Rows change with a point, the line below them every second.
            note = "; ".join(progress_text(v) for v in self.views if not v.over) or board.results.note
            board.publish_results(board.results._replace(note=note))
        else:
            board.publish_results(results_view((), self.views))
        if view.launch_id in board.launches:
            running = sum(v.launch_id == view.launch_id and not v.over for v in self.views)
            board.publish_launch(replace(board.launches[view.launch_id], running_benches=running))
        for heard in list(self._heard):
            heard(view)


def _shape_in(record: LaunchRecord) -> BenchShape | None:
    """None for a folder that is half written or from another version."""
    settings: Mapping[str, Any] = record.spec.settings if record.spec is not None else {}
    try:
        return msgspec.convert(settings.get("bench"), BenchShape, strict=False)
    except msgspec.ValidationError:
        return None


__all__ = ["BadInputError", "Benches", "NoPythonError"]
