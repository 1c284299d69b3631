"""Keeps one host's hardware figures on the board: a stream of the GPU tool, a sampling shell, short looks now and then.

Owns the hardware fields of the host's view; the link's state belongs to whoever holds the link. While the link is
down it waits and tries again; a tool that has trouble is said once and asked seldomer. Nothing of the host ends when
this ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from specconsole.core.hardware.gpu import GpuTick, GpuToolError
from specconsole.core.hardware.gpu_owners import OWNERS_SH, KnownLaunch, Owners, parse_owners
from specconsole.core.hardware.host_picture import SHM, HostPicture
from specconsole.core.hardware.kernel_log import KERNEL_LOG_SH, parse_kernel_log
from specconsole.core.hardware.mounts import parse_df
from specconsole.core.hardware.pace import Pace
from specconsole.core.views.host import HostView
from specconsole.errors import SpecconsoleError, TransportError
from specconsole.ports import Clock, GpuProbe, HardwareTools, HostProbe, Transport
from specconsole.services.board import Board

HOST_EVERY_S = 2
_PROCESSES_S = 30.0
"""While nothing moves; a change of memory in the stream asks at once, at most every `_MOVING_S`."""
_MOVING_S = 5.0
_MOVED_BYTES = 256 << 20
_FILESYSTEMS_S = 30.0
_FAULTS_S = 60.0
_FACTS_S = 300.0
_SILENT_S = 10.0
_LINK_S = 2.0
"""While a link is down every call fails at once; figures should be back soon after it is up."""
_SLOW_S = 4.0
_MOST_PIDS = 256


class HostSampler:
    """One host's sampler; `run` goes on until it is cancelled."""

    def __init__(
        self,
        transport: Transport,
        board: Board,
        clock: Clock,
        tools: HardwareTools,
        *,
        gpu_every_s: int = 1,
        launches: Callable[[], Collection[KnownLaunch]] | None = None,
    ) -> None:
        self._transport = transport
        self._board = board
        self._clock = clock
        self._tools = tools
        self._gpu_every_s = gpu_every_s
        self._launches = launches or self._launches_on_board
        self._paths: list[str] = []
        self._look = asyncio.Event()
        self._lost: set[str] = set()
        self._told_kernel = False
        self._memory_then: dict[str, int | None] = {}
        self._looked_s = float("-inf")
        self._gap_s = _MOVING_S
        self.picture = HostPicture()

    @property
    def host(self) -> str:
        return self._transport.host

    def watch(self, path: str) -> None:
        """Also tells the disk under this absolute path (a model's folder), and how fast it is read."""
        if path.startswith("/") and path not in self._paths:
            self._paths.append(path)
            self.look_now()

    def look_now(self) -> None:
        """Asks for processes and disks soon: something was just started or stopped."""
        self._look.set()

    async def run(self) -> None:
        """Samples for ever. Errors of tools and of the link become notes and pauses, bugs propagate."""
        host_probe = self._tools.host_probe(self._transport)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._host_loop(host_probe))
            group.create_task(self._gpu_loop())

    async def _host_loop(self, probe: HostProbe) -> None:
        pace = Pace(least_s=1.0, most_s=30.0)
        while True:
            pause_s = _LINK_S
            try:
                async with contextlib.aclosing(probe.readings(HOST_EVERY_S)) as readings:
                    async for counters in readings:
                        pace.well()
                        self.picture.note("host", "")
                        self.picture.saw_counters(counters, probe.mounts())
                        if not self._ticking():
                            self._publish()
            except TransportError:
                pass  # the link's owner says so
            except SpecconsoleError as error:
                self.picture.note("host", f"no CPU and memory figures: {error}")
                self._publish()
                pause_s = pace.badly()
            await self._clock.sleep(pause_s)

    async def _gpu_loop(self) -> None:
        pace = Pace(least_s=2.0, most_s=300.0)
        while True:
            pause_s = _LINK_S
            try:
                probe = await self._tools.find_gpu_probe(self._transport)
                if isinstance(probe, str):
                    self._no_gpus(probe)
                    await self._slow_loop(None)
                    continue
                self.picture.gpu_tool, self.picture.source_note = probe.tool, probe.note
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._slow_loop(probe))
                    await self._stream(probe, pace)
            except* TransportError:
                pass
            except* TimeoutError:
                self._no_gpus("looking for a GPU tool took too long")
                pause_s = pace.badly()
            except* GpuToolError as errors:
                self._tool_trouble(errors.exceptions)
                pause_s = pace.badly()
            except* SpecconsoleError as errors:
                self._no_gpus(str(errors.exceptions[0]))
                pause_s = pace.badly()
            await self._clock.sleep(pause_s)

    async def _stream(self, probe: GpuProbe, pace: Pace) -> None:
        async with contextlib.aclosing(probe.ticks(self._gpu_every_s)) as ticks:
            async for tick in ticks:
                pace.well()
                self.picture.gpu_note = ""
                now_s = self._clock.monotonic_s()
                self.picture.gpus.saw_tick(tick, now_s)
                if now_s - self._looked_s >= self._gap_s and self._memory_moved(tick):
                    self.look_now()
                self._publish()

    def _ticking(self) -> bool:
        """Whether the next GPU tick will publish in a moment anyway."""
        last_s = self.picture.gpus.as_of_s
        return last_s is not None and self._clock.monotonic_s() - last_s < 2 * self._gpu_every_s

    def _memory_moved(self, tick: GpuTick) -> bool:
        """Whether a process came, went, grew or shrank since the last look at them."""
        now = {gpu.uuid: gpu.memory_used_bytes for gpu in tick.gpus}
        return now.keys() != self._memory_then.keys() or any(
            used is not None and (then := self._memory_then[uuid]) is not None and abs(used - then) >= _MOVED_BYTES
            for uuid, used in now.items()
        )

    async def _slow_loop(self, probe: GpuProbe | None) -> None:
        """Short looks one after the other, so that they never take more than one channel."""
        due = {"processes": 0.0, "filesystems": 0.0, "faults": 0.0, "facts": 0.0}
        while True:
            self._look.clear()
            now = self._clock.monotonic_s()
            if probe is not None and now >= due["processes"]:
                due["processes"] = now + await self._timed(
                    self._processes(probe), _PROCESSES_S, f"{probe.tool}'s process list"
                )
            if probe is not None and now >= due["facts"]:
                due["facts"] = now + await self._timed(self._facts(probe), _FACTS_S, f"{probe.tool}'s topology")
            if now >= due["filesystems"]:
                due["filesystems"] = now + await self._timed(self._filesystems(), _FILESYSTEMS_S, "df")
            if probe is not None and now >= due["faults"]:
                due["faults"] = now + await self._timed(self._faults(), _FAULTS_S, "dmesg")
            self._publish()
            pause = max(1.0, min(due[name] for name in due if probe is not None or name == "filesystems") - now)
            if await self._pause(pause):
                due["processes"] = due["filesystems"] = 0.0

    async def _pause(self, seconds: float) -> bool:
        """Waits; True when somebody asked to look now."""
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        asked = asyncio.ensure_future(self._look.wait())
        try:
            await asyncio.wait({sleeping, asked}, return_when=asyncio.FIRST_COMPLETED)
            return asked.done()
        finally:
            sleeping.cancel()
            asked.cancel()

    async def _timed(self, look: Awaitable[None], every_s: float, name: str) -> float:
        """Runs one look; returns the pause until the next one, long for a slow or failing tool."""
        began = self._clock.monotonic_s()
        try:
            await look
        except TransportError:
            raise
        except TimeoutError:
            self.picture.note(name, f"{name} does not answer (a dead network mount, a hung driver?)")
            return every_s * 10
        except SpecconsoleError as error:
            self.picture.note(name, f"{name}: {error}")
            return every_s * 6
        took_s = self._clock.monotonic_s() - began
        pause = max(every_s, 20 * took_s)
        slow = took_s > 2 and pause > every_s
        self.picture.note(name, f"{name} takes {took_s:.0f} s: asked every {pause:.0f} s" if slow else "")
        return pause

    async def _processes(self, probe: GpuProbe) -> None:
        began_s = self._looked_s = self._clock.monotonic_s()
        self._gap_s = 10 * _PROCESSES_S  # for a look that fails
        self._memory_then = self.picture.gpus.memory_used()
        processes = await probe.processes()
        self._gap_s = max(_MOVING_S, 20 * (self._clock.monotonic_s() - began_s))
        pids = sorted({process.pid for process in processes if process.pid is not None})[:_MOST_PIDS]
        self.picture.gpus.saw_processes(processes, await ask_owners(self._transport, pids))

    async def _facts(self, probe: GpuProbe) -> None:
        self.picture.saw_facts(await probe.facts())

    async def _filesystems(self) -> None:
        asked = [SHM, *dict.fromkeys([*self._paths, *self._model_paths()])]
        answer = await self._transport.run(["df", "-kP", "--", *asked], timeout_s=5.0)
        self.picture.saw_filesystems(asked, parse_df(answer.stdout.decode("utf-8", "replace")))

    async def _faults(self) -> None:
        answer = await self._transport.run_sh(KERNEL_LOG_SH, timeout_s=20.0, max_output_bytes=1024 * 1024)
        text = answer.stdout.decode("utf-8", "replace")
        if text.startswith("#unreadable") and not self._told_kernel:
            self._told_kernel = True
            self._board.tell(
                "note", self.host, "kernel messages can't be read by this account: no Xid", self._clock.wall_s()
            )
        self.picture.gpus.saw_faults(parse_kernel_log(text))

    def _tool_trouble(self, errors: Sequence[BaseException]) -> None:
        for error in errors:
            if isinstance(error, GpuToolError):
                if error.trouble.bus_id is not None:
                    self.picture.gpus.saw_lost(error.trouble.bus_id)
                self._no_gpus(str(error.trouble))

    def _no_gpus(self, why: str) -> None:
        self.picture.gpu_note = why
        self._publish()

    def _publish(self) -> None:
        now_s = self._clock.monotonic_s()
        last = self.picture.gpus.as_of_s
        silent_s = now_s - last if last is not None and not self.picture.gpu_note else 0.0
        too_long = silent_s > max(_SILENT_S, 5 * self._gpu_every_s)
        self.picture.note(
            "silent",
            f"{self.picture.gpu_tool} has said nothing for {silent_s:.0f} s: a hung driver or GPU does this"
            if too_long
            else "",
        )
        before = self._board.hosts.get(self.host) or HostView(self.host, state="up")
        view = replace(before, **self.picture.fields(now_s, self._launches()))
        self._board.publish_host(view)
        for gpu in view.gpus:
            name = gpu.uuid or str(gpu.index)
            if gpu.lost and name not in self._lost:
                why = f" ({gpu.faults[0]})" if gpu.faults else ""
                self._board.tell("note", self.host, f"GPU {gpu.index} is gone{why}", self._clock.wall_s())
        self._lost = {gpu.uuid or str(gpu.index) for gpu in view.gpus if gpu.lost}

    def _model_paths(self) -> list[str]:
        """Folders of the models that launches here are reading, for their disk and how fast it is read."""
        found = []
        for view in self._board.launches.values():
            if view.host == self.host and view.reading is not None and view.state in ("starting", "loading", "stalled"):
                server = view.reading.server
                found += [path for path in (server.model, server.draft_model) if path and path.startswith("/")]
        return found[:8]

    def _launches_on_board(self) -> list[KnownLaunch]:
        return [
            KnownLaunch(view.launch_id, view.name, frozenset(view.processes))
            for view in self._board.launches.values()
            if view.host == self.host
        ]


