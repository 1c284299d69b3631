"""Memory kept with a launch, through a real shell and a simulated nvidia-smi."""

from __future__ import annotations

from pathlib import Path

from specconsole.adapters.hardware_tools import HostHardware
from specconsole.adapters.local import LocalTransport
from specconsole.adapters.system_clock import SystemClock
from specconsole.core.hardware.gpu_memory import memory_changes, not_returned, parse_snapshots
from specconsole.services.gpu_memory import keep_gpu_memory, kept_gpu_memory
from tests.support.fixtures_gpus import FakeGpus

GIB_MIB = 1024


async def keep(folder: Path, moment: str) -> object:
    return await keep_gpu_memory(LocalTransport(), HostHardware(), SystemClock(), str(folder), moment)


async def test_moments_are_kept_with_the_launch_and_compared(fake_gpus: FakeGpus, tmp_path: Path) -> None:
    folder = tmp_path / "launch with blanks"
    folder.mkdir()
    for moment, used, apps in (
        ("before-launch", 4, []),
        ("answers", 68 * GIB_MIB, [["GPU-fake-1", 71, "python3", 68 * GIB_MIB]]),
        ("after-stop", 3 * GIB_MIB, [["GPU-fake-1", 99, "python3", 3 * GIB_MIB]]),
    ):
        fake_gpus.set(gpus=[{"index": 0}, {"index": 1, "memory.used": used}], apps=apps)
        assert await keep(folder, moment) is not None
    before, answers, after = await kept_gpu_memory(LocalTransport(), str(folder))
    assert [snapshot.moment for snapshot in (before, answers, after)] == ["before-launch", "answers", "after-stop"]
    assert answers.gpus[1].pids == (71,)
    assert memory_changes(before, answers) == ("GPU 1: 0.0 -> 68.0 GiB (+68.0)",)
    assert not_returned(before, after) == ("GPU 1: 3.0 GiB did not come back, held by pid 99",)
    assert not_returned(before, before) == ()
    assert (folder / "gpu-memory.jsonl").stat().st_mode & 0o077 == 0


async def test_trouble_never_stands_in_the_way(fake_gpus: FakeGpus, tmp_path: Path) -> None:
    fake_gpus.set(gpus=[], says="Failed to initialize NVML: Driver/library version mismatch")
    assert await keep(tmp_path, "before-launch") is None
    assert await kept_gpu_memory(LocalTransport(), str(tmp_path)) == ()


def test_torn_lines_are_skipped() -> None:
    assert parse_snapshots(b'{"moment":"answers","at_s":1.0,"gpus":[]}\n{"moment":"aft')[0].moment == "answers"
    assert parse_snapshots(b"[]\nnull\n\xff\n") == ()
