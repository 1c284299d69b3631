"""A real server outlives every console: launched, its console killed at random moments, found again, its log whole to
the byte, stopped, and nothing of it left. Witnesses: /proc, the bytes of the server's own file, and the socket.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from specconsole.demo.models import ModelFiles
from tests.cli.console import Verbs, start_console, write_profile
from tests.support.llama import MODULE
from tests.support.waiting import environ_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


@pytest.fixture
def profile(tmp_path: Path, llama_models: ModelFiles) -> Path:
    return write_profile(
        tmp_path, "tiny", [sys.executable, "-m", MODULE], engine="llamacpp", grace_s=10,
        model=str(llama_models.target), draft_model=str(llama_models.draft),
    )  # fmt: skip


def marked(launch_id: str | None = None) -> dict[int, str]:
    """Processes of this test (its HOME is its own) whose environment carries a launch's id, by /proc alone."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        environment = environ_of(int(name))
        value = environment.get(b"SPECCONSOLE_LAUNCH", b"").decode()
        if value and environment.get(b"HOME") == os.environ["HOME"].encode() and launch_id in (None, value):
            found[int(name)] = value
    return found


def folders(home: Path) -> list[Path]:
    return sorted((home / ".local/state/specconsole/launches").glob("*/*"))


def killed_at(words: list[str], after_s: float) -> None:
    """A console with these words, SIGKILLed after a while (or ended before)."""
    console = start_console(*words)
    deadline = time.monotonic() + after_s
    while time.monotonic() < deadline and console.poll() is None:
        time.sleep(0.01)
    console.kill()
    console.communicate()


@contextmanager
def talking(port: int) -> Iterator[None]:
    """Requests all the while, so that the log grows under the consoles' hands."""
    over = threading.Event()

    def talk() -> None:
        while not over.is_set():
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/completion",
                json.dumps({"prompt": "one two three", "n_predict": 24}).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                answer.read()
            time.sleep(0.05)

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def rounds_of_kills(verbs: Verbs, profile: Path, home: Path, *, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    killed_at(["launch", str(profile), "--wait"], rng.uniform(1.0, 3.0))
    # The host's part of a start goes on without its console, for a moment.
    deadline = time.monotonic() + 2.0
    while not folders(home) and time.monotonic() < deadline:
        time.sleep(0.05)
    if not folders(home):
        # It was killed before it had begun: then nothing at all was started.
        assert marked() == {}
        killed_at(["launch", str(profile), "--wait"], 30.0)
    assert len(folders(home)) == 1
    launch_id = folders(home)[0].name
    done = verbs("attach", launch_id, "--timeout", "60", "--json")
    assert (done.status, done.json["state"]) == (0, "answers"), done.err
    port = done.json["port"]
    server_pids = set(marked(launch_id))
    with talking(port):
        for _ in range(kills - 1):
            words = rng.choice((["attach", launch_id, "--to-end"], ["logs", launch_id, "-f"], ["status"]))
            killed_at(words, rng.uniform(0.2, 2.5))
            assert set(marked(launch_id)) == server_pids, "a killed console took something with it"
    found = verbs("status", "--json").json
    assert [(view["launch_id"], view["state"], view["ours"]) for view in found] == [(launch_id, "answers", True)]
    log = Path(found[0]["log_path"]).read_bytes()
    shown = verbs("logs", launch_id, "--raw")
    assert shown.out.encode() == log[: len(shown.out.encode())]
    stopped = verbs("stop", launch_id, "--json")
    assert (stopped.status, stopped.json["left_over"], stopped.json["killed"]) == (0, [], False)
    assert marked(launch_id) == {}
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    whole = Path(found[0]["log_path"]).read_bytes()
    assert verbs("logs", launch_id, "--raw").out.encode() == whole
    spools = [path for path in (home / ".local/state/specconsole/spool").rglob("log") if path.parent.name == launch_id]
    assert [path.read_bytes() for path in spools] == [whole]
    reading = json.loads(verbs("log", str(spools[0]), "--json", "--at-end", "dead").out)
    last = verbs("status", launch_id, "--all", "--json").json[0]
    assert (last["state"], last["exit_status"]) == ("stopped", 0)
    assert (last["reading"]["phase"], last["reading"]["bytes"]) == (reading["phase"], len(whole))
    assert last["reading"]["timeline"] == reading["timeline"]


def test_ten_consoles_are_killed_and_the_server_is_found_again(
    verbs: Verbs, profile: Path, isolated_home: Path
) -> None:
    rounds_of_kills(verbs, profile, isolated_home, kills=10, seed=20261129)


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10))
def test_again_with_other_moments(verbs: Verbs, profile: Path, isolated_home: Path, seed: int) -> None:
    rounds_of_kills(verbs, profile, isolated_home, kills=10, seed=seed)


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_a_console_killed_while_it_starts_leaves_all_or_nothing(
    verbs: Verbs, profile: Path, isolated_home: Path
) -> None:
    """Twenty kills around the moment of the start itself."""
    rng = random.Random(7)
    for _ in range(20):
        before = set(folders(isolated_home))
        console = start_console("launch", str(profile), "--wait")
        time.sleep(rng.uniform(0.3, 1.6))
        os.kill(console.pid, signal.SIGKILL)
        console.communicate()
        time.sleep(1.0)
        new = set(folders(isolated_home)) - before
        found = {view["launch_id"]: view for view in verbs("status", "--json").json}
        assert {folder.name for folder in new} == set(found)
        assert set(marked().values()) == set(found), "a server without a folder, or a folder without its server"
        for launch_id in found:
            assert verbs("stop", launch_id).status == 0
        assert marked() == {}
