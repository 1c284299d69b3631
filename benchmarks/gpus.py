"""What watching costs: 64 simulated hosts of 8 GPUs against one; redraw time, and how old the screen is.

The GPU tool is simulated (its bytes are made here and go through the real parser, sampler, board and Textual pane);
nothing leaves this process. Prints ratios and milliseconds; run it with `python benchmarks/gpus.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from textual.app import App, ComposeResult
from textual.content import Content
from textual.strip import Strip

from specconsole.adapters.system_clock import SystemClock
from specconsole.core.hardware.gpu import GpuFacts, GpuProcess, GpuTick
from specconsole.core.hardware.host import CpuTimes, HostCounters
from specconsole.core.hardware.mounts import Mount
from specconsole.core.hardware.nvidia_query import FIELDS, QueryStream
from specconsole.core.hardware.pace import gpu_interval_s
from specconsole.core.views.host import HostView
from specconsole.ports import Completed, GpuProbe, HostProbe, Transport
from specconsole.services.board import Board
from specconsole.services.host_sampler import HostSampler
from specconsole.ui.theme_files import VARIABLE_DEFAULTS
from specconsole.ui.widgets.gpu_lines import LineCache, gpu_lines, gpu_summary
from specconsole.ui.widgets.text_pane import TextPane

PAINTS_A_SECOND = 5


def rows(gpus: int, random_: random.Random) -> bytes:
    """One round of `nvidia-smi --query-gpu` with changing figures."""
    lines = []
    for index in range(gpus):
        busy = random_.randrange(101)
        cells = {
            "count": gpus, "index": index, "uuid": f"GPU-{index}", "pci.bus_id": f"00000000:{index:02X}:00.0",
            "name": "NVIDIA Simulated", "utilization.gpu": busy, "utilization.memory": busy // 2,
            "memory.used": 90_000 + busy, "memory.total": 143_771, "temperature.gpu": 40 + busy // 3,
            "temperature.memory": 60, "power.draw": f"{80 + 6 * busy}.50", "power.limit": "700.00",
            "clocks.sm": 1980, "clocks.max.sm": 1980, "clocks.mem": 3201, "pstate": "P0",
            "clocks_throttle_reasons.active": "0x0000000000000000", "ecc.errors.uncorrected.volatile.total": 0,
            "mig.mode.current": "Disabled",
        }  # fmt: skip
        lines.append(", ".join(str(cells[name]) for name in FIELDS))
    return ("\n".join(lines) + "\n").encode()


class SimulatedProbe:
    """A GPU tool that is not there; its bytes are parsed like a real one's."""

    tool = "simulated"
    note = "simulated"

    def __init__(self, gpus: int, seed: int, arrivals: dict[str, float], host: str) -> None:
        self._gpus, self._random, self._arrivals, self._host = gpus, random.Random(seed), arrivals, host

    async def ticks(self, every_s: int) -> AsyncGenerator[GpuTick, None]:
        stream = QueryStream()
        await asyncio.sleep(self._random.random() * every_s)
        while True:
            data = rows(self._gpus, self._random)
            self._arrivals[self._host] = time.monotonic()
            for item in stream.feed(data):
                if isinstance(item, GpuTick):
                    yield item
            await asyncio.sleep(every_s)

    async def snapshot(self) -> GpuTick:
        raise NotImplementedError

    async def processes(self) -> tuple[GpuProcess, ...]:
        return tuple(GpuProcess(f"GPU-{index}", 1000 + index, f"sglang::scheduler_TP{index}", 1 << 36)
                     for index in range(self._gpus))  # fmt: skip

    async def facts(self) -> GpuFacts:
        return GpuFacts(tool=self.tool)


class SimulatedHost:
    """CPU and memory of a host that is not there."""

    async def readings(self, every_s: int) -> AsyncGenerator[HostCounters, None]:
        uptime = 1000.0
        while True:
            uptime += every_s
            cpus = {cpu: CpuTimes(uptime * 30, 0, uptime * 100) for cpu in range(192)}
            yield HostCounters(uptime_s=uptime, cpu=CpuTimes(uptime * 30, 0, uptime * 100), cpus=cpus,
                               memory_total_bytes=1 << 40, memory_available_bytes=1 << 39)  # fmt: skip
            await asyncio.sleep(every_s)

    def mounts(self) -> Mapping[str, Mount]:
        return {}


class SimulatedTransport:
    """Answers the short looks with nothing."""

    def __init__(self, host: str) -> None:
        self.host = host

    async def run(self, argv: Sequence[str], **_: object) -> Completed:
        return Completed(0, b"", b"")

    async def run_sh(self, script: str, args: Sequence[str] = (), **_: object) -> Completed:
        return Completed(0, b"#end\n", b"")