async def ask_owners(transport: Transport, pids: Collection[int]) -> Owners:
    """Whose these processes are, as far as the account may see. Raises TransportError and TimeoutError."""
    if not pids:
        answer = await transport.run_sh(OWNERS_SH, timeout_s=20.0)
    else:
        answer = await transport.run_sh(OWNERS_SH, [str(pid) for pid in pids], timeout_s=20.0)
    return parse_owners(answer.stdout)


async def look_once(
    transport: Transport, clock: Clock, tools: HardwareTools, launches: Collection[KnownLaunch] = ()
) -> HostView:
    """One host, looked at once: about a second, since a CPU share needs two readings. Raises TransportError."""
    picture = HostPicture()
    probe = await tools.find_gpu_probe(transport)

    async def gpus() -> None:
        if isinstance(probe, str):
            picture.gpu_note = probe
            return
        picture.gpu_tool, picture.source_note = probe.tool, probe.note
        try:
            began_s = clock.monotonic_s()
            picture.gpus.saw_tick(await probe.snapshot(), clock.monotonic_s())
            took_s = clock.monotonic_s() - began_s
            processes = await probe.processes()
            pids = {process.pid for process in processes if process.pid is not None}
            picture.gpus.saw_processes(processes, await ask_owners(transport, pids))
            if took_s < _SLOW_S:
                picture.saw_facts(await probe.facts())
            else:
                # Half a dozen calls more: minutes, when one takes this long.
                picture.note("slow", f"{probe.tool} takes {took_s:.0f} s: driver version and topology are left out")
        except GpuToolError as error:
            picture.gpu_note = str(error.trouble)

    async def host() -> None:
        host_probe = tools.host_probe(transport)
        async with contextlib.aclosing(host_probe.readings(1)) as readings:
            seen = 0
            async for counters in readings:
                picture.saw_counters(counters, host_probe.mounts())
                seen += 1
                if seen == 2:
                    break
        answer = await transport.run(["df", "-kP", "--", SHM], timeout_s=5.0)
        picture.saw_filesystems([SHM], parse_df(answer.stdout.decode("utf-8", "replace")))

    async with asyncio.TaskGroup() as group:
        group.create_task(gpus())
        group.create_task(host())
    return replace(HostView(transport.host, state="up"), **picture.fields(clock.monotonic_s(), launches))
