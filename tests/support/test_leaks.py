"""The guards see what they are there to see."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from blockbuster import BlockingError

from tests.support.fixtures_processes import StartVictim
from tests.support.leaks import (
    ALONE_VARIABLE,
    REPOSITORY,
    RUN_VARIABLE,
    Surroundings,
    left_behind,
    processes_of_this_run,
)
from tests.support.waiting import is_alive, wait_gone


def test_a_daemon_is_found_by_its_environment_named_and_killed(
    start_victim: StartVictim, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Surroundings()
    monkeypatch.setattr("tests.support.leaks.GRACE_S", 0.0)
    victim = start_victim("--daemons", "1", environment={"SPECCONSOLE_LAUNCH": "L1"})
    daemon = next(pid for pid, role in victim.pids.items() if role == "daemon")
    leaks = left_behind(before)
    assert any(f"process {daemon}:" in leak and "(launch L1)" in leak for leak in leaks)
    assert len(leaks) == 2
    victim.process.wait(10)
    wait_gone(daemon)


def test_what_another_run_started_is_not_ours() -> None:
    before = Surroundings()
    other = subprocess.Popen(["sleep", "60"], env={**os.environ, RUN_VARIABLE: "another"})
    try:
        assert other.pid not in processes_of_this_run(besides=before.pids)
    finally:
        other.kill()
        other.wait()


def test_an_open_listener_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        leaks = left_behind(Surroundings(listening=set()))
        assert f"listening on port {listener.getsockname()[1]}" in leaks


def test_a_run_that_leaves_a_file_in_tmp_fails(tmp_path: Path) -> None:
    stray = Path(f"/tmp/specconsole-leak-{os.getpid()}")
    fine = tmp_path / "test_fine.py"
    fine.write_text(f"import pathlib\ndef test_one(): pathlib.Path({str(stray)!r}).touch()\n")
    try:
        run = run_pytest(fine, **{ALONE_VARIABLE: "1"})
    finally:
        stray.unlink(missing_ok=True)
    assert f"file {stray}" in run
    assert "1 passed" in run


async def test_blocking_in_product_code_raises(tmp_path: Path) -> None:
    """Compiled under a file name inside the package, so that blockbuster takes it for product code."""
    import specconsole

    source = "import time\ndef nap(): time.sleep(0.001)\n"
    scope: dict[str, object] = {}
    exec(compile(source, f"{Path(specconsole.__file__).parent}/imagined.py", "exec"), scope)
    nap = scope["nap"]
    assert callable(nap)
    with pytest.raises(BlockingError):
        nap()
    await asyncio.to_thread(nap)


BAD_TESTS = """
import asyncio, os, socket, subprocess, sys

async def test_leaves_a_task(monkeypatch):
    monkeypatch.setattr("tests.support.fixtures_guards.TASK_GRACE_S", 0.1)
    global task
    task = asyncio.create_task(asyncio.sleep(60))

def test_leaves_a_process(monkeypatch):
    monkeypatch.setattr("tests.support.leaks.GRACE_S", 0.1)
    subprocess.Popen(["sleep", "60"], start_new_session=True).returncode = 0

def test_leaves_a_listener():
    global listener
    listener = socket.create_server(("127.0.0.1", 0))

def test_is_fine():
    pass
"""


def test_the_guards_fail_the_tests_that_leave_something(tmp_path: Path) -> None:
    """A pytest of its own over tests that leak; the last one must not be blamed for the others."""
    bad = tmp_path / "test_bad.py"
    bad.write_text(BAD_TESTS)
    run = run_pytest(bad)
    for text in ("tasks left running:", ": sleep 60", "listening on port", "4 passed, 3 errors"):
        assert text in run, run


def test_a_suite_that_takes_too_long_fails(tmp_path: Path) -> None:
    quick = tmp_path / "test_quick.py"
    quick.write_text("def test_one(): pass\n")
    assert "the suite runs for over 0 s" in run_pytest(quick, SPECCONSOLE_TEST_LIMIT_S="0")


def run_pytest(file: Path, **environment: str) -> str:
    """Output of a run of `file` under this suite's fixtures and settings; it must fail."""
    beside_workers = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST_")}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(REPOSITORY / "pyproject.toml"), "-p", "tests.conftest", str(file)],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=100, check=False,
        env={**beside_workers, RUN_VARIABLE: file.stem, **environment},
    )  # fmt: skip
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stdout


async def test_async_tests_are_guarded(request: pytest.FixtureRequest) -> None:
    assert {"no_task_left", "nothing_blocks"} <= set(request.node.fixturenames)
    assert is_alive(os.getpid())


async def test_an_import_may_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a verb does that imports what it needs when it is asked for it."""
    import specconsole

    (tmp_path / "imagined_library.py").write_text("import time, os\ntime.sleep(0.001)\nwhere = os.getcwd()\n")
    monkeypatch.syspath_prepend(tmp_path)
    source = "def load():\n    import imagined_library\n    return imagined_library.where\n"
    scope: dict[str, object] = {}
    exec(compile(source, f"{Path(specconsole.__file__).parent}/imagined.py", "exec"), scope)
    load = scope["load"]
    assert callable(load)
    assert load() == os.getcwd()
