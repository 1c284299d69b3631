"""`specconsole gpus` as a person types it, with a simulated nvidia-smi."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from specconsole.cli.main import main
from specconsole.core.hardware.report import gpu_report
from specconsole.core.views.host import GpuView, HostView
from specconsole.errors import EXIT_BAD_INPUT, EXIT_OK, EXIT_UNREACHABLE
from tests.support.fixtures_gpus import FakeGpus
from tests.support.waiting import all_pids, is_alive


def descendants(pid: int) -> dict[int, str]:
    """Command lines of all that a process started, by pid, as /proc has them."""
    parents: dict[int, int] = {}
    for other in all_pids():
        try:
            parents[other] = int(Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {
        one: Path(f"/proc/{one}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        for one in found - {pid}
        if Path(f"/proc/{one}/cmdline").exists()
    }


def test_one_look_for_a_person(fake_gpus: FakeGpus, capsys: pytest.CaptureFixture[str]) -> None:
    apps = [["GPU-fake-1", 1, "init", 1024]]
    fake_gpus.set(gpus=[{"index": 0}, {"index": 1, "utilization.gpu": 97, "memory.used": 1028}], apps=apps)
    assert main(["gpus", "local"]) == EXIT_OK
    out = capsys.readouterr().out
    assert "local · 2 × NVIDIA Fake · driver 580.00.fake" in out
    assert " 1 █████████▊  97 %" in out
    assert "1.0 GiB, not" in out
    assert "pid 1, " in out
    assert "ram " in out


def test_json_has_every_figure_and_no_history_unless_asked(
    fake_gpus: FakeGpus, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gpus", "local", "--json"]) == EXIT_OK
    (host,) = json.loads(capsys.readouterr().out)
    assert host["gpus"][0]["uuid"] == "GPU-fake-0"
    assert host["gpus"][0]["temperature_c"] == 37
    assert host["cpu_count"]
    assert 0 <= host["gpu_age_s"] < 30
    documented = (Path(__file__).parents[2] / "docs" / "json.md").read_text().partition("## `gpus --json`")[2]
    assert [key for key in (*host, *host["gpus"][0]) if f"`{key}`" not in documented] == []
    assert not [key for key in host["gpus"][0] if "history" in key]
    assert main(["gpus", "local", "--json", "--history"]) == EXIT_OK
    (host,) = json.loads(capsys.readouterr().out)
    assert len(host["gpus"][0]["util_history_pct"]) == 120


def test_a_host_that_can_not_be_reached_does_not_hide_the_others(
    fake_gpus: FakeGpus, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gpus", "nobody@127.0.0.1:1", "local", "--json"]) == EXIT_UNREACHABLE
    captured = capsys.readouterr()
    away, here = json.loads(captured.out)
    assert away["name"] == "nobody@127.0.0.1:1"
    assert away["error"]
    assert here["gpus"]
    assert "specconsole gpus: " in captured.err
    assert "Traceback" not in captured.err


def test_an_interval_that_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpus", "--watch", "--every", "0"]) == EXIT_BAD_INPUT
    assert "1 to 3600" in capsys.readouterr().err


def test_watching_goes_on_until_it_is_interrupted(fake_gpus: FakeGpus) -> None:
    argv = [sys.executable, "-m", "specconsole", "gpus", "local", "--watch", "--json", "--every", "1"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        fake_gpus.set(gpus=[{"index": 0, "utilization.gpu": 61}, {"index": 1}])
        while json.loads(watching.stdout.readline())["gpus"][0]["util_pct"] != 61:
            pass
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=30)
    assert first["name"] == "local"
    assert watching.returncode == 130
    assert "Traceback" not in err
    # One stream for all the time.
    assert len([call for call in fake_gpus.calls() if "-l 1" in call]) == 1


def test_watching_ends_with_its_tools_when_it_is_told_to(fake_gpus: FakeGpus) -> None:
    argv = [sys.executable, "-m", "specconsole", "gpus", "local", "--watch", "--json", "--every", "2"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        watching.stdout.readline()
        begun = descendants(watching.pid)
        assert any("-l" in command.split() for command in begun.values()), begun
        watching.send_signal(signal.SIGTERM)
        _, err = watching.communicate(timeout=60)
    assert (watching.returncode, err) == (128 + signal.SIGTERM, "")
    # At once: a tool that nobody ended would live until it writes its next figures.
    assert not [command for pid, command in begun.items() if is_alive(pid)]


def test_a_slow_tool_is_asked_for_the_figures_only_and_says_so(
    fake_gpus: FakeGpus, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specconsole.services.host_sampler._SLOW_S", 0.0)
    fake_gpus.set(gpus=[{"index": 0, "name": "A\x1b[31m" + "b" * 300}])
    assert main(["gpus", "local"]) == EXIT_OK
    out = capsys.readouterr().out
    assert "driver version and topology are left out" in out
    assert "\x1b" not in out
    assert "b" * 61 not in out
    assert not [call for call in fake_gpus.calls() if call.startswith("topo")]


def test_figures_that_no_tool_renews_say_their_age() -> None:
    gpu = GpuView(index=0, uuid="GPU-0", name="NVIDIA Fake")
    view = HostView("there", "up", gpus=(gpu,), gpu_as_of_s=10.0, as_of_s=100.0, gpu_note="the driver is gone")
    assert any("90 s old" in line or "1 min old" in line for line in gpu_report(view))
    assert not any(" old" in line for line in gpu_report(replace(view, gpu_note="", gpu_as_of_s=99.0)))
