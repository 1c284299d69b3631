"""Launch folders, whole and broken, as a real `sh` reports them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from specconsole.core.launching import probes
from specconsole.core.launching.folder import (
    LaunchRecord,
    StopMark,
    parse_observed,
    parse_process,
    parse_start,
    parse_stop_mark,
    stop_mark_line,
)  # fmt: skip
from specconsole.core.launching.script import MACHINE
from specconsole.core.launching.spec import LaunchSpec
from specconsole.errors import BadInputError, RefusedError, SpecconsoleError

SPEC = LaunchSpec("20261129-140211-3f9a2c", "p", "other", ("x",), port=1234, owner="a@b")


@pytest.fixture
def root(isolated_home: Path) -> Path:
    name = subprocess.run(["sh", "-c", MACHINE + "machine"], capture_output=True, check=True, text=True).stdout
    folder = isolated_home / ".local/state/specconsole/launches" / name
    folder.mkdir(parents=True)
    return folder


def observe(*launch_ids: str) -> tuple[LaunchRecord, ...]:
    words = ["sh", "-s", "--", *launch_ids]
    done = subprocess.run(words, input=probes.OBSERVE.encode(), capture_output=True, check=True)
    assert not done.stderr
    return parse_observed(done.stdout)


def test_no_folder_at_all_is_no_launch(isolated_home: Path) -> None:
    assert observe() == ()
    assert observe("nope") == ()


def test_every_broken_form_is_shown_and_hides_no_other(root: Path) -> None:
    broken: dict[str, dict[str, bytes]] = {
        "a-empty": {},
        "b-cut": {"requested.json": SPEC.to_json_line().encode()[:40]},
        "c-binary": {"requested.json": os.urandom(3000), "process": os.urandom(100), "exit": b"\xff\n", "stop": b"{"},
        "d-no-newline": {"requested.json": SPEC.to_json_line().encode(), "exit": b"3"},
        "e-empty-files": {"requested.json": b"", "process": b"", "exit": b"", "stop": b""},
        "f-pid-of-nobody": {"requested.json": SPEC.to_json_line().encode(), "process": b"pid=1 start_ticks=1\n"},
    }
    for name, files in broken.items():
        (root / name).mkdir()
        for file, data in files.items():
            (root / name / file).write_bytes(data)
    (root / "whole").mkdir()
    (root / "whole" / "requested.json").write_text(SPEC.to_json_line() + "\n")
    (root / "stray-file").write_text("not a launch")
    found = {record.launch_id: record for record in observe()}
    assert sorted(found) == [*sorted(broken), "whole"]
    assert found["a-empty"].problem.startswith("half written")
    for name in ("b-cut", "c-binary", "e-empty-files"):
        assert found[name].spec is None
        assert found[name].problem
    assert found["c-binary"].stop == StopMark("", 0.0)
    assert (found["d-no-newline"].exit_status, found["d-no-newline"].problem) == (3, "")
    assert found["f-pid-of-nobody"].alive is None
    assert found["whole"].problem == ""
    assert found["whole"].spec == SPEC
    assert [record.launch_id for record in observe("whole")] == ["whole"]


def test_alive_means_the_same_process_and_not_its_number(root: Path) -> None:
    folder = root / "mine"
    folder.mkdir()
    (folder / "requested.json").write_text(SPEC.to_json_line())
    stat = Path("/proc/self/stat").read_text().rsplit(") ", 1)[1].split()
    boot = observe("mine")[0].moment.boot
    for ticks, here, alive in ((stat[19], boot, True), ("1", boot, False), (stat[19], "another", False)):
        (folder / "process").write_text(f"pid={os.getpid()} start_ticks={ticks} boot={here} uptime=1.0\n")
        record = observe("mine")[0]
        assert record.alive is alive
        assert ("started anew" in record.problem) == (here == "another")
    assert record.age_s is None, "a process of another boot has no age"


@pytest.mark.parametrize("size", range(0, 60, 7))
def test_a_cut_process_record_is_none(size: int) -> None:
    assert parse_process("pid=12 start_ticks=3456 boot=abc/pid:[4026531836] uptime=12.34"[:size]) is None


def test_stop_marks_round_trip() -> None:
    mark = StopMark("ann@laptop", 12.5)
    assert parse_stop_mark(stop_mark_line(mark)) == mark


@pytest.mark.parametrize(
    ("output", "error", "text"),
    [
        (b"error=state-folder\nmkdir: cannot create: Read-only file system\n", BadInputError, "Read-only file system"),
        (b"error=write\nsh: printf: I/O error: No space left on device\n", BadInputError, "No space left"),
        (b"error=launch-folder\nmkdir: File exists\n", RefusedError, "File exists"),
        (b"error=no-setsid\n", BadInputError, "setsid"),
        (b"", SpecconsoleError, "whether a server runs is unknown"),
        (b"folder=/x\n", SpecconsoleError, "whether a server runs is unknown"),
    ],
)
def test_a_start_that_failed_says_why(output: bytes, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        parse_start(output, "gpu-a")
    assert parse_start(b"folder=/x\nstarted=1\n", "gpu-a") == "/x"
