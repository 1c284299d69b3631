"""The sampler over a real sshd: what it holds open there, and that nothing of it stays."""

from __future__ import annotations

import asyncio

import psutil

from specconsole.adapters.host_readings import ShellReadings
from specconsole.adapters.nvidia import NvidiaProbe
from specconsole.adapters.ssh import SshLink
from specconsole.adapters.system_clock import SystemClock
from specconsole.core.views.host import HostView
from specconsole.ports import GpuProbe, HostProbe, Transport
from specconsole.services.board import Board
from specconsole.services.host_sampler import HostSampler
from tests.support.fixtures_gpus import FakeGpus
from tests.support.waiting import until


class _SimulatedTool:
    """Finds the simulated nvidia-smi, whatever the account's PATH is."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def find_gpu_probe(self, transport: Transport) -> GpuProbe | str:
        return NvidiaProbe(transport, self._path)

    def host_probe(self, transport: Transport) -> HostProbe:
        return ShellReadings(transport)


def on_the_host(fake: FakeGpus) -> list[str]:
    """Processes of the sampler on the host: the tool's stream and the shell's loop."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if "fake_nvidia_smi.py" in words and "-l" in words.split():
            found.append("stream")
        elif "/proc/self/mountinfo /sys/devices/system/node" in words:
            found.append("shell")
    return found


async def test_two_processes_on_the_host_and_none_afterwards(ssh_link: SshLink, fake_gpus: FakeGpus) -> None:
    fake_gpus.set(gpus=[{"index": 0, "utilization.gpu": 55}], apps=[["GPU-fake-0", 1, "init", 14]])
    board = Board()
    sampler = HostSampler(ssh_link, board, SystemClock(), _SimulatedTool(str(fake_gpus.tool)))

    def view() -> HostView | None:
        return board.hosts.get(ssh_link.host)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(sampler.run())
        await until(lambda: (v := view()) and v.gpus and v.gpus[0].processes and v.cpu_pct is not None)
        found = view()
        assert found is not None
        assert found.gpus[0].util_pct == 55
        assert found.memory_total_bytes == psutil.virtual_memory().total
        assert found.gpus[0].processes[0].user == psutil.Process(1).username()
        # A shell that serves `sh -c` may stand between sshd and ours, so kinds are counted once each.
        assert set(on_the_host(fake_gpus)) == {"stream", "shell"}
        task.cancel()
    await until(lambda: not on_the_host(fake_gpus), what="something of the sampler stayed on the host")


async def test_a_lost_link_is_waited_for_and_the_figures_keep_their_age(ssh_link: SshLink, fake_gpus: FakeGpus) -> None:
    board = Board()
    sampler = HostSampler(ssh_link, board, SystemClock(), _SimulatedTool(str(fake_gpus.tool)))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sampler.run())
        await until(lambda: (v := board.hosts.get(ssh_link.host)) and v.gpus)
        await ssh_link.aclose()
        await until(lambda: not on_the_host(fake_gpus))
        before = board.hosts[ssh_link.host]
        assert before.gpus
        assert not before.gpu_note  # the link's trouble is not the tool's
        await ssh_link.connect()
        await until(lambda: board.hosts[ssh_link.host].gpu_as_of_s != before.gpu_as_of_s)
        task.cancel()
