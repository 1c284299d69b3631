"""`specconsole demo` without a terminal, end to end. Witness: the server's own log, /proc, and the port."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from specconsole.adapters.toml_files import ProfileFiles
from specconsole.assets import shipped_folder
from specconsole.cli.verbs import demo
from specconsole.errors import BadInputError, SpecconsoleError
from tests.support.waiting import all_pids, environ_of, wait_until

pytestmark = pytest.mark.real

DEMO = [sys.executable, "-m", "specconsole", "demo"]


def marked(launch_id: str) -> set[int]:
    return {pid for pid in all_pids() if environ_of(pid).get(b"SPECCONSOLE_LAUNCH") == launch_id.encode()}


def test_it_runs_through_says_what_the_server_says_and_leaves_nothing() -> None:
    ended = subprocess.run(DEMO, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stderr == ""
    said = ended.stdout
    for about in (
        "demo",
        "models",
        "launch",
        "phases",
        "answers",
        "requests",
        "server",
        "measure",
        "results",
        "stop",
        "proof",
        "done",
    ):
        assert re.search(rf"^{about} ", said, re.MULTILINE), f"{about} is missing in:\n{said}"
    started = re.search(r"started as (\S+) on local, port (\d+)", said)
    assert started
    launch_id, port = started[1], int(started[2])
    assert marked(launch_id) == set()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5).close()

    # The server's log, one line a request: the one that proved the answer, the demo's six, then those of the bench.
    kept = re.search(r"its log is kept: (.+) \(([\d,]+) bytes\)", said)
    assert kept
    log = Path(kept[1]).read_bytes()
    assert len(log) == int(kept[2].replace(",", ""))
    lines = [(int(a), int(g)) for a, g in re.findall(rb"\( *(\d+) accepted / +(\d+) generated\)", log)]
    asked = re.findall(r"96 tokens at [\d,]+ tok/s, (\d+) of (\d+) drafted", said)
    assert [(int(a), int(g)) for a, g in asked] == lines[1:7]
    assert len(asked) == 6
    total = re.search(r"^server +accept length (\d\.\d\d) .*; (\d+) of (\d+) drafted", said, re.MULTILINE)
    assert total
    assert int(total[2]) == sum(accepted for accepted, _ in lines[1:7])
    assert int(total[3]) == sum(generated for _, generated in lines[1:7])
    # 95 decode tokens a request; a step gives one token and the accepted ones.
    decoded = 6 * 95
    assert float(total[1]) == pytest.approx(decoded / (decoded - int(total[2])), abs=0.006)

    # The bench: 87 requests of 32 tokens, each with a line in the log; its acceptance is what these lines say.
    measured = lines[7:]
    assert len(measured) == 87
    listed = subprocess.run(
        [sys.executable, "-m", "specconsole", "results", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    kept_results = {result["name"]: result for result in json.loads(listed.stdout)}
    points = kept_results["demo"]["points"]
    assert len(points) == len(kept_results["demo-baseline"]["points"]) == 9
    assert sum(p["acceptance"]["accepted_drafts"] for p in points) == sum(accepted for accepted, _ in measured)
    assert sum(p["acceptance"]["proposed_drafts"] for p in points) == sum(generated for _, generated in measured)
    assert sum(p["acceptance"]["target_steps"] for p in points) == 87 * 31 - sum(accepted for accepted, _ in measured)
    assert "breaks even at" in said
    plain = re.search(r"demo-baseline: started as (\S+) on local", said)
    assert plain
    assert marked(plain[1]) == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_still_stops_its_server(number: signal.Signals) -> None:
    with subprocess.Popen(
        DEMO,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        launch_id = ""
        for line in process.stdout:
            if found := re.search(r"started as (\S+) on local", line):
                launch_id = found[1]
                break
        wait_until(lambda: marked(launch_id), what="the server runs")
        process.send_signal(number)
        rest = process.stdout.read()
        errors = process.stderr.read()
        assert process.wait(60) == 130, rest + errors
    assert "Traceback" not in errors
    assert "nothing is left" in rest
    assert marked(launch_id) == set()


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "xllamacpp" else object())
    with pytest.raises(BadInputError, match=r"needs xllamacpp .*pip install 'specconsole\[demo\]'"):
        demo.check_installed()


def test_models_that_cannot_be_written_are_one_clear_line(isolated_home: Path) -> None:
    (isolated_home / ".cache").write_text("a file is in the way")
    with pytest.raises(SpecconsoleError, match="can't write the demo's models") as failed:
        demo.write_demo_models()
    assert failed.value.where.startswith(str(isolated_home))


def test_bad_arguments_are_one_clear_line() -> None:
    for argv, text in (
        (["--replay", "--speed", "0"], "--speed can't be 0"),
        (["--replay", "--speed", "nan"], "--speed can't be nan"),
        (["--replay"], "needs a terminal"),
    ):
        ended = subprocess.run(
            [*DEMO, *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 2
        assert text in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
    ended = subprocess.run(
        [sys.executable, "-m", "specconsole", "--read-only", "demo"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (5, "")
    assert "read-only" in ended.stderr


@pytest.mark.parametrize("name", ["demo", "demo-baseline"])
def test_the_shipped_profiles_find_the_models_that_are_written(name: str) -> None:
    profile = ProfileFiles([shipped_folder("profiles")]).read(name)
    folder = demo.write_demo_models()
    paths = [profile.model, *([profile.draft_model] if name == "demo" else [])]
    assert all(
        path and Path(path).expanduser().parent == folder and Path(path).expanduser().is_file() for path in paths
    )
    assert (profile.draft_model is None) == (name == "demo-baseline")
