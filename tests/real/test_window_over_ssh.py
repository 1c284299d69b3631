"""The day in the window, by keys, in a real terminal over a real sshd, with a real llama.cpp server.

Add the host, compare and trust its key, launch, watch until it answers, kill -9 the console, open it again, stop.
The witnesses are not ours: ssh-keygen, the server's own HTTP answers, /proc.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from specconsole.demo.models import ModelFiles
from tests.support.leaks import RUN_VARIABLE
from tests.support.sshd_lab import SshdLab
from tests.support.tmux import Tmux
from tests.support.waiting import free_port, wait_until

ROOT = Path(__file__).parents[2]

PROFILE = """
engine = "llamacpp"
description = "a tiny model, for this test"
host = "gpu-a"
port = {port}
command = ["{python}", "-m", "specconsole.demo.llama_server"]
working_dir = "{root}"
model = "{target}"
draft_model = "{draft}"
grace_s = 5

[args]
ctx_size = 2048
threads = 1
"""


def health(port: int) -> int | None:
    """What the server itself says; None when nothing listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def launch_processes() -> list[int]:
    """Processes of this test run whose environment says that they belong to a launch."""
    found = []
    run = f"{RUN_VARIABLE}={os.environ[RUN_VARIABLE]}".encode()
    for entry in Path("/proc").iterdir():
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            if run in variables and any(v.startswith(b"SPECCONSOLE_LAUNCH=") for v in variables):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def console_pid(tmux: Tmux) -> int:
    pane = int(tmux._tmux("display-message", "-p", "#{pane_pid}"))
    return int(Path(f"/proc/{pane}/task/{pane}/children").read_text().split()[0])


@pytest.mark.skipif(os.geteuid() != 0, reason="launches as the lab's root account")
def test_a_days_work_by_keys(
    sshd: SshdLab,
    isolated_home: Path,
    llama_models: ModelFiles,
    start_tmux: Callable[..., Tmux],
    specconsole_argv: list[str],
) -> None:
    sshd.client_config(isolated_home, alias="gpu-a", user=sshd.accounts[0], trust=False)
    port = free_port()
    profiles = isolated_home / ".config" / "specconsole" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "aa-tiny.toml").write_text(
        PROFILE.format(
            port=port, python=sys.executable, root=ROOT, target=llama_models.target, draft=llama_models.draft
        )
    )
    before = launch_processes()
    environment = {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(isolated_home / ".config")}
    tmux = start_tmux(specconsole_argv, columns=130, rows=42, cwd=ROOT, environment=environment)
    tmux.wait_for("local ●")

    tmux.keys("H")
    tmux.wait_for("add a host")
    tmux.type_text("gpu-a")
    tmux.keys("Enter")
    tmux.wait_for("gpu-a ?")
    tmux.keys("T")
    asked = tmux.wait_for("trust the key of gpu-a")
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(sshd.folder / "host_ed25519.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert shown in asked
    tmux.keys("y")
    tmux.wait_for("gpu-a ●")

    tmux.keys("l")
    tmux.wait_for("ctx_size=2048")
    tmux.keys("C-l")
    tmux.wait_for("aa-tiny @ gpu-a")
    tmux.wait_for("answers after", timeout_s=90)
    assert health(port) == 200
    ours = [pid for pid in launch_processes() if pid not in before]
    assert ours

    os.kill(console_pid(tmux), signal.SIGKILL)
    tmux.exit_status()
    assert health(port) == 200
    assert [pid for pid in launch_processes() if pid not in before] == ours

    again = start_tmux(specconsole_argv, columns=130, rows=42, cwd=ROOT, environment=environment)
    again.wait_for("aa-tiny @ gpu-a", timeout_s=60)
    again.wait_for("answers after", timeout_s=60)
    again.keys("K")
    again.wait_for("stop aa-tiny?")
    again.keys("y")
    again.wait_for("nothing is left", timeout_s=60)
    wait_until(lambda: not [pid for pid in launch_processes() if pid not in before], what="no process of it is left")
    assert health(port) is None
    again.keys("q")
    assert again.exit_status() == 0
