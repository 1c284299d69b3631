"""One profile launched again and again: its starts become one row, and the noise between them is told."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

from specconsole.core.launching.lifecycle import ENDED
from specconsole.core.measuring.run_plan import BenchOrder
from specconsole.demo.models import ModelFiles
from specconsole.services.commands import LaunchOrder
from specconsole.wiring import open_supervisor
from tests.cli.console import Verbs, write_profile
from tests.real.test_bench_llama import workload
from tests.support.llama import MODULE

LAUNCHES = 10


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_ten_launches_of_one_profile(
    llama_models: ModelFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The witness takes the spread from the exported points by textbook sums of its own."""
    import asyncio

    profile = write_profile(
        tmp_path, "again", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=5,
        model=str(llama_models.target), draft_model=str(llama_models.draft),
    )  # fmt: skip

    async def measure() -> None:
        async with open_supervisor(("local",)) as console:
            for _ in range(LAUNCHES):
                launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
                watch = console.supervisor
                await watch.wait(launch_id, lambda v: v.state == "answers" or v.state in ENDED, timeout_s=60)
                order = BenchOrder(workload(tmp_path, concurrency=[1]), repeats=3)
                prepared, host = await console.benches.prepare_launch(launch_id, order)
                await console.benches.wait(await console.benches.start(prepared, host))
                await console.commands.stop(launch_id, lambda _: None)

    asyncio.run(measure())
    verbs = Verbs(capsys)
    listed = verbs("results", "list", "--json").json
    assert len(listed) == LAUNCHES
    groups = [[point["metrics"]["output_tok_s"] for point in one["points"]] for one in listed]
    assert all(len(group) == 3 for group in groups)
    mean = statistics.fmean(value for group in groups for value in group)
    within = statistics.fmean(statistics.variance(group) for group in groups)
    between = max(0.0, statistics.variance([statistics.fmean(group) for group in groups]) - within / 3)
    (row,) = verbs("results", "spread", "again", "--json").json["rows"]
    (told,) = row["loads"]
    assert [start["mean"] for start in told["starts"]] == pytest.approx([statistics.fmean(g) for g in groups])
    assert told["within_ratio"] == pytest.approx(within**0.5 / mean)
    assert told["between_ratio"] == pytest.approx(between**0.5 / mean, abs=1e-9)
    shown = verbs("results", "spread", "again").out
    assert f"again: {LAUNCHES} starts of the server" in shown
    compared = verbs("results", "compare", "--json").json
    assert len(compared["rows"]) == 1
    assert compared["rows"][0]["cells"][0]["value"]["launches"] == LAUNCHES
