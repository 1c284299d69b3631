"""Starts that the product made on an NVIDIA H200 (SGLang 0.5.17, EAGLE-3), as tests/engines/gpu_launch.py kept them.

Held against each other: what the console said then, the witnesses' clocks, and what the kept log reads as now.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.reading.reading import Reader

DATA = Path(__file__).parents[2] / "data" / "gpu-launch"
RUNS: list[dict[str, Any]] = json.loads(gzip.decompress((DATA / "h200-sglang-0.5.17.json.gz").read_bytes()))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"start {run['number']}")
def test_the_kept_log_reads_as_it_did_live(run: dict[str, Any]) -> None:
    reader = Reader(engine="sglang")
    reader.feed(gzip.decompress((DATA / f"h200-start-{run['number']}.log.gz").read_bytes()))
    reading = reader.reading(dead=True, exit_code=137, stop_asked=True)
    assert reading.phase == "stopped", "KILL of its own tree is a clean stop"
    told = [phase for _, phase in run["phases"] if phase != "serving"]
    read = [f"{entry.phase}:{entry.part}" if entry.part else entry.phase for entry in reading.timeline]
    # Live, a stay of a fifth of a second may pass between two looks; none may be told that the log does not hold.
    following = iter(read)
    assert all(phase in following for phase in told), (told, read)
    assert reading.server.args["speculative_num_draft_tokens"] == 4
    assert reading.server.version in (None, "0.5.17")


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"start {run['number']}")
def test_the_proven_answer_came_when_the_witness_saw_health(run: dict[str, Any]) -> None:
    (first_200,) = [at for at, status in run["health_seen"] if status == "200"]
    assert run["answered_after_s"] == pytest.approx(first_200, abs=2.0)
    assert [status for _, status in run["health_seen"]] == ["refused", "503", "200"]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"start {run['number']}")
def test_memory_came_back_and_nothing_was_left(run: dict[str, Any]) -> None:
    memory = run["memory_mib"]
    assert memory["answers"][0] > 80_000
    assert memory["after stop"][0] <= memory["before"][0] + 64
    assert run["left_over"] == {}
    assert run["accept_length_told"] == pytest.approx(run["accept_length_counters"], rel=0.02)
