"""The verbs on processes that behave: secrets, following, ports that are promised, a terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.console import Verbs, start_console, write_profile
from tests.support.tmux import Tmux
from tests.support.victims import victim_argv
from tests.support.waiting import free_port, wait_until

SECRET = "hf_NotToBeSeenAnywhere0123456789"
TELLS_ITS_SECRET = (
    "import os, sys, time\n"
    "print('token', os.environ['MY_TOKEN'], flush=True)\n"
    "print('fingerprint', sum(os.environ['MY_TOKEN'].encode()), flush=True)\n"
    "time.sleep(600)"
)
SLOW_TALKER = "import time\nfor n in range(40): print('line', n, flush=True); time.sleep(0.05)"


def consoles_of(profile: Path) -> list[str]:
    """Consoles that were started with this profile and still run."""
    shown = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, check=True, text=True).stdout
    return [line for line in shown.splitlines() if f"launch {profile} --wait" in line and "tmux" not in line]


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


def test_a_secret_reaches_the_server_and_nothing_else(
    verbs: Verbs, tmp_path: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_profile(tmp_path, "p", [sys.executable, "-c", TELLS_ITS_SECRET], secrets={"MY_TOKEN": "env:LOCAL"})
    done = verbs("launch", str(path))
    assert (done.status, "export LOCAL=..." in done.problem) == (2, True)
    monkeypatch.setenv("LOCAL", SECRET)
    launch_id = verbs("launch", str(path), "--json").json[0]["launch_id"]
    monkeypatch.delenv("LOCAL")
    wanted = f"fingerprint {sum(SECRET.encode())}\n"
    wait_until(lambda: wanted in verbs("logs", launch_id).out, what="the server has its secret")
    commands = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, check=True).stdout
    assert SECRET.encode() not in commands
    holders = [p for p in isolated_home.rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]
    assert [p.name for p in holders] == ["server.log"], "only what the server itself wrote may hold it"
    assert verbs("logs", launch_id).out.splitlines()[0] == "token " + "*" * len(SECRET)
    assert verbs("stop", launch_id).status == 0


def test_a_port_is_promised_before_it_is_held(verbs: Verbs, tmp_path: Path) -> None:
    port = free_port()
    path = write_profile(tmp_path, "slow", victim_argv(), port=port)
    launch_id = verbs("launch", str(path)).out.strip()
    done = verbs("launch", str(path))
    assert done.status == 5
    assert f"port {port} belongs to slow (launch {launch_id}, started by " in done.problem
    done = verbs("launch", str(path), "--dry-run")
    assert (done.status, f"stop: port {port} belongs to slow" in done.out) == (1, True)
    assert verbs("stop", launch_id).status == 0
    assert verbs("launch", str(path), "--dry-run").status == 0


def test_following_ends_with_the_launch_and_misses_nothing(verbs: Verbs, tmp_path: Path) -> None:
    launch_id = verbs("launch", str(write_profile(tmp_path, "p", [sys.executable, "-c", SLOW_TALKER]))).out.strip()
    follower = start_console("logs", launch_id, "-f")
    out, err = follower.communicate(timeout=60)
    assert (follower.returncode, err) == (0, b"")
    assert out.decode().splitlines() == [f"line {n}" for n in range(40)]
    assert verbs("logs", launch_id, "-n", "2").out == "line 38\nline 39\n"
    numbered = verbs("logs", launch_id, "--json").out.splitlines()
    assert numbered[9] == '{"line_no": 10, "text": "line 9"}'


def test_an_exit_status_that_nobody_saw_is_unknown(verbs: Verbs, tmp_path: Path) -> None:
    path = write_profile(tmp_path, "p", victim_argv())
    view = verbs("launch", str(path), "--json").json[0]
    folder = Path(view["log_path"]).parent
    pid = {name: int(re.search(r"pid=(\d+)", (folder / name).read_text())[1]) for name in ("wrapper", "process")}  # type: ignore[index]  # the files hold it
    subprocess.run(["kill", "-KILL", str(pid["wrapper"]), str(pid["process"])], check=True)
    view = wait_until(
        lambda: next((v for v in verbs("status", "--all", "--json").json if v["state"] == "failed"), None),
        what="it is seen to have failed",
    )
    assert (view["launch_id"], view["exit_status"]) == (folder.name, None)


def test_on_a_terminal_one_line_is_redrawn(
    verbs: Verbs, tmp_path: Path, start_tmux: Callable[..., Tmux], monkeypatch: pytest.MonkeyPatch
) -> None:
    bar = (
        "import sys, time\n"
        "for n in range(601):\n"
        "    sys.stderr.write(f'\\rLoading safetensors checkpoint shards: {n*100//600:3d}% Completed"
        " | {n}/600 [{n//60:02d}:{n%60:02d}<{(600-n)//60:02d}:{(600-n)%60:02d},  1.00it/s]')\n"
        "    sys.stderr.flush(); time.sleep(0.1)\n"
        "time.sleep(600)"
    )
    path = write_profile(tmp_path, "bars", [sys.executable, "-c", bar])
    tmux = start_tmux([sys.executable, "-m", "specconsole", "launch", str(path), "--wait"], columns=110, rows=20)
    shown = re.compile(r"bars: loading \[█+░+\] weights \(target\) \d+/600 shards, .* left")
    wait_until(lambda: shown.search(tmux.screen()), what="a bar with its phase and its end")
    assert consoles_of(path)
    before = tmux.screen()
    wait_until(lambda: tmux.screen() != before, what="it moves on")
    after = tmux.screen()
    assert after.count("bars: loading") == 1, "it is redrawn in its place"
    tmux.keys("C-c")
    wait_until(lambda: not consoles_of(path), what="an interrupt ends the waiting")
    assert verbs("status", "bars", "--json").json[0]["state"] in ("loading", "stalled")
    assert verbs("stop", "bars").status == 0
