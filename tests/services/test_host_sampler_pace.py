"""Tools that are slow, silent or missing, against a clock that the test turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence

from specconsole.core.hardware.gpu import GpuFacts, GpuProcess, GpuSample, GpuTick, GpuToolError, ToolTrouble
from specconsole.core.hardware.host import HostCounters
from specconsole.core.hardware.mounts import Mount
from specconsole.errors import LinkLostError
from specconsole.ports import Completed, GpuProbe, HostProbe, Transport
from specconsole.services.board import Board
from specconsole.services.host_sampler import HostSampler
from tests.support.fake_clock import FakeClock


class Scripted:
    """Tools, probe and transport in one: each answer takes the seconds that the test says."""

    host = "gpu-a"
    tool = "nvidia-smi"
    note = ""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.processes_take_s = 0.0
        self.df_hangs = False
        self.silent = asyncio.Event()
        self.trouble: ToolTrouble | None = None
        self.link_down = False
        self.starts: list[float] = []
        self.asked: list[float] = []

    async def find_gpu_probe(self, transport: Transport) -> GpuProbe | str:
        self.starts.append(self.clock.monotonic_s())
        if self.link_down:
            raise LinkLostError("the link is down", where=self.host)
        return self

    def host_probe(self, transport: Transport) -> HostProbe:
        return self

    async def ticks(self, every_s: int) -> AsyncGenerator[GpuTick, None]:
        while True:
            if self.trouble is not None:
                raise GpuToolError(self.trouble)
            if not self.silent.is_set():
                yield GpuTick((GpuSample(0, "GPU-0", "NVIDIA H200", util_pct=1.0, memory_used_bytes=1),))
            await self.clock.sleep(every_s)

    async def snapshot(self) -> GpuTick:
        raise NotImplementedError

    async def processes(self) -> tuple[GpuProcess, ...]:
        self.asked.append(self.clock.monotonic_s())
        await self.clock.sleep(self.processes_take_s)
        return ()

    async def facts(self) -> GpuFacts:
        return GpuFacts(tool=self.tool)

    async def readings(self, every_s: int) -> AsyncGenerator[HostCounters, None]:
        while True:
            yield HostCounters(uptime_s=self.clock.monotonic_s())
            await self.clock.sleep(every_s)

    def mounts(self) -> Mapping[str, Mount]:
        return {}

    async def run(self, argv: Sequence[str], **_: object) -> Completed:
        if self.df_hangs:
            raise TimeoutError
        return Completed(0, b"", b"")

    async def run_sh(self, script: str, args: Sequence[str] = (), **_: object) -> Completed:
        return Completed(0, b"#end\n", b"")


async def sampled(clock: FakeClock, host: Scripted, seconds: int) -> Board:
    """The board after so many seconds of the clock."""
    board = Board()
    sampler = HostSampler(host, board, clock, host)  # type: ignore[arg-type]  # answers what a sampler asks
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sampler.run())
        for _ in range(seconds):
            await clock.advance(1.0)
        task.cancel()
    return board


async def test_a_slow_process_list_is_asked_seldomer_and_said_once(fake_clock: FakeClock) -> None:
    host = Scripted(fake_clock)
    host.processes_take_s = 12.0
    board = await sampled(fake_clock, host, 600)
    assert len(host.asked) <= 3  # 20 times what it takes, not every 30 s
    notes = board.hosts["gpu-a"].hardware_notes
    assert notes == ("nvidia-smi's process list takes 12 s: asked every 240 s",)
    assert board.hosts["gpu-a"].gpus[0].util_pct == 1.0  # the stream went on meanwhile


async def test_a_quick_process_list_is_asked_every_half_minute(fake_clock: FakeClock) -> None:
    host = Scripted(fake_clock)
    await sampled(fake_clock, host, 120)
    assert 4 <= len(host.asked) <= 6


async def test_a_tool_that_falls_silent_is_said_and_not_started_again(fake_clock: FakeClock) -> None:
    host = Scripted(fake_clock)
    host.silent.set()
    board = await sampled(fake_clock, host, 5)
    assert board.hosts["gpu-a"].hardware_notes == ()
    host = Scripted(fake_clock)
    board = Board()
    sampler = HostSampler(host, board, fake_clock, host)  # type: ignore[arg-type]  # answers what a sampler asks
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sampler.run())
        for second in range(60):
            if second == 20:
                host.silent.set()
            await fake_clock.advance(1.0)
        task.cancel()
    (note,) = board.hosts["gpu-a"].hardware_notes
    assert note.startswith("nvidia-smi has said nothing for ")
    assert host.starts == host.starts[:1]


async def test_a_broken_tool_is_tried_with_growing_pauses(fake_clock: FakeClock) -> None:
    host = Scripted(fake_clock)
    host.trouble = ToolTrouble("version-mismatch", "driver and library differ", "reboot")
    board = await sampled(fake_clock, host, 600)
    pauses = [after - before for before, after in zip(host.starts, host.starts[1:], strict=False)]
    assert pauses == sorted(pauses)
    assert len(host.starts) <= 9
    assert board.hosts["gpu-a"].gpu_note == "driver and library differ (try: reboot)"


async def test_after_a_long_outage_figures_are_back_within_seconds(fake_clock: FakeClock) -> None:
    host = Scripted(fake_clock)
    host.link_down = True
    board = Board()
    sampler = HostSampler(host, board, fake_clock, host)  # type: ignore[arg-type]  # answers what a sampler asks
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sampler.run())
        for _ in range(1200):
            await fake_clock.advance(1.0)
        assert not board.hosts["gpu-a"].gpus
        assert not board.hosts["gpu-a"].gpu_note
        host.link_down = False
        for _ in range(4):
            await fake_clock.advance(1.0)
        assert board.hosts["gpu-a"].gpus
        task.cancel()


async def test_a_df_that_hangs_does_not_stop_the_rest(fake_clock: FakeClock) -> None:
    host = Scripted(fake_clock)
    host.df_hangs = True
    board = await sampled(fake_clock, host, 120)
    assert len(host.asked) >= 4
    assert board.hosts["gpu-a"].hardware_notes == ("df does not answer (a dead network mount, a hung driver?)",)
