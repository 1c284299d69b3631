"""`specconsole bench` through the real engines: acceptance against their own counters, and against each other.

The witness reads /metrics before and after with no product code; vLLM counts no steps, so one request runs at a time
and its engine's iterations are counted. One pair of models for all: a draft is wrong at the same places whoever asks.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from specconsole.demo.models import ModelFiles
from specconsole.wiring import Console
from tests.engines import engines, watched, witness
from tests.engines.conftest import need
from tests.engines.engines import REPOSITORY, Recipe
from tests.engines.support.checkpoints import Checkpoints
from tests.engines.tables import bench_row
from tests.support.sshd_lab import SshdLab

WORKLOAD = """
kind = "chat"
output_tokens = 256
ignore_eos = true
concurrency = [1]
requests_per_concurrency = 5
least_requests = 5
"""
EXPECTED = {"eagle3": pytest.approx(2.0, rel=0.05), "draft": pytest.approx(3.05, rel=0.05)}
"""Three tokens drafted by the head, four by the model; each right three times in four."""


@dataclass(frozen=True)
class Measured:
    """Over all requests of one run."""

    ours: float
    """Tokens per target step, pooled over the points."""
    engine_figure: float
    """As the engine itself would say it, by us."""
    counted: float
    """The same by the witness."""
    counted_engine_figure: float


def drafting_four(recipe: Recipe) -> Recipe:
    """A draft model that proposes four tokens a step."""
    args = dict(recipe.args)
    if recipe.engine == "vllm":
        args["speculative_config"] = json.dumps({**json.loads(args["speculative_config"]), "num_speculative_tokens": 4})
    else:
        args |= {"speculative_num_steps": 4, "speculative_num_draft_tokens": 5}
    return replace(recipe, args=args)


def bench(launch_id: str, host: str, workload: Path) -> dict[str, Any]:
    """The verb, as a process of its own."""
    argv = [sys.executable, "-m", "specconsole", "bench", launch_id, "--host", host, "--workload", str(workload),
            "--repeats", "1", "--json"]  # fmt: skip
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def counted(engine: str, moved: Mapping[str, float], requests: float) -> tuple[float, float]:
    """(tokens per target step of the decode, the engine's own figure), from what the counters moved."""
    if engine == "sglang":
        steps = moved["sglang:spec_verify_calls_total"]
        tokens = moved["sglang:generation_tokens_total"]
        # The prefill brings the first token of each request.
        return (tokens - requests) / steps, tokens / steps
    prefix = {"vllm": "vllm:", "llamacpp": "llamacpp:"}[engine]
    tokens = moved[{"vllm": "vllm:generation_tokens_total", "llamacpp": "llamacpp:tokens_predicted_total"}[engine]]
    accepted = moved[f"{prefix}spec_decode_num_accepted_tokens_total"]
    decode, drafts = tokens - requests, moved[f"{prefix}spec_decode_num_drafts_total"]
    steps = decode - accepted
    if engine == "vllm":
        # One request at a time: an iteration of its engine is one step, and each request had one for its prompt.
        steps = moved["vllm:iteration_tokens_total_count"] - requests
    return decode / steps, 1 + accepted / drafts


async def measured(console: Console, host: str, recipe: Recipe, folder: Path) -> Measured:
    """Launched, measured by the verb, stopped."""
    workload = folder / "few.toml"
    workload.write_text(WORKLOAD)
    start = await watched.start(console, host, recipe.write(folder, name=f"{recipe.engine}-{recipe.speculation}"))
    await watched.answers(console, start)
    await console.supervisor.find(start.launch_id).account.settled()
    before = await asyncio.to_thread(witness.counters, start.port)
    result = await asyncio.to_thread(bench, start.launch_id, host, workload)
    after = await asyncio.to_thread(witness.counters, start.port)
    await watched.stop(console, start)

    assert result["ended"] == "done"
    assert result["conditions"]["engine"] == recipe.engine
    assert result["conditions"]["speculative"] is True
    points = result["points"]
    assert [point["concurrency"] for point in points] == [1]
    assert sum(point["metrics"]["failed"] for point in points) == 0
    accepts = [point["acceptance"] for point in points]
    assert all(one["accept_length"] is not None for one in accepts), accepts
    steps = [one["target_steps"] for one in accepts]
    ours = sum(one["accept_length"] * n for one, n in zip(accepts, steps, strict=True)) / sum(steps)
    figure = sum(one["engine_figure"] * n for one, n in zip(accepts, steps, strict=True)) / sum(steps)
    moved = {name: value - before.get(name, 0.0) for name, value in after.items()}
    requests = _requests(recipe.engine, moved, points)
    found = Measured(ours, figure, *counted(recipe.engine, moved, requests))
    bench_row(recipe.engine, recipe.speculation, found.ours, found.counted, found.engine_figure)
    assert found.ours == pytest.approx(found.counted, rel=0.01), found
    assert found.engine_figure == pytest.approx(found.counted_engine_figure, rel=0.01), found
    return found


def _requests(engine: str, moved: Mapping[str, float], points: list[dict[str, Any]]) -> float:
    """Requests that the counters saw, warm-up and our own proofs among them."""
    names = {"vllm": "vllm:request_success_total", "sglang": "sglang:num_requests_total"}
    if engine in names and names[engine] in moved:
        return moved[names[engine]]
    return float(sum(point["metrics"]["succeeded"] + point["concurrency"] for point in points))


@pytest.mark.parametrize("speculation", ["eagle3", "draft"])
async def test_the_engines_agree_with_their_counters_and_with_each_other(
    console: Console, sshd: SshdLab, tmp_path: Path, checkpoints: Checkpoints, llama_models: ModelFiles,
    speculation: str,
) -> None:  # fmt: skip
    need("vllm")
    need("sglang")
    host = sshd.accounts[0]
    recipes = [engines.vllm(speculation, checkpoints), engines.sglang(speculation, checkpoints)]
    if speculation == "draft":
        recipes = [*map(drafting_four, recipes), engines.llamacpp(llama_models.target, llama_models.draft)]
    found = {recipe.engine: await measured(console, host, recipe, tmp_path) for recipe in recipes}
    for engine, one in found.items():
        assert one.engine_figure == EXPECTED[speculation], (engine, found)
    # Their own figures count the same steps. Ours also counts those without a draft, of which each engine makes as many
    # as it likes at the end of a text.
    for lengths, apart in (
        ([one.engine_figure for one in found.values()], 0.03),
        ([one.ours for one in found.values()], 0.06),
    ):
        assert max(lengths) == pytest.approx(min(lengths), rel=apart), found
