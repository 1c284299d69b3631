"""What can be wrong with a launch, on real processes: one clear line each, nothing lost, no traceback."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from specconsole.cli.main import main
from specconsole.core.launching.script import MACHINE
from specconsole.wiring import open_supervisor
from tests.cli.console import Verbs, start_console, write_profile
from tests.support.victims import victim_argv
from tests.support.waiting import free_port, wait_until


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


@pytest.fixture
def launches(isolated_home: Path) -> Path:
    """The folder of this machine's launches; made here."""
    name = subprocess.run(["sh", "-c", MACHINE + "machine"], capture_output=True, check=True, text=True).stdout
    folder = isolated_home / ".local/state/specconsole/launches" / name
    folder.mkdir(parents=True)
    return folder


def test_an_unknown_key_names_the_nearest(verbs: Verbs, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('engine = "sglang"\nmodle = "/m"\n')
    done = verbs("launch", str(path))
    assert done.status == 2
    assert done.problem == f"specconsole launch: {path}:2: `modle` is not a known key (try: did you mean `model`?)"


def test_a_wrong_type_names_file_line_and_key(verbs: Verbs, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('engine = "sglang"\n\nport = "30000"\n')
    done = verbs("launch", str(path))
    assert (done.status, done.problem) == (
        2,
        f'specconsole launch: {path}:3: `port` must be a whole number, not the text "30000"',
    )


def test_broken_toml_and_no_file_at_all(verbs: Verbs, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text('engine = "sglang"\nport = \n')
    done = verbs("launch", str(path))
    assert done.status == 2
    assert f"{path}:2: " in done.problem
    path.write_bytes(b'engine = "x"\n# \xff\n')
    assert f"{path}:2: is not UTF-8" in verbs("launch", str(path)).problem
    assert verbs("launch", str(tmp_path / "none.toml")).status == 4
    done = verbs("launch", "dmeo")
    assert done.status == 4
    assert "did you mean demo" in done.problem


def test_a_missing_binary_is_said_before_anything_starts(verbs: Verbs, tmp_path: Path, isolated_home: Path) -> None:
    done = verbs("launch", str(write_profile(tmp_path, "p", ["no-such-server"])))
    assert done.status == 2
    assert "no-such-server is not on the host" in done.problem
    (tmp_path / "plain.txt").write_text("x")
    done = verbs("launch", str(write_profile(tmp_path, "p", [str(tmp_path / "plain.txt")])))
    assert "no program that this account may run" in done.problem
    done = verbs("launch", str(write_profile(tmp_path, "p", [sys.executable], model="/no/such/model")))
    assert "model /no/such/model does not exist" in done.problem
    assert not list((isolated_home / ".local/state/specconsole").glob("launches/*/*"))


def test_a_server_that_dies_at_once(verbs: Verbs, tmp_path: Path) -> None:
    code = "import sys; print('no luck today', file=sys.stderr); sys.exit(3)"
    path = write_profile(tmp_path, "p", [sys.executable, "-c", code])
    done = verbs("launch", str(path), "--wait", "--timeout", "60", "--json")
    assert done.status == 1
    view = done.json[0]
    assert (view["state"], view["exit_status"], view["left_over"]) == ("failed", 3, [])
    assert "p: failed:" in done.err
    assert verbs("logs", view["launch_id"]).out == "no luck today\n"
    assert "failed" in verbs("status", "--all").out


def test_a_held_port_names_its_holder(verbs: Verbs, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        done = verbs("launch", str(write_profile(tmp_path, "p", [sys.executable])), "--set", f"port={port}")
    assert done.status == 5
    assert re.search(rf"port {port} is held by pid {os.getpid()} \(\w+, \d+ .*\): ", done.problem)
    assert "--set port=0" in done.problem


@pytest.fixture
def tiny_disk(launches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of 64 KiB under the launches; the console's own files are elsewhere."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "console-state"))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(launches)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    yield launches
    subprocess.run(["umount", "-l", str(launches)], check=True)


def test_a_full_disk_starts_nothing_and_leaves_nothing(verbs: Verbs, tmp_path: Path, tiny_disk: Path) -> None:
    (tiny_disk / "full").write_bytes(b"x" * (64 * 1024 - 4096 * 3))
    done = verbs("launch", str(write_profile(tmp_path, "p", [sys.executable, "-c", "input()"])))
    assert done.status == 2
    assert re.search(r"can't write the launch folder: .*; [0-8] KiB free there", done.problem)
    assert "free space" in done.problem
    assert [path.name for path in tiny_disk.iterdir()] == ["full"]


def test_an_exit_status_is_recorded_on_a_disk_that_the_server_filled(
    verbs: Verbs, tmp_path: Path, tiny_disk: Path
) -> None:
    code = (
        "import sys\n"
        "try:\n    open('fill', 'wb', buffering=0).write(b'x' * 10**6); open('fill2', 'wb', buffering=0).write(b'x')\n"
        "except OSError: pass\n"
        "sys.exit(7)"
    )
    path = write_profile(tmp_path, "p", [sys.executable, "-c", code], working_dir=str(tiny_disk))
    done = verbs("launch", str(path), "--wait", "--timeout", "60", "--json")
    assert done.status == 1
    assert done.json[0]["exit_status"] == 7


def test_a_half_written_folder_is_shown_and_hides_nothing(verbs: Verbs, tmp_path: Path, launches: Path) -> None:
    half = launches / "20261129-000000-abcdef"
    half.mkdir()
    (half / "requested.json").write_text('{"schema": 1, "launch_id": "202611')
    os.utime(half, (time.time() - 3600, time.time() - 3600))
    done = verbs("status", "--all", "--json")
    assert done.status == 0
    assert [(view["launch_id"], view["state"]) for view in done.json] == [(half.name, "failed")]
    assert "not whole" in done.json[0]["health_detail"]
    assert half.name in verbs("status", "--all").out
    assert verbs("stop", half.name).status == 0
    assert (half / "requested.json").exists()


def test_a_state_folder_that_cannot_be_written(verbs: Verbs, tmp_path: Path, isolated_home: Path) -> None:
    (isolated_home / ".local").mkdir()
    (isolated_home / ".local/state").write_text("a file stands in the way")
    done = verbs("launch", str(write_profile(tmp_path, "p", [sys.executable])))
    assert done.status == 2
    assert "state" in done.problem
    assert "check its owner and mode" in done.problem


def test_a_hosts_state_folder_that_cannot_be_written(
    verbs: Verbs, tmp_path: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "console-state"))
    (isolated_home / ".local/state").mkdir(parents=True)
    (isolated_home / ".local/state/specconsole").write_text("a file stands in the way")
    done = verbs("launch", str(write_profile(tmp_path, "p", [sys.executable, "-c", "input()"])))
    assert done.status == 2
    assert "can't keep a lock in the state folder ~/.local/state/specconsole" in done.problem


def test_two_consoles_stop_the_same_launch(verbs: Verbs, tmp_path: Path) -> None:
    path = write_profile(tmp_path, "stubborn", victim_argv("--ignore-term", "--children", "1"), grace_s=3)
    launch_id = verbs("launch", str(path)).out.strip()
    both = [start_console("stop", launch_id, "--json") for _ in range(2)]
    outcomes = [one.communicate(timeout=60) for one in both]
    assert [one.returncode for one in both] == [0, 0], outcomes
    said = [err.decode() for _, err in outcomes]
    assert sum("is already stopping it" in text for text in said) == 1, said
    assert sum("KILL sent" in text for text in said) == 1, said
    assert "Traceback" not in "".join(said)
    done = verbs("stop", launch_id)
    assert (done.status, done.out.endswith("nothing is left; ended by signal KILL\n")) == (0, True)


def test_a_stop_that_is_interrupted_leaves_a_server_that_runs(verbs: Verbs, tmp_path: Path) -> None:
    path = write_profile(tmp_path, "stubborn", victim_argv("--ignore-term"), grace_s=60)
    launch_id = verbs("launch", str(path)).out.strip()
    stopping = start_console("stop", launch_id)
    wait_until(lambda: verbs("status", launch_id, "--json").json[0]["state"] == "stopping", what="it is being stopped")
    stopping.send_signal(2)
    _, err = stopping.communicate(timeout=60)
    assert stopping.returncode == 130
    assert b"given up" in err
    assert verbs("status", launch_id, "--json").json[0]["state"] != "stopping"
    assert verbs("stop", launch_id, "--grace", "0").status == 0


def test_another_persons_launch_is_not_stopped_by_mistake(verbs: Verbs, tmp_path: Path, isolated_home: Path) -> None:
    launch_id = verbs("launch", str(write_profile(tmp_path, "theirs", victim_argv()))).out.strip()
    (isolated_home / ".local/state/specconsole/client-id").write_text("0" * 32)
    done = verbs("stop", launch_id)
    assert done.status == 5
    assert "was started by" in done.problem
    assert verbs("stop", "--all").status == 0
    assert verbs("status").out.startswith(launch_id)
    assert verbs("stop", launch_id, "--theirs", "theirs").status == 0


def test_settings_that_are_none_and_hosts_that_are_none(verbs: Verbs, tmp_path: Path) -> None:
    path = str(write_profile(tmp_path, "p", [sys.executable]))
    assert "is no setting" in verbs("launch", path, "--set", "novalue").problem
    assert verbs("launch", path, "--set", "port=x").status == 2
    assert verbs("stop", "nothing").status == 4
    assert verbs("stop").status == 2
    assert verbs("logs", "nothing").status == 4
    assert verbs("status", "nothing").status == 4
    done = verbs("--read-only", "launch", path)
    assert (done.status, "read-only" in done.problem) == (5, True)
    assert free_port() > 0


def test_a_console_whose_own_disk_is_full_says_so_and_harms_nothing(
    verbs: Verbs, tmp_path: Path, tiny_console_disk: Path
) -> None:
    code = (
        "import time\nfor n in range(30000): print('a line of some length, number', n)\n"
        "print('end', flush=True)\ntime.sleep(600)"
    )
    launch_id = verbs("launch", str(write_profile(tmp_path, "chatty", [sys.executable, "-c", code]))).out.strip()
    view = wait_until(
        lambda: next(
            (v for v in verbs("status", "--json").json if "can't keep the log here" in v["health_detail"]), None
        ),
        what="the trouble is shown",
    )
    assert view is not None
    assert "No space left on device" in view["health_detail"]
    assert view["state"] in ("preparing", "starting", "loading", "stalled")
    done = verbs("stop", launch_id)
    assert (done.status, "nothing is left" in done.out) == (0, True)
    assert Path(view["log_path"]).read_bytes().endswith(b"end\n")
    subprocess.run(["mount", "-o", "remount,size=64m", str(tiny_console_disk)], check=True)
    assert verbs("logs", launch_id, "--raw").out.encode() == Path(view["log_path"]).read_bytes()


@pytest.fixture
def tiny_console_disk(isolated_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A disk of 800 KiB for the console's own files; the launches are elsewhere."""
    folder = tmp_path / "console-state"
    folder.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=800k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("time_s", ["nan", "-1", "inf", "1e9", "soon"])
def test_a_time_that_cannot_be_meant_is_refused_before_anything_is_touched(
    time_s: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for verb, option in (("stop", "grace"), ("attach", "timeout"), ("launch", "timeout")):
        with pytest.raises(SystemExit) as end:
            main([verb, "x", f"--{option}={time_s}"])
        assert end.value.code == 2
        assert "can't be a time: seconds from 0" in capsys.readouterr().err


def test_a_host_that_is_not_reached_is_not_said_to_run_nothing(verbs: Verbs) -> None:
    done = verbs("status", "--host", "no-such-host.invalid")
    assert done.status == 3
    assert done.out == ""


def test_a_name_that_two_running_launches_have_stops_neither(verbs: Verbs, tmp_path: Path) -> None:
    path = str(write_profile(tmp_path, "twin", ["/bin/sleep", "600"]))
    first, second = (verbs("launch", path).out.strip() for _ in range(2))
    done = verbs("stop", "twin")
    assert done.status == 5
    assert first in done.problem
    assert second in done.problem
    assert {one["state"] for one in verbs("status", "--json").json} <= {"starting", "loading"}
    assert verbs("stop", first).status == 0
    assert verbs("stop", "twin").status == 0
    assert verbs("status", "--json").json == []


def test_a_store_that_cannot_be_opened_stands_in_nobodys_way_to_stop(
    verbs: Verbs, tmp_path: Path, isolated_home: Path
) -> None:
    path = str(write_profile(tmp_path, "p", ["/bin/sleep", "600"]))
    launch_id = verbs("launch", path).out.strip()
    store = isolated_home / ".local/state/specconsole/store.sqlite"
    for journal in store.parent.glob("store.sqlite-*"):
        journal.unlink()
    store.write_bytes(b"not a database at all, and nobody's to throw away")
    done = verbs("launch", path)
    assert (done.status, "going on without history" in done.err) == (0, True)
    second_id = done.out.strip()
    done = verbs("status", "--json")
    assert {one["launch_id"] for one in done.json} == {launch_id, second_id}
    assert "going on without history" in done.err
    for one in (launch_id, second_id):
        done = verbs("stop", one)
        assert (done.status, "nothing is left" in done.out) == (0, True)
    assert store.read_bytes() == b"not a database at all, and nobody's to throw away"


def test_what_ended_before_a_console_looked_is_no_news(verbs: Verbs, tmp_path: Path) -> None:
    """A window that opens rings no bell for the failures of last week."""
    launch_id = verbs("launch", "--wait", str(write_profile(tmp_path, "p", ["/bin/false"]))).out.strip()

    async def look() -> tuple[str, list[str]]:
        async with open_supervisor(("local",), read_only=True) as console:
            await console.supervisor.discovered("local")
            await console.supervisor.watches[launch_id].settled()
            return console.board.launches[launch_id].state, [fact.kind for fact in console.board.facts]

    state, kinds = asyncio.run(look())
    assert state == "failed"
    assert "failed" not in kinds
