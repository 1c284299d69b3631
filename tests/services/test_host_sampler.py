"""The sampler end to end on a real process: a simulated nvidia-smi that changes while it streams."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from specconsole.adapters.hardware_tools import HostHardware
from specconsole.adapters.local import LocalTransport
from specconsole.adapters.system_clock import SystemClock
from specconsole.core.hardware.gpu_owners import KnownLaunch
from specconsole.core.views.host import HostView
from specconsole.services import host_sampler
from specconsole.services.board import Board
from specconsole.services.host_sampler import HostSampler, look_once
from tests.support.fixtures_gpus import FakeGpus
from tests.support.waiting import until

GIB = 1 << 30
LAUNCH = "feedfacefeedface"


@contextlib.asynccontextmanager
async def sampling(board: Board) -> AsyncIterator[HostSampler]:
    launches = [KnownLaunch(LAUNCH, "eagle3-topk1")]
    sampler = HostSampler(LocalTransport(), board, SystemClock(), HostHardware(), launches=lambda: launches)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sampler.run())
        try:
            yield sampler
        finally:
            task.cancel()


def view(board: Board) -> HostView | None:
    return board.hosts.get("local")


async def test_figures_processes_and_owners_arrive_on_the_board(fake_gpus: FakeGpus) -> None:
    env = {**os.environ, "SPECCONSOLE_LAUNCH": LAUNCH}
    argv = [sys.executable, "-c", "input()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=env) as ours:  # noqa: ASYNC220 - starting is quick
        apps = [["GPU-fake-0", ours.pid, "sglang::scheduler_TP3", 69632], ["GPU-fake-1", os.getpid(), "python", 512]]
        fake_gpus.set(gpus=[{"index": 0, "utilization.gpu": 97, "memory.used": 69636}, {"index": 1}], apps=apps)
        board = Board()
        async with sampling(board) as sampler:
            await until(lambda: (v := view(board)) and v.gpus and v.gpus[1].processes and v.cpu_pct is not None)
            found = view(board)
            assert found is not None
            first, second = found.gpus
            assert (first.util_pct, first.memory_used_bytes) == (97, 69636 * 1024 * 1024)
            assert first.processes[0].launch_id == LAUNCH
            assert first.processes[0].label == "eagle3-topk1, TP3"
            assert first.processes[0].used_bytes == 68 * GIB
            assert second.processes[0].label.startswith(f"not ours: pid {os.getpid()}, ")
            assert found.memory_total_bytes
            assert found.gpu_tool == "nvidia-smi"
            await until(lambda: (v := view(board)) and v.gpu_links and v.shm_total_bytes)
            # What the tool says next shows without a new process.
            streams = [call for call in fake_gpus.calls() if call.endswith("-l 1")]
            fake_gpus.set(gpus=[{"index": 0, "utilization.gpu": 12}, {"index": 1}], apps=[])
            sampler.look_now()
            await until(lambda: (v := view(board)) and v.gpus[0].util_pct == 12 and not v.gpus[0].processes)
            assert [call for call in fake_gpus.calls() if call.endswith("-l 1")] == streams
            assert len(streams) == 1
        ours.kill()


async def test_a_gpu_that_falls_off_the_bus_stays_on_the_screen_as_lost(fake_gpus: FakeGpus) -> None:
    board = Board()
    async with sampling(board):
        await until(lambda: (v := view(board)) and len(v.gpus) == 2)
        fake_gpus.set(gpus=[{"index": 0}])
        await until(lambda: (v := view(board)) and v.gpus[1].lost)
        found = view(board)
        assert found is not None
        assert [gpu.lost for gpu in found.gpus] == [False, True]
        assert found.gpus[1].util_pct is None
        assert [fact.text for fact in board.facts_after(0)] == ["GPU 1 is gone"]
        fake_gpus.set(gpus=[{"index": 0}, {"index": 1}])
        await until(lambda: (v := view(board)) and not v.gpus[1].lost)


async def test_a_broken_tool_is_said_and_tried_again(fake_gpus: FakeGpus) -> None:
    fake_gpus.set(gpus=[], says="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    board = Board()
    async with sampling(board):
        await until(lambda: (v := view(board)) and "can't reach the NVIDIA driver" in v.gpu_note)
        assert "\n" not in (view(board) or HostView("", "up")).gpu_note
        await until(lambda: (v := view(board)) and v.cpu_count is not None)
        fake_gpus.set(gpus=[{"index": 0}])
        await until(lambda: (v := view(board)) and v.gpus and not v.gpu_note)


async def test_a_host_without_gpus_is_a_normal_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostHardware, "find_gpu_probe", _none)
    board = Board()
    async with sampling(board):
        await until(lambda: (v := view(board)) and v.gpu_note and v.cpu_pct is not None and v.shm_total_bytes)
        found = view(board)
        assert found is not None
        assert found.gpu_note == "no GPU on this host"
        assert found.hardware_notes == ()


async def test_the_links_owner_keeps_its_fields() -> None:
    board = Board()
    board.publish_host(HostView("local", "up", detail="connected as bob", notes=("host key new",)))
    async with sampling(board):
        await until(lambda: (v := view(board)) and v.cpu_count is not None)
        found = view(board)
        assert found is not None
        assert (found.detail, found.notes) == ("connected as bob", ("host key new",))


async def test_one_look(fake_gpus: FakeGpus) -> None:
    found = await look_once(LocalTransport(), SystemClock(), HostHardware())
    assert [gpu.name for gpu in found.gpus] == ["NVIDIA Fake", "NVIDIA Fake"]
    assert found.cpu_pct is not None
    assert found.gpus[0].nvlink == "18 NVLinks up, 26.6 GB/s each"


async def _none(self: HostHardware, transport: object) -> str:
    return "no GPU on this host"


async def test_memory_that_moves_asks_for_the_processes(fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_sampler, "_MOVING_S", 0.2)
    board = Board()
    async with sampling(board):
        await until(lambda: (v := view(board)) and v.gpu_driver and v.shm_total_bytes)
        app = ["GPU-fake-1", os.getpid(), "python", 69632]
        fake_gpus.set(gpus=[{"index": 0}, {"index": 1, "memory.used": 69636}], apps=[app])
        await until(lambda: (v := view(board)) and v.gpus[1].processes)
        fake_gpus.set(gpus=[{"index": 0}, {"index": 1, "memory.used": 4}], apps=[])
        await until(lambda: (v := view(board)) and not v.gpus[1].processes)
        looks = len([call for call in fake_gpus.calls() if "compute-apps" in call])
        await until(lambda: (v := view(board)) and v.gpus[1].util_pct == 0)
        assert looks <= 6  # not once a tick
