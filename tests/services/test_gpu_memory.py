"""Memory kept with a launch, through a real shell and a simulated nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import pytest

from specconsole.adapters.hardware_tools import HostHardware
from specconsole.adapters.local import LocalTransport
from specconsole.adapters.system_clock import SystemClock
from specconsole.core.hardware.gpu_memory import memory_changes, not_returned, parse_snapshots
from specconsole.services import gpu_memory
from specconsole.services.gpu_memory import MemoryKeeper
from tests.support.fixtures_gpus import FakeGpus

GIB_MIB = 1024


@pytest.fixture
def keeper() -> MemoryKeeper:
    return MemoryKeeper(LocalTransport(), HostHardware(), SystemClock())


async def test_moments_are_kept_with_the_launch_and_compared(
    keeper: MemoryKeeper, fake_gpus: FakeGpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_memory, "_RETURN_PAUSE_S", 0.01)
    folder = tmp_path / "launch with blanks"
    folder.mkdir()
    for moment, used, apps in (
        ("before-launch", 4, []),
        ("answers", 68 * GIB_MIB, [["GPU-fake-1", 71, "python3", 68 * GIB_MIB]]),
    ):
        fake_gpus.set(gpus=[{"index": 0}, {"index": 1, "memory.used": used}], apps=apps)
        assert await keeper.look_and_keep(str(folder), moment) is not None
    # GPU 0 is somebody else's in the meantime: that is not this launch's memory.
    apps = [["GPU-fake-1", 99, "python3", 3 * GIB_MIB], ["GPU-fake-0", 5, "python3", 9 * GIB_MIB]]
    fake_gpus.set(gpus=[{"index": 0, "memory.used": 9 * GIB_MIB}, {"index": 1, "memory.used": 3 * GIB_MIB}], apps=apps)
    said = await keeper.after_stop(str(folder))
    assert said == ("GPU 1 holds 3.0 GiB more than before the launch, held by pid 99",)
    before, answers, after = await keeper.kept(str(folder))
    assert [one.moment for one in (before, answers, after)] == ["before-launch", "answers", "after-stop"]
    assert answers.gpus[1].pids == (71,)
    assert memory_changes(before, answers) == ("GPU 1: 0.0 -> 68.0 GiB (+68.0)",)
    assert not_returned(before, (answers,), before) == ()
    assert (folder / "gpu-memory.jsonl").stat().st_mode & 0o077 == 0


async def test_all_of_it_came_back(keeper: MemoryKeeper, fake_gpus: FakeGpus, tmp_path: Path) -> None:
    await keeper.look_and_keep(str(tmp_path), "before-launch")
    assert await keeper.after_stop(str(tmp_path)) == ()
    assert len(await keeper.kept(str(tmp_path))) == 2


async def test_trouble_never_stands_in_the_way(keeper: MemoryKeeper, fake_gpus: FakeGpus, tmp_path: Path) -> None:
    fake_gpus.set(gpus=[], says="Failed to initialize NVML: Driver/library version mismatch")
    assert await keeper.look_and_keep(str(tmp_path), "before-launch") is None
    assert await keeper.after_stop(str(tmp_path)) == ()
    assert await keeper.kept(str(tmp_path)) == ()
    await keeper.keep(str(tmp_path / "gone"), None)


def test_torn_lines_are_skipped() -> None:
    assert parse_snapshots(b'{"moment":"answers","at_s":1.0,"gpus":[]}\n{"moment":"aft')[0].moment == "answers"
    assert parse_snapshots(b"[]\nnull\n\xff\n") == ()
