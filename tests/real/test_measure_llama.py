"""The load generator on a real llama.cpp server with a draft: what we say against the server's own counters."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specconsole.adapters.metrics_page import parse_metrics_page
from specconsole.core.measuring.assemble import RunShape, assemble
from specconsole.core.measuring.counters import NAMES
from specconsole.core.measuring.requests import parse_lines
from specconsole.core.measuring.result import Conditions, Result
from specconsole.core.measuring.workload import Prompt, Workload, build_bodies

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = [Prompt(f"{word} and then some more of the same") for word in ("morning", "evening", "winter", "summer")]


def measure(folder: Path, port: int, workload: Workload, points: list[dict[str, Any]]) -> Result:
    shutil.copytree(ROOT / "specconsole" / "loadgen", folder / "loadgen", ignore=shutil.ignore_patterns("*.pyc"))
    bodies = build_bodies(workload, PROMPTS, model="tiny", count=64, engine="llamacpp")
    (folder / "requests.jsonl").write_text("".join(json.dumps(b) + "\n" for b in bodies))
    probe = {"path": "/metrics", "keep": list(NAMES["llamacpp"].keep)}
    (folder / "plan.json").write_text(
        json.dumps(
            {"version": 1, "host": "127.0.0.1", "port": port, "api": workload.api, "requests": "requests.jsonl",
             "points": points, "snapshot": [probe], "sample": {**probe, "every_s": 0.2}}
        )
    )  # fmt: skip
    subprocess.run([sys.executable, "-m", "loadgen", "plan.json", "out.jsonl"], cwd=folder, check=True, timeout=100)
    lines = parse_lines((folder / "out.jsonl").read_bytes().splitlines())
    return assemble(lines, RunShape("r", "demo", "l", Conditions(engine="llamacpp")), parse_metrics_page)


@pytest.mark.parametrize("api", ["completions", "chat", "completion"])
def test_acceptance_and_tokens_equal_the_servers_counters(llama: Any, tmp_path: Path, api: Any) -> None:
    before = llama.counters()
    workload = Workload("w", api=api, output_tokens=(40, 60), ignore_eos=True)
    points = [{"concurrency": c, "requests": 6, "warmup": c, "label": {"concurrency": c}} for c in (1, 2)]
    result = measure(tmp_path, llama.port, workload, points)
    after = llama.counters()

    def rise(name: str) -> float:
        return float(after[name] - before.get(name, 0.0))

    assert [p.metrics.failed for p in result.points] == [0, 0]
    accepted = sum(p.acceptance.accepted_drafts or 0 for p in result.points)
    assert accepted == rise("llamacpp:spec_decode_num_accepted_tokens_total")
    lines = list(parse_lines((tmp_path / "out.jsonl").read_bytes().splitlines()))
    tokens = sum(line["completion_tokens"] for line in lines if line["kind"] == "request")
    assert tokens == rise("llamacpp:tokens_predicted_total")
    requests = 6 + 1 + 6 + 2
    steps = sum(p.acceptance.target_steps or 0 for p in result.points)
    assert steps == tokens - requests - accepted
    for point in result.points:
        assert point.acceptance.accept_length is not None
        assert 1.5 < point.acceptance.accept_length <= 5
        assert point.acceptance.source == "counters (/metrics)"
        assert point.metrics.output_tok_s is not None
        assert point.metrics.ttft_s.p50 is not None
