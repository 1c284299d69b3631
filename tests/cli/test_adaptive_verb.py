"""`specconsole profiles adaptive`: files and profiles on the disk, from results in the store; the engines' own readers
are the witnesses where they are installed."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cli.console import Verbs, write_profile

ROOT = Path(__file__).parents[2]
# TPOT in ms by concurrency: a chain of 5 wins to 4, one of 2 to 16, then plain decoding.
TPOT_MS = {5: {1: 5.0, 4: 9.0, 16: 20.0, 64: 60.0}, 2: {1: 6.0, 4: 9.5, 16: 12.0, 64: 30.0},
           0: {1: 10.0, 4: 11.0, 16: 13.0, 64: 20.0}}  # fmt: skip


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


@pytest.fixture
def measured(verbs: Verbs, tmp_path: Path) -> list[str]:
    """Results as sglang.bench_serving writes them, imported; ids of the longest chain first."""
    for steps, by_load in TPOT_MS.items():
        lines = [entry(steps, load, value) for load, value in by_load.items()]
        (tmp_path / f"k{steps}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert verbs("results", "import", str(tmp_path / f"k{steps}.jsonl")).status == 0
    known = verbs("results", "list", "--json").json
    by_steps = {one["conditions"]["num_steps"] or 0: one["result_id"] for one in known}
    return [by_steps[steps] for steps in TPOT_MS]


def entry(steps: int, load: int, tpot_ms: float) -> dict[str, Any]:
    info = {"version": "0.5.17", "model_path": "/m", "speculative_algorithm": "EAGLE3" if steps else None,
            "speculative_num_steps": steps or None, "dp_size": 1}  # fmt: skip
    return {"backend": "sglang", "dataset_name": "random", "max_concurrency": load, "completed": 8, "concurrency": load,
            "output_throughput": load * 1000 / tpot_ms, "mean_tpot_ms": tpot_ms, "server_info": info}  # fmt: skip


def sglang(folder: Path) -> Path:
    return write_profile(folder, "base", ["python3", "serve.py"], engine="sglang", engine_version="0.5.17", model="/m",
                         draft_model="/d", args={"speculative_algorithm": "EAGLE3"})  # fmt: skip


def fastest(load: int) -> int:
    return min(TPOT_MS, key=lambda steps: TPOT_MS[steps][load])


def test_a_file_for_sglang_and_a_profile_that_uses_it(verbs: Verbs, measured: list[str], tmp_path: Path) -> None:
    base, out = sglang(tmp_path), tmp_path / "it's adaptive.json"
    done = verbs("profiles", "adaptive", str(base), "--from", *measured, "--out", str(out), "--save", "mine", "--json")
    assert done.status == 0
    written = json.loads(out.read_text())
    assert written == done.json["config"]
    slots = sorted(map(int, written))
    for load in TPOT_MS[0]:
        slot = written[str(max(one for one in slots if one <= load))]
        assert fastest(load) in slot["candidate_steps"]
    shown = verbs("profiles", "show", "mine", "--json").json["args"]
    assert shown["speculative_adaptive_config"] == str(out)
    assert shown["speculative_num_steps"] + 1 == shown["speculative_num_draft_tokens"]
    said = verbs("profiles", "check", "mine", "--json").json[0]["findings"]
    assert [one for one in said if one["severity"] == "stop"] == []
    # Neither is written over.
    assert verbs("profiles", "adaptive", str(base), "--from", *measured, "--out", str(out)).status == 5
    again = ("--out", f"{out}2", "--save", "mine")
    assert verbs("profiles", "adaptive", str(base), "--from", *measured, *again).status == 5
    assert not Path(str(out) + "2").exists()


def test_ranges_for_vllm(verbs: Verbs, measured: list[str], tmp_path: Path) -> None:
    base = write_profile(tmp_path, "v", ["vllm", "serve"], engine="vllm", engine_version="0.32.0", model="/m",
                         args={"speculative_config": '{"method": "eagle3", "model": "/d"}'})  # fmt: skip
    done = verbs("profiles", "adaptive", str(base), "--from", *measured, "--save", "tiers", "--json")
    config = verbs("profiles", "show", "tiers", "--json").json["args"]["speculative_config"]
    assert config == done.json["settings"]["speculative_config"]
    assert (config["method"], config["num_speculative_tokens"]) == ("eagle3", 5)
    ranges = config["num_speculative_tokens_per_batch_size"]
    for load in TPOT_MS[0]:
        assert next(steps for first, last, steps in ranges if first <= load <= last) == fastest(load)
    said = verbs("profiles", "check", "tiers", "--json").json[0]["findings"]
    assert [one for one in said if one["severity"] in ("stop", "warning")] == []


def test_what_can_not_be_written_is_one_line(verbs: Verbs, measured: list[str], tmp_path: Path) -> None:
    base = sglang(tmp_path)
    for words in (
        ["--from", measured[0]], ["--from", "nothing"], ["--from", *measured, "--save", "x"],
        ["--from", *measured, "--slack", "-1"], ["--from", *measured, "--out", str(tmp_path / "no" / "file")],
        ["--from", *measured, "--out", str(tmp_path)],
    ):  # fmt: skip
        done = verbs("profiles", "adaptive", str(base), *words)
        assert done.status in (2, 4, 5), words
        assert done.problem
    assert verbs("--read-only", "profiles", "adaptive", str(base), "--from", *measured, "--out",
                 str(tmp_path / "x")).status == 5  # fmt: skip
    assert not (tmp_path / "x").exists()


def load(pattern: str) -> ModuleType:
    """A module of an installed engine by its file alone."""
    [file] = ROOT.glob(pattern)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.engines
def test_the_engines_read_it_as_it_was_meant(
    verbs: Verbs, measured: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM's own lookup table, and SGLang's own routing of batch sizes to candidates."""
    dynamic = load(".venv-vllm/lib/python3*/site-packages/vllm/v1/spec_decode/dynamic/utils.py")
    base = write_profile(tmp_path, "v", ["vllm"], engine="vllm", args={"speculative_config": '{"method": "eagle3"}'})
    settings = verbs("profiles", "adaptive", str(base), "--from", *measured, "--json").json["settings"]
    ranges = settings["speculative_config"]["num_speculative_tokens_per_batch_size"]
    lookup = dynamic.build_dynamic_sd_schedule_lookup(ranges, 64, 5)
    assert {batch: lookup[batch] for batch in TPOT_MS[0]} == {batch: fastest(batch) for batch in TPOT_MS[0]}
    out = tmp_path / "adaptive.json"
    assert verbs("profiles", "adaptive", str(sglang(tmp_path)), "--from", *measured, "--out", str(out)).status == 0
    # All that the module takes of the rest of SGLang is a log line; the rest would load torch.
    utils = ModuleType("sglang.srt.utils")
    utils.log_info_on_rank0 = lambda *_: None  # type: ignore[attr-defined]
    for module in (ModuleType("sglang"), ModuleType("sglang.srt"), utils):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    adaptive = load(".venv-sglang/lib/python3*/site-packages/sglang/srt/speculative/adaptive_spec_params.py")
    router = adaptive.AdaptiveSpeculativeParams(5, str(out))
    assert all(fastest(batch) in router._route(batch).candidate_steps for batch in TPOT_MS[0])
    assert router.get_steps_for_batch(1) == fastest(1)
