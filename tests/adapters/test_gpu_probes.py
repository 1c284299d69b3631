"""The GPU and host probes on real processes: a simulated nvidia-smi, the machine's own /proc."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import psutil
import pytest

from specconsole.adapters.hardware_tools import HostHardware
from specconsole.adapters.host_readings import PsutilReadings, ShellReadings
from specconsole.adapters.local import LocalTransport
from specconsole.adapters.nvidia import NvidiaProbe
from specconsole.core.hardware.gpu import GpuTick, GpuToolError
from specconsole.core.hardware.gpu_presence import parse_presence
from specconsole.core.hardware.host import HostCounters, figures
from specconsole.core.hardware.proc_frames import SAMPLER_SH
from specconsole.errors import RefusedError
from tests.support.fixtures_gpus import FakeGpus
from tests.support.waiting import until

MIB = 1024 * 1024


async def first(probe: NvidiaProbe, count: int = 1) -> list[GpuTick]:
    seen = []
    async with contextlib.aclosing(probe.ticks(1)) as ticks:
        async for tick in ticks:
            seen.append(tick)
            if len(seen) == count:
                break
    return seen


async def test_one_process_streams_all_ticks(fake_gpus: FakeGpus) -> None:
    ticks = await first(NvidiaProbe(LocalTransport()), 5)
    assert [len(tick.gpus) for tick in ticks] == [2] * 5
    assert [call.endswith("-l 1") for call in fake_gpus.calls()] == [False, True]
    # What changes seldom is asked for once, and stands in every tick.
    assert "clocks.max.sm" not in fake_gpus.calls()[1]
    assert [(gpu.bus_id, gpu.power_limit_w, gpu.sm_clock_max_mhz, gpu.mig) for gpu in ticks[-1].gpus] == [
        ("00000000:10:00.0", 700, 1980, False),
        ("00000000:11:00.0", 700, 1980, False),
    ]


async def test_a_field_that_the_driver_does_not_know_is_left_out(fake_gpus: FakeGpus) -> None:
    fake_gpus.set(gpus=[{"index": 0}], unknown_fields=["temperature.memory", "clocks_throttle_reasons.active"])
    (tick,) = await first(NvidiaProbe(LocalTransport()))
    assert tick.gpus[0].temperature_c == 37
    assert tick.gpus[0].memory_temperature_c is None
    assert tick.gpus[0].throttle is None
    assert [call.endswith("-l 1") for call in fake_gpus.calls()] == [False, False, False, True]


async def test_when_one_gpu_is_lost_the_others_are_asked_by_name(fake_gpus: FakeGpus) -> None:
    probe = NvidiaProbe(LocalTransport())
    seen: list[GpuTick] = []
    async with contextlib.aclosing(probe.ticks(1)) as ticks:
        async for tick in ticks:
            seen.append(tick)
            fake_gpus.set(gpus=[{"index": 0}, {"index": 1}], lost=[1])
            if len(tick.gpus) == 1:
                break
    assert seen[-1].gpus[0].uuid == "GPU-fake-0"
    assert "-i GPU-fake-0 -l 1" in fake_gpus.calls()[-1]


async def test_a_broken_driver_is_said_in_one_line(fake_gpus: FakeGpus) -> None:
    fake_gpus.set(gpus=[], says="Failed to initialize NVML: Driver/library version mismatch", exit=18)
    with pytest.raises(GpuToolError) as caught:
        await first(NvidiaProbe(LocalTransport()))
    assert caught.value.trouble.kind == "version-mismatch"
    with pytest.raises(GpuToolError):
        await NvidiaProbe(LocalTransport()).snapshot()


async def test_closing_the_stream_ends_the_tool(fake_gpus: FakeGpus) -> None:
    def running() -> list[int]:
        return [
            child.pid
            for child in psutil.Process().children(recursive=True)
            if child.status() != psutil.STATUS_ZOMBIE and "fake_nvidia_smi.py" in " ".join(child.cmdline())
        ]

    await first(NvidiaProbe(LocalTransport()), 2)
    await until(lambda: not running(), what="nvidia-smi is still there")


class _NoChannels(LocalTransport):
    def stream(self, argv: object) -> contextlib.AbstractAsyncContextManager[object]:  # type: ignore[override]
        raise RefusedError("no session channel left", where="gpu-a")


async def test_without_a_channel_for_a_stream_it_is_asked_now_and_then(fake_gpus: FakeGpus) -> None:
    (tick,) = await first(NvidiaProbe(_NoChannels()))
    assert len(tick.gpus) == 2
    assert "-l" not in fake_gpus.calls()[0]
    readings = ShellReadings(_NoChannels()).readings(1)
    async with contextlib.aclosing(readings):
        counters = await anext(readings)
    assert counters.uptime_s is not None
    assert counters.memory_total_bytes == psutil.virtual_memory().total


async def test_facts_and_processes(fake_gpus: FakeGpus) -> None:
    fake_gpus.set(gpus=[{"index": 0}, {"index": 1}], apps=[["GPU-fake-1", 71, "python3", 14]])
    probe = NvidiaProbe(LocalTransport())
    facts = await probe.facts()
    assert facts.driver == "580.00.fake"
    assert facts.topology is not None
    assert facts.topology.between(0, 1) == "NV18"
    assert [(link.active, link.gb_s_each) for link in facts.nvlinks] == [(18, 26.562)] * 2
    (process,) = await probe.processes()
    assert (process.gpu_uuid, process.pid, process.used_bytes) == ("GPU-fake-1", 71, 14 * MIB)


async def test_the_tool_is_found_or_its_absence_explained(fake_gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await HostHardware().find_gpu_probe(LocalTransport())
    assert isinstance(found, NvidiaProbe)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    if not Path("/usr/bin/nvidia-smi").exists():
        assert isinstance(await HostHardware().find_gpu_probe(LocalTransport()), str)


def test_a_gpu_without_its_driver_is_told_from_no_gpu() -> None:
    assert parse_presence(b"end=1\n").why_none == "no GPU on this host"
    assert "2 NVIDIA device(s)" in parse_presence(b"pci=0x10de\npci=0x10de\npci=0x1002\nend=1\n").why_none
    both = parse_presence(b"tool=nvidia-smi /usr/bin/nvidia-smi\ntool=amd-smi /opt/rocm/bin/amd-smi\ndevice=amd\n")
    assert [name for name, _ in both.tools] == ["amd-smi", "nvidia-smi"]


async def test_shell_and_psutil_tell_the_same_machine() -> None:
    """Two independent ways to read this machine; rates are compared by their counters, read one after the other."""

    async def two(source: ShellReadings | PsutilReadings) -> list[HostCounters]:
        found = []
        async with contextlib.aclosing(source.readings(1)) as readings:
            async for counters in readings:
                found.append(counters)
                if len(found) == 2:
                    break
        return found

    before = (await two(PsutilReadings()))[0]
    shell = await two(ShellReadings(LocalTransport()))
    after = (await two(PsutilReadings()))[0]
    assert shell[0].memory_total_bytes == before.memory_total_bytes
    assert set(shell[0].cpus) == set(before.cpus)
    assert shell[0].numa == before.numa
    assert shell[0].cgroup == before.cgroup or shell[0].cgroup is not None
    assert shell[0].cpu_quota == before.cpu_quota
    assert before.uptime_s is not None
    assert after.uptime_s is not None
    assert shell[0].uptime_s is not None
    assert before.uptime_s - 2 <= shell[0].uptime_s <= after.uptime_s + 2
    assert set(shell[0].network) == set(before.network)
    for name, (rx, _) in shell[0].network.items():
        assert before.network[name][0] <= rx <= after.network[name][0]
    for name, disk in shell[0].disks.items():
        if name in before.disks and name in after.disks:
            assert before.disks[name].read_bytes <= disk.read_bytes <= after.disks[name].read_bytes
            assert disk.device_number == before.disks[name].device_number
    shown = figures(*shell)
    assert shown.cpu_pct is not None
    assert 0 <= shown.cpu_pct <= 100


def test_the_sampling_shell_ends_when_nobody_reads() -> None:
    with subprocess.Popen(
        ["sh", "-c", SAMPLER_SH, "sh", "0.05"], stdout=subprocess.PIPE, start_new_session=True
    ) as shell:
        assert shell.stdout is not None
        assert os.read(shell.stdout.fileno(), 4096)
        shell.stdout.close()
        assert shell.wait(timeout=30) is not None
