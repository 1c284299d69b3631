"""`specconsole log` as a program: exit status, both outputs, growing files, standard input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from specconsole.cli.main import main
from tests.core.reading import lines_for_tests as pool
from tests.support.sshd_lab import SshdLab

START = "\n".join(pool.SGLANG_START[:7]) + "\n"
COMMAND = [sys.executable, "-m", "specconsole", "log"]
DEADLINE_S = 60


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text(START)
    return path


def read_json(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, object]:
    assert main(["log", *argv, "--json"]) == 0
    out = capsys.readouterr()
    assert out.err == ""
    shape = json.loads(out.out)
    assert isinstance(shape, dict)
    return shape


def test_json_has_every_key_of_the_contract(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = read_json(capsys, str(log))
    assert set(shape) >= {
        "engine", "phase", "part", "progress", "ready_eta_s", "failure", "warnings", "metrics", "server", "timeline",
        "suspect", "ranks", "starts", "basis", "lines", "bytes",
    }  # fmt: skip
    assert shape["engine"] == "sglang"
    assert shape["lines"] == START.count("\n")
    assert shape["bytes"] == len(START.encode())


def test_at_end_dead_and_an_exit_code_mean_that_it_is_gone(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_json(capsys, str(log))["failure"] is None
    for argv in (["--at-end", "dead"], ["--exit-code", "137"]):
        shape = read_json(capsys, str(log), *argv)
        assert shape["phase"] == "failed"
        assert isinstance(shape["failure"], dict)
        assert shape["failure"]["class"] == "killed"


def test_a_person_reads_phase_cause_and_what_was_before(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text(START + "\n".join(pool.TROUBLE[i] for i in (0, 2, 6, 7)) + "\n")
    assert main(["log", str(log)]) == 0
    out = capsys.readouterr().out
    assert "failed: gpu-oom" in out
    assert "cause, line 10:" in out
    assert "just before:" in out
    assert "what to try:" in out
    assert "Received sigquit" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("argv", "words"),
    [(["missing.log"], "No such file"), (["."], "directory"), (["x", "--engine", "nonesuch"], "engine")],
)
def test_what_cant_be_read_is_one_line_and_status_2(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["log", *argv]) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert words in out.err
    assert out.err.count("\n") == 1


def test_an_empty_file_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.log").touch()
    shape = read_json(capsys, str(tmp_path / "empty.log"))
    assert (shape["engine"], shape["phase"], shape["lines"]) == ("unknown", "starting", 0)
    assert main(["log", str(tmp_path / "empty.log")]) == 0


def test_standard_input() -> None:
    done = subprocess.run([*COMMAND, "-", "--json"], input=START.encode(), capture_output=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["server"]["model"] == "/m/target"


def test_a_file_on_a_host_is_read_over_its_transport(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = read_json(capsys, f"local:{log}")
    assert shape["engine"] == "sglang"
    assert main(["log", f"local:{log}.missing", "--json"]) != 0
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture
def followed(log: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen([*COMMAND, str(log), "--follow"], stdout=subprocess.PIPE, text=True, env=env)
    try:
        yield log, process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def lines_until(process: subprocess.Popen[str], words: str) -> list[str]:
    assert process.stdout is not None
    seen: list[str] = []
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        line = process.stdout.readline()
        seen.append(line)
        if words in line:
            return seen
        assert line, seen
    raise AssertionError(seen)


def test_a_growing_file_is_followed_through_rotation(followed: tuple[Path, subprocess.Popen[str]]) -> None:
    log, process = followed
    lines_until(process, "kv-cache")
    with log.open("a") as file:
        file.write("\n".join(pool.SGLANG_START[8:9]) + "\n")
    lines_until(process, "graph-capture")
    log.rename(log.with_suffix(".1"))
    with log.with_suffix(".1").open("a") as file:
        file.write("\n".join(pool.SGLANG_START[9:11]) + "\n")
    log.write_text("\n".join(pool.SGLANG_START[11:]) + "\n")
    lines_until(process, "ready")


def test_a_pipe_that_closes_early_is_no_error(log: Path) -> None:
    process = subprocess.Popen([*COMMAND, str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    process.wait(DEADLINE_S)
    process.stderr.close()
    assert b"Traceback" not in error


def test_a_file_on_a_real_ssh_host_is_followed_through_rotation(ssh_config: Path, sshd: SshdLab) -> None:
    with tempfile.TemporaryDirectory(dir=sshd.homes[sshd.accounts[0]]) as folder:
        log = Path(folder, "server.log")
        log.write_text(START)
        # Strange host keys are asked about, which nobody answers here: the account whose key is known.
        place = f"{sshd.accounts[0]}:{log}"
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "HOME": str(ssh_config)}
        process = subprocess.Popen([*COMMAND, place, "--follow"], stdout=subprocess.PIPE, text=True, env=env)
        try:
            lines_until(process, "kv-cache")
            with log.open("a") as file:
                file.write("\n".join(pool.SGLANG_START[8:9]) + "\n")
            lines_until(process, "graph-capture")
            log.rename(log.with_suffix(".log.1"))
            log.write_text("\n".join(pool.SGLANG_START[9:]) + "\n")
            lines_until(process, "ready")
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE_S) == 130
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
