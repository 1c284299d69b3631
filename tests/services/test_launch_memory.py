"""GPU memory is written down with a real launch and its stop (a real server, a simulated nvidia-smi)."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specconsole.core.launching.lifecycle import ENDED
from specconsole.demo.models import ModelFiles
from specconsole.services import gpu_memory
from specconsole.services.commands import LaunchOrder
from specconsole.services.history_sides import Sides
from specconsole.wiring import Console, open_supervisor
from tests.cli.console import write_profile
from tests.support.fixtures_gpus import FakeGpus
from tests.support.llama import MODULE
from tests.support.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


@pytest.fixture
async def console() -> AsyncIterator[Console]:
    async with open_supervisor(("local",)) as console:
        yield console
        for view in list(console.board.launches.values()):
            if view.state not in ENDED:
                await console.commands.stop(view.launch_id)


async def test_every_moment_of_a_launch(
    fake_gpus: FakeGpus, console: Console, tmp_path: Path, llama_models: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_memory, "_RETURN_PAUSE_S", 0.01)
    profile = write_profile(
        tmp_path, "tiny", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=10,
        model=str(llama_models.target), draft_model=str(llama_models.draft),
    )  # fmt: skip
    launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
    fake_gpus.set(gpus=[{"index": 0, "memory.used": 60_000}, {"index": 1}])
    view = await console.supervisor.wait(launch_id, lambda v: v.state == "answers" or v.state in ENDED, timeout_s=90)
    assert view.state == "answers"
    folder = Path(console.supervisor.find(launch_id).record.folder)

    def moments() -> list[str]:
        return [json.loads(line)["moment"] for line in (folder / "gpu-memory.jsonl").read_text().splitlines()]

    await until(lambda: "answers" in moments())
    # Two GiB stay behind on the GPU that it used.
    fake_gpus.set(gpus=[{"index": 0, "memory.used": 2052}, {"index": 1}])
    last = await console.commands.stop_telling(launch_id, lambda _: None)
    assert last.clean
    assert "GPU 0 holds 2.0 GiB more than before the launch, by no visible process" in last.text
    assert moments() == ["before-launch", "answers", "before-stop", "after-stop"]

    # What a comparison says of it is what those lines say, also once the folder is gone.
    used = {
        (one["moment"], gpu["index"]): gpu["used_bytes"]
        for one in map(json.loads, (folder / "gpu-memory.jsonl").read_text().splitlines())
        for gpu in one["gpus"]
    }
    expected = {
        f"GPU {index} {name}": used[moment, index]
        for index in (0, 1)
        for moment, name in (("before-launch", "before"), ("answers", "answering"), ("after-stop", "after"))
    }
    expected |= {f"GPU {n} taken": used["answers", n] - used["before-launch", n] for n in (0, 1)}
    sides = Sides(console.history, console.benches.results)
    assert (await sides.side(launch_id)).memory_bytes == expected
    assert expected["GPU 0 taken"] > 50 << 30
    shutil.rmtree(folder)
    assert (await sides.side(launch_id)).memory_bytes == expected
