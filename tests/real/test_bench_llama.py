"""Benchmarks of a real llama.cpp server through the services: killed consoles, cancelled runs, dead servers.

Witnesses: the server's own counters, /proc, the bytes of the run's file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.launching.lifecycle import ENDED
from specconsole.core.measuring.run_plan import BenchOrder
from specconsole.demo.models import ModelFiles
from specconsole.errors import BadInputError, RefusedError
from specconsole.services.bench_start import NoPythonError
from specconsole.services.commands import LaunchOrder
from specconsole.wiring import Console, open_supervisor
from tests.cli.console import Verbs, start_console, write_profile
from tests.support.llama import MODULE, LlamaServer
from tests.support.waiting import all_pids, environ_of, until, wait_until

pytestmark = [pytest.mark.real, pytest.mark.timeout(150)]


@pytest.fixture
async def console() -> AsyncIterator[Console]:
    async with open_supervisor(()) as console:
        yield console


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


def workload(folder: Path, **more: Any) -> str:
    """A small one of our own: name of its file."""
    values = {
        "kind": "chat", "output_tokens": 24, "ignore_eos": True, "concurrency": [1, 2], "requests_per_concurrency": 2,
        "least_requests": 3, **more,
    }  # fmt: skip
    path = folder / "small.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()))
    return str(path)


def runs_of(bench_id: str) -> set[int]:
    return {pid for pid in all_pids() if environ_of(pid).get(b"SPECCONSOLE_LAUNCH") == bench_id.encode()}


def rise(after: dict[str, float], before: dict[str, float], name: str) -> float:
    return after.get(f"llamacpp:{name}", 0.0) - before.get(f"llamacpp:{name}", 0.0)


async def test_a_run_on_a_url_says_what_the_server_counted(
    console: Console, llama: LlamaServer, tmp_path: Path
) -> None:
    before = llama.counters()
    prepared = await console.benches.prepare_url(
        llama.base_url, "local", BenchOrder(workload(tmp_path), repeats=2, note="by a test")
    )
    assert prepared.target.engine == "llamacpp"
    conditions = prepared.target.conditions()
    assert (conditions.speculative, conditions.running_cap) == (True, 2), "the server was asked how it runs"
    bench_id = await console.benches.start(prepared, "local")
    result = await console.benches.wait(bench_id)
    after = llama.counters()
    assert result.ended == "done"
    assert [(p.concurrency, p.repeat) for p in result.points] == [(1, 0), (2, 0), (1, 1), (2, 1)]
    accepted = sum(p.acceptance.accepted_drafts or 0 for p in result.points)
    assert accepted == rise(after, before, "spec_decode_num_accepted_tokens_total")
    stored = (await console.benches.results())[0]
    assert stored == result, "what is stored is what was measured"
    assert console.benches.store is not None
    lines = [line for part in (await console.benches.store.requests(result)).values() for line in part]
    assert sum(line["completion_tokens"] for line in lines) == rise(after, before, "tokens_predicted_total")
    assert len(lines) == prepared.plan.requests
    assert runs_of(bench_id) == set()
    view = console.board.results
    assert view.concurrencies == (1, 2)
    assert view.rows[0].tok_s_by_concurrency[0][1] == pytest.approx(
        sum(p.metrics.output_tok_s or 0 for p in result.at(1.0)) / 2
    )


def test_a_killed_console_stops_no_run_and_another_finishes_it(
    verbs: Verbs, llama: LlamaServer, tmp_path: Path
) -> None:
    name = workload(tmp_path, concurrency=[1], output_tokens=60)
    before = llama.counters()
    process = start_console("bench", llama.base_url, "--workload", name, "--repeats", "3")
    assert process.stderr is not None
    bench_id = ""
    for line in process.stderr:
        if line.startswith(b"run "):
            bench_id = line.split()[1].decode()
            break
    wait_until(lambda: bool(runs_of(bench_id)), what="the run goes on")
    process.kill()
    process.wait(30)
    process.stderr.close()
    assert process.stdout is not None
    process.stdout.close()
    assert runs_of(bench_id), "it goes on without its console"
    resumed = verbs("bench", "--resume", bench_id, "--json")
    assert resumed.status == 0, resumed.err
    result = resumed.json
    assert result["ended"] == "done"
    assert len(result["points"]) == 3
    accepted = sum(point["acceptance"]["accepted_drafts"] for point in result["points"])
    assert accepted == rise(llama.counters(), before, "spec_decode_num_accepted_tokens_total")
    assert runs_of(bench_id) == set()


async def test_a_cancelled_run_is_gone_and_keeps_what_it_measured(
    console: Console, llama: LlamaServer, tmp_path: Path
) -> None:
    order = BenchOrder(workload(tmp_path, output_tokens=40, requests_per_concurrency=3), repeats=100)
    prepared = await console.benches.prepare_url(llama.base_url, "local", order)
    bench_id = await console.benches.start(prepared, "local")
    await until(lambda: bool(console.benches.views[0].points_done), what="a point is done")
    result = await console.benches.cancel(bench_id)
    assert result.ended == "cancelled"
    assert 1 <= len(result.points) < 200
    assert runs_of(bench_id) == set()
    assert (await console.benches.results())[0].points == result.points


async def test_a_server_that_dies_in_the_middle_ends_the_run_and_is_said(
    console: Console, llama: LlamaServer, tmp_path: Path
) -> None:
    order = BenchOrder(workload(tmp_path, output_tokens=60, requests_per_concurrency=60), repeats=3)
    prepared = await console.benches.prepare_url(llama.base_url, "local", order)
    bench_id = await console.benches.start(prepared, "local")
    await until(lambda: console.benches.views[0].requests_done >= 3, what="some requests are done")
    os.kill(llama.pid, signal.SIGKILL)
    result = await console.benches.wait(bench_id)
    assert result.ended == "server-died"
    failures = result.points[-1].metrics.failures
    assert set(failures) <= {"reset", "refused", "truncated", "cancelled"}
    assert sum(failures.values()) > 0
    assert result.points[0].metrics.succeeded >= 1


async def test_a_wrong_model_is_refused_with_those_that_are_there(
    console: Console, llama: LlamaServer, tmp_path: Path
) -> None:
    with pytest.raises(BadInputError, match="no model named gpt-9") as caught:
        await console.benches.prepare_url(llama.base_url, "local", BenchOrder(workload(tmp_path)), model="gpt-9")
    assert "tiny" in caught.value.try_


async def test_without_python_the_host_is_named_and_the_tunnel_offered(
    console: Console, llama: LlamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = await console.benches.prepare_url(llama.base_url, "local", BenchOrder(workload(tmp_path)))
    monkeypatch.setattr("specconsole.services.bench_start.FIND_PYTHON", "printf 'none\\n'\n")
    with pytest.raises(NoPythonError, match="no python3") as caught:
        await console.benches.start(prepared, "local")
    assert "--from-here" in caught.value.try_


async def test_prompts_over_the_context_are_failures_with_the_servers_word(
    console: Console, llama: LlamaServer, tmp_path: Path
) -> None:
    order = BenchOrder(workload(tmp_path, prompt_tokens=20000, concurrency=[1]))
    prepared = await console.benches.prepare_url(llama.base_url, "local", order)
    result = await console.benches.wait(await console.benches.start(prepared, "local"))
    assert result.points[0].metrics.succeeded == 0
    assert result.points[0].metrics.failures == {"http-400": 3}
    assert result.points[0].metrics.output_tok_s is None


async def test_until_ci_leaves_out_repeats_that_need_not_be(
    console: Console, llama: LlamaServer, tmp_path: Path
) -> None:
    order = BenchOrder(workload(tmp_path, concurrency=[1], output_tokens=12), repeats=40, until_ci_ratio=0.5)
    prepared = await console.benches.prepare_url(llama.base_url, "local", order)
    result = await console.benches.wait(await console.benches.start(prepared, "local"))
    assert result.ended == "done"
    assert 5 <= len(result.points) < 40
    assert result.until_ci_ratio == 0.5


async def test_a_read_only_console_measures_nothing(llama: LlamaServer, tmp_path: Path) -> None:
    async with open_supervisor((), read_only=True) as console:
        prepared = await console.benches.prepare_url(llama.base_url, "local", BenchOrder(workload(tmp_path)))
        with pytest.raises(RefusedError, match="read-only"):
            await console.benches.start(prepared, "local")


def test_verbs_compare_export_note_and_remove(verbs: Verbs, llama: LlamaServer, tmp_path: Path) -> None:
    name = workload(tmp_path, concurrency=[1])
    first = verbs("bench", llama.base_url, "--workload", name, "--repeats", "2", "--json", "--keep-text").json
    second = verbs("bench", llama.base_url, "--workload", name, "--repeats", "2", "--json", "--keep-text").json
    ids = [first["result_id"], second["result_id"]]
    assert first["conditions"]["workload_hash"] == second["conditions"]["workload_hash"]
    same = verbs("results", "lossless", *ids, "--json")
    assert same.status == 0
    assert same.json["equal"] == same.json["compared"] == 2 * (3 + 1)
    assert verbs("results", "note", ids[0], "on", "a", "quiet", "day").status == 0
    shown = verbs("results", "show", ids[0])
    assert "on a quiet day" in shown.out
    page = tmp_path / "report.html"
    assert verbs("results", "export", *ids, "--out", str(page)).status == 0
    html = page.read_text()
    assert "<svg" in html
    assert "<script" not in html
    assert "<link" not in html
    table = verbs("results", "export", *ids, "--format", "csv").out.splitlines()
    assert len(table) == 1 + 4
    assert verbs("results", "plot", "--plot", "throughput").status == 0
    folder = next(path for path in Path.home().rglob(ids[0]) if path.is_dir())
    assert (folder / "out.jsonl").exists()
    refused = verbs("results", "rm", ids[0])
    assert refused.status == 5
    assert str(folder) in refused.err, "what would go is named"
    assert folder.exists()
    assert verbs("results", "rm", ids[0], "--yes").status == 0
    assert not folder.exists()
    assert (folder.parent / ids[1] / "out.jsonl").exists()
    left = verbs("results", "list", "--json").json
    assert [one["result_id"] for one in left] == [ids[1]]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["bench"], 2, "name a launch or a URL"),
        (["bench", "nothing"], 4, "no launch nothing"),
        (["bench", "https://127.0.0.1:1"], 3, "nothing listens on port 1"),
        (["bench", "http://127.0.0.1:1"], 3, "nothing listens on port 1"),
        (["bench", "http://127.0.0.1:99999"], 2, "port"),
        (["bench", "x", "--concurrency", "1,zwei"], 2, "--concurrency"),
        (["bench", "x", "--repeats", "0"], 2, "--repeats"),
        (["bench", "x", "--until-ci", "200%"], 2, "--until-ci"),
        (["results", "show", "nothing"], 4, "no result nothing"),
        (["results", "compare", "--metric", "joy"], 2, "--metric"),
        (["results", "import", "/nonexistent.json"], 4, "no such file"),
    ],
)
def test_bad_input_is_one_line(verbs: Verbs, words: list[str], status: int, said: str) -> None:
    done = verbs(*words)
    assert done.status == status, done.err
    assert said in done.problem


@pytest.mark.parametrize(
    "length", [pytest.param(1.5, marks=pytest.mark.faults), pytest.param(2.5, marks=pytest.mark.faults), 4.0]
)
async def test_a_made_up_acceptance_reads_as_set_and_is_stamped(
    console: Console, llama_models: ModelFiles, tmp_path: Path, length: float
) -> None:
    profile = write_profile(
        tmp_path, "dial", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=5,
        model=str(llama_models.target), draft_model=str(llama_models.draft),
        args={"spec_draft_n_max": 6, "spec_synth_len": length, "ctx_size": 8192},
    )  # fmt: skip
    launch_id = await console.commands.launch(LaunchOrder(str(profile), "local"))
    try:
        await console.supervisor.wait(launch_id, lambda v: v.state == "answers" or v.state in ENDED, timeout_s=60)
        order = BenchOrder(workload(tmp_path, output_tokens=300, concurrency=[1], least_requests=3))
        prepared, host = await console.benches.prepare_launch(launch_id, order)
        result = await console.benches.wait(await console.benches.start(prepared, host))
    finally:
        await console.commands.stop(launch_id, lambda _: None)
    (point,) = result.points
    assert point.metrics.failed == 0
    # 1,200 tokens of random accepts: the mean lies within some per cent of the dial.
    assert point.acceptance.accept_length == pytest.approx(length, rel=0.12)
    assert "simulated" in point.all_marks
    assert result.conditions.simulated == f"--spec-synth-len {length}"


def test_interrupted_it_ends_the_run_and_keeps_what_it_measured(
    verbs: Verbs, llama: LlamaServer, tmp_path: Path
) -> None:
    name = workload(tmp_path, concurrency=[1], requests_per_concurrency=3)
    process = start_console("bench", llama.base_url, "--workload", name, "--repeats", "500")
    assert process.stderr is not None
    assert process.stdout is not None
    bench_id = ""
    for line in process.stderr:
        if line.startswith(b"run "):
            bench_id = line.split()[1].decode()
        if line.startswith(b"point 1/"):
            break
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    process.stdout.read()
    assert process.wait(60) == 130, rest
    process.stdout.close()
    process.stderr.close()
    assert b"Traceback" not in rest
    assert runs_of(bench_id) == set()
    (kept,) = verbs("results", "--json").json
    assert (kept["result_id"], kept["ended"]) == (bench_id, "cancelled")
    assert 1 <= len(kept["points"]) < 500
