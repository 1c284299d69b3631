"""The command line's frame: verbs by listing, errors as single lines with their exit status."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from specconsole.cli import main as frame
from specconsole.errors import EXIT_CANCELLED, BadInputError, NotFoundError


def run_verb(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    def run(args: argparse.Namespace) -> int:
        raise error

    verb = SimpleNamespace(HELP="a verb of the test's", add_arguments=lambda parser: None, run=run)
    monkeypatch.setattr(frame, "verb_names", lambda: ["probe"])
    monkeypatch.setattr(frame, "load_verb", lambda name: verb)
    return frame.main(["probe"])


def test_errors_of_several_hosts_are_a_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = ExceptionGroup("hosts", [BadInputError("no such flag", where="a.toml:3", try_="--tp")])
    status = run_verb(monkeypatch, ExceptionGroup("all", [inner, NotFoundError("no launch x", where="gpu-a")]))
    assert status == 4
    assert capsys.readouterr().err.splitlines() == [
        "specconsole probe: a.toml:3: no such flag (try: --tp)",
        "specconsole probe: gpu-a: no launch x",
    ]


def test_a_bug_among_them_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExceptionGroup):
        run_verb(monkeypatch, ExceptionGroup("all", [BadInputError("x"), ZeroDivisionError()]))


def test_an_interrupt_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_verb(monkeypatch, KeyboardInterrupt()) == EXIT_CANCELLED
    assert capsys.readouterr().err == "specconsole probe: interrupted\n"


_INTERRUPTED_WHILE_LOADING = """
import importlib.abc, os, signal, sys
from specconsole.__main__ import main
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "specconsole.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["specconsole", "--version"]
main()
"""


def test_an_interrupt_while_modules_load_is_no_traceback() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_WHILE_LOADING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")


def test_every_verb_of_the_folder_has_what_the_frame_needs() -> None:
    for name in frame.verb_names():
        module = frame.load_verb(name)
        module.add_arguments(argparse.ArgumentParser())
        assert module.HELP
        assert callable(module.run)


@pytest.mark.parametrize(
    ("shell", "want"),
    [
        ("$S status --json | true; exit ${PIPESTATUS[0]}", (141, 0)),
        ("$S status >/dev/full", (1,)),
        ("$S status >&- 2>&- <&-", (0,)),
        ("$S log /no/such 2>/dev/full", (2,)),
    ],
)
def test_streams_that_are_closed_full_or_left_give_a_status_and_no_traceback(
    tmp_path: Path, shell: str, want: tuple[int, ...]
) -> None:
    done = subprocess.run(
        ["bash", "-c", shell],
        env={**os.environ, "HOME": str(tmp_path), "S": f"{sys.executable} -m specconsole"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in want, done.stderr
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr


def test_a_reader_that_leaves_ends_a_verb_from_inside_its_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[object] = []
    monkeypatch.setattr("specconsole.cli.streams.drop", dropped.append)
    assert run_verb(monkeypatch, ExceptionGroup("tasks", [BrokenPipeError()])) == 141
    assert len(dropped) == 1