@dataclass
class SimulatedTools:
    gpus: int
    arrivals: dict[str, float] = field(default_factory=dict)

    async def find_gpu_probe(self, transport: Transport) -> GpuProbe | str:
        return SimulatedProbe(self.gpus, hash(transport.host) & 0xFFFF, self.arrivals, transport.host)

    def host_probe(self, transport: Transport) -> HostProbe:
        return SimulatedHost()


class _Pane(TextPane):
    """Eight lines for the first host, one line for every other."""

    def __init__(self, board: Board, arrivals: dict[str, float]) -> None:
        super().__init__()
        self.board, self.arrivals = board, arrivals
        self.cache = LineCache()
        self.painted: dict[str, float] = {}
        self.ages_ms: list[float] = []
        self.build_ms: list[float] = []

    def build(self, width: int, height: int) -> Sequence[Content]:
        began = time.perf_counter()
        names = sorted(self.board.hosts)
        lines: list[Content] = []
        for name in names:
            view = self.board.hosts[name]
            first = name == names[0]
            lines += self.cache.lines(view, (width, first), partial(_lines_of, view, width, first))
        self.build_ms.append((time.perf_counter() - began) * 1000)
        return lines

    def render_line(self, y: int) -> Strip:
        now = time.monotonic()
        for name, arrived in self.arrivals.items():
            if self.painted.get(name) != arrived:
                self.painted[name] = arrived
                self.ages_ms.append((now - arrived) * 1000)
        return super().render_line(y)


def _lines_of(view: HostView, width: int, first: bool) -> list[Content]:
    return gpu_lines(view, width, 8) if first else [gpu_summary(view, width)]


class _Window(App[None]):
    CSS = "_Pane { height: 1fr; }"

    def __init__(self, pane: _Pane) -> None:
        super().__init__()
        self.pane = pane

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(VARIABLE_DEFAULTS)

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.set_interval(1 / PAINTS_A_SECOND, self.pane.update)


@dataclass(frozen=True)
class Cost:
    cpu_pct: float
    build_ms: float
    age_p50_ms: float
    age_p95_ms: float
    lag_p95_ms: float
    ticks_a_second: float


async def measure(hosts: int, gpus: int, seconds: float) -> Cost:
    """CPU share of one core, cost of building the pane, age of what is on the screen when it is painted."""
    board, tools = Board(), SimulatedTools(gpus)
    pane = _Pane(board, tools.arrivals)
    lags: list[float] = []

    async def lag() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.02)
            lags.append((time.perf_counter() - began - 0.02) * 1000)

    async with asyncio.TaskGroup() as group, _Window(pane).run_test(size=(160, 80)):
        tasks = [group.create_task(lag())]
        for number in range(hosts):
            transport = SimulatedTransport(f"host-{number:02}")
            sampler = HostSampler(transport, board, SystemClock(), tools, gpu_every_s=gpu_interval_s(hosts))  # type: ignore[arg-type]  # answers what a sampler asks
            tasks.append(group.create_task(sampler.run()))
        await asyncio.sleep(max(4.0, 1.5 * gpu_interval_s(hosts)))
        pane.ages_ms.clear(), pane.build_ms.clear(), lags.clear()
        versions, cpu, began = board.version, time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        wall = time.monotonic() - began
        cost = Cost(
            100 * (time.process_time() - cpu) / wall,
            statistics.median(pane.build_ms),
            statistics.median(pane.ages_ms),
            sorted(pane.ages_ms)[int(0.95 * len(pane.ages_ms))],
            sorted(lags)[int(0.95 * len(lags))],
            (board.version - versions) / wall,
        )
        for task in tasks:
            task.cancel()
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=12.0)
    seconds = parser.parse_args().seconds
    print(f"simulated GPU tool; {os.cpu_count()} CPUs; {PAINTS_A_SECOND} looks at the board a second, 160 x 80")
    one = asyncio.run(measure(1, 8, seconds))
    many = asyncio.run(measure(64, 8, seconds))
    for name, cost in ((" 1 host  x 8", one), ("64 hosts x 8", many)):
        print(
            f"{name}: {cost.cpu_pct:5.1f} % of a core, {cost.ticks_a_second:5.1f} views/s, pane built in "
            f"{cost.build_ms:.2f} ms, on screen after {cost.age_p50_ms:.0f} ms (p95 {cost.age_p95_ms:.0f}), "
            f"loop lag p95 {cost.lag_p95_ms:.1f} ms"
        )
    print(f"ratio of CPU, 64 hosts to 1: {many.cpu_pct / one.cpu_pct:.1f} (for 64 times the GPUs)")
    print(
        f"oldest figure by design: {gpu_interval_s(64)} s between looks + {many.age_p95_ms / 1000:.2f} s to the screen"
    )


if __name__ == "__main__":
    main()
