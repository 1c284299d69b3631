"""The load generator as it really runs, a process of its own, against a server of known schedule."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from specconsole.core.measuring.point import PointMetrics, measure_point
from specconsole.core.measuring.requests import parse_lines, parse_request

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def server_port() -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("schedule_server.py"))], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()


def counts(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/counts", timeout=10) as answer:
        return dict(json.load(answer))


def start(folder: Path, port: int, tests: list[dict[str, Any]], points: list[dict[str, Any]], **plan: Any) -> Any:
    """The folder alone travels: copied away from the project, run by a bare interpreter."""
    shutil.copytree(ROOT / "specconsole" / "loadgen", folder / "loadgen", ignore=shutil.ignore_patterns("*.pyc"))
    (folder / "requests.jsonl").write_text("".join(json.dumps({"test": t}) + "\n" for t in tests))
    (folder / "plan.json").write_text(
        json.dumps(
            {"version": 1, "host": "127.0.0.1", "port": port, "api": "completions", "requests": "requests.jsonl",
             "points": points, **plan}
        )
    )  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-I", "-c", "import sys; sys.path.insert(0, '.'); from loadgen.__main__ import main; "
         "sys.exit(main(sys.argv[1:]))", "plan.json", "out.jsonl"],
        cwd=folder, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(folder: Path, *args: Any, expect: int = 0, **kwargs: Any) -> list[dict[str, Any]]:
    process = start(folder, *args, **kwargs)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == expect, errors
    return lines_of(folder)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return list(parse_lines((folder / "out.jsonl").read_bytes().splitlines()))


def measured(lines: list[dict[str, Any]], point: int = 0) -> PointMetrics:
    (end,) = [line for line in lines if line["kind"] == "point-end" and line["point"] == point]
    records = [r for line in lines if (r := parse_request(line)) and r.point == point]
    return measure_point(records, window_start_s=end["window_start_s"], window_end_s=end["window_end_s"])


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("split", [True, False])
def test_metrics_equal_the_schedule(tmp_path: Path, server_port: int, counted: bool, split: bool) -> None:
    """First event after 80 ms, then 9 events of 3 tokens each 30 ms: TPOT is 10 ms, ITL too, 28 tokens."""
    test = {"first_s": 0.08, "gap_s": 0.03, "events": 10, "tokens": 3, "counted": counted, "split": split}
    lines = run(tmp_path, server_port, [test], [{"concurrency": 4, "requests": 24, "warmup": 4}])
    found = measured(lines)
    assert (found.succeeded, found.failed) == (24, 0)
    assert found.per_event_tokens is counted
    assert found.ttft_s.p50 == pytest.approx(0.08, abs=0.015)
    assert found.tpot_s.p50 == pytest.approx(0.01, rel=0.1)
    assert found.itl_s.p50 == pytest.approx(0.01, rel=0.2)
    assert found.e2e_s.p50 == pytest.approx(0.35, abs=0.03)
    assert found.decode_tokens == 24 * 27
    assert found.output_tok_s == pytest.approx(4 * 28 / 0.35, rel=0.15)
    assert found.running_mean == pytest.approx(4.0, rel=0.05)
    witness = counts(server_port)
    assert witness["requests"] == 28
    assert witness["most_at_once"] == 4
    assert witness["tokens"] == 28 * 28


def test_connections_are_kept(tmp_path: Path, server_port: int) -> None:
    run(tmp_path, server_port, [{"events": 2}], [{"concurrency": 3, "requests": 30}])
    # Three kept connections and the one that asks for the counts.
    assert counts(server_port)["connections"] == 4


def test_open_loop_arrives_as_seeded(tmp_path: Path, server_port: int) -> None:
    point = {"rate_per_s": 40.0, "duration_s": 1.5, "seed": 5}
    lines = run(tmp_path, server_port, [{"events": 3, "gap_s": 0.005}], [point, point])
    starts = [
        [line["scheduled_s"] for line in lines if line["kind"] == "request" and line["point"] == p] for p in (0, 1)
    ]
    gaps = [[round(b - a, 4) for a, b in zip(sorted(s), sorted(s)[1:], strict=False)] for s in starts]
    shorter = min(map(len, gaps))
    assert shorter > 30
    assert gaps[0][:shorter] == pytest.approx(gaps[1][:shorter], abs=2e-4)


@pytest.mark.parametrize(
    ("test", "error"),
    [
        ({"status": 429}, "http-429"),
        ({"status": 500, "message": "engine is dead"}, "http-500"),
        ({"end": "no-done"}, "truncated"),
        ({"end": "cut"}, "truncated"),
        ({"end": "error"}, "server-error"),
        ({"end": "stall"}, "stall"),
    ],
)
def test_every_way_to_fail_has_its_name(tmp_path: Path, server_port: int, test: dict[str, Any], error: str) -> None:
    lines = run(tmp_path, server_port, [test], [{"concurrency": 2, "requests": 4}], stall_timeout_s=0.5)
    found = measured(lines)
    assert found.failures == {error: 4}
    assert found.output_tok_s is None
    details = [line["detail"] for line in lines if line["kind"] == "request"]
    assert all(details), "a failure says what was seen"


def test_points_that_are_no_longer_wanted_are_skipped(tmp_path: Path, server_port: int) -> None:
    (tmp_path / "skip.json").write_text("[1, 2]")
    points = [{"concurrency": 1, "requests": 2}] * 4
    lines = run(tmp_path, server_port, [{"events": 2}], points, skip_file="skip.json")
    assert [line["point"] for line in lines if line["kind"] == "skipped"] == [1, 2]
    assert counts(server_port)["requests"] == 4


def test_nobody_there_is_refused(tmp_path: Path) -> None:
    lines = run(tmp_path, 1, [{}], [{"concurrency": 2, "requests": 3}])
    assert measured(lines).failures == {"refused": 3}


def test_no_usage_counts_events_and_says_so(tmp_path: Path, server_port: int) -> None:
    lines = run(tmp_path, server_port, [{"end": "no-usage", "events": 5}], [{"concurrency": 1, "requests": 2}])
    found = measured(lines)
    assert found.tokens_from == "events"
    assert "tokens-from-events" in found.marks


def test_cancel_keeps_what_was_measured(tmp_path: Path, server_port: int) -> None:
    process = start(tmp_path, server_port, [{"events": 20, "gap_s": 0.01}], [{"concurrency": 2, "requests": 100000}])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not any(
        line["kind"] == "progress" and line["ended"] >= 4
        for line in (lines_of(tmp_path) if (tmp_path / "out.jsonl").exists() else [])
    ):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 3
    lines = lines_of(tmp_path)
    assert lines[-1]["kind"] == "end"
    assert lines[-1]["reason"] == "cancelled"
    found = measured(lines)
    assert found.succeeded >= 4
    assert set(found.failures) <= {"cancelled"}
    assert found.succeeded <= counts(server_port)["requests"]


def test_a_killed_client_leaves_whole_lines(tmp_path: Path, server_port: int) -> None:
    process = start(tmp_path, server_port, [{"events": 3}], [{"concurrency": 2, "requests": 100000}])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and (
        not (tmp_path / "out.jsonl").exists() or (tmp_path / "out.jsonl").stat().st_size < 50_000
    ):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    children = Path(f"/proc/{process.pid}/task")
    assert not children.exists()
    raw = (tmp_path / "out.jsonl").read_bytes()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not raw.endswith(b"\n"):
        time.sleep(0.05)
        raw = (tmp_path / "out.jsonl").read_bytes()
    assert raw.endswith(b"\n")
    assert all(json.loads(line)["kind"] for line in raw.splitlines())


def test_a_stopped_client_is_told_as_its_own_stall(tmp_path: Path, server_port: int) -> None:
    process = start(tmp_path, server_port, [{"events": 40, "gap_s": 0.02}], [{"concurrency": 4, "requests": 16}])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and counts(server_port)["events"] < 40:
        time.sleep(0.02)
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    stalls = [line["seconds"] for line in lines_of(tmp_path) if line["kind"] == "stall"]
    assert max(stalls) == pytest.approx(0.6, abs=0.25)


def test_snapshots_samples_and_the_key_stay_where_they_belong(tmp_path: Path, server_port: int) -> None:
    (tmp_path / "key").write_text("sk-planted-secret\n")
    os.chmod(tmp_path / "key", 0o600)
    lines = run(
        tmp_path,
        server_port,
        [{"events": 30, "gap_s": 0.02}],
        [{"concurrency": 2, "requests": 4}],
        auth_file=str(tmp_path / "key"),
        snapshot=[{"path": "/counts"}],
        sample={"path": "/counts", "every_s": 0.2},
    )
    before, after = [json.loads(line["body"]) for line in lines if line["kind"] == "snapshot"]
    assert before["requests"] == 0
    assert after["requests"] == 4
    samples = [json.loads(line["body"])["now"] for line in lines if line["kind"] == "sample"]
    assert max(samples) == 2
    assert "planted" not in (tmp_path / "out.jsonl").read_text()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"api": "nonsense"}, "api: 'nonsense'"),
        ({"points": []}, "points: empty"),
        ({"points": [{"concurrency": 0, "requests": 1}]}, "points[0].concurrency"),
        ({"points": [{"concurrency": 8, "requests": 1, "warmup": 3}]}, "at least the concurrency"),
        ({"version": 9}, "version"),
        ({"requests": "nowhere.jsonl"}, "nowhere.jsonl"),
        ({"auth_file": "nokey"}, "nokey"),
    ],
)
def test_a_bad_plan_is_one_line(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    process = start(tmp_path, 1, [{}], [{"concurrency": 1, "requests": 1}])
    process.communicate(timeout=30)
    plan = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**plan, **change}))
    again = subprocess.run(
        [sys.executable, "-m", "loadgen", "plan.json", "out.jsonl"], cwd=tmp_path, capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip
    assert again.returncode == 2
    assert says in again.stderr
    assert len(again.stderr.splitlines()) == 1
