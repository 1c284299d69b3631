"""`history`, `note`, `diff` on processes that really ran; consoles without a store; beginnings of several ids."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specconsole.wiring import open_supervisor, state_folder
from tests.cli.console import Done, Verbs, write_profile
from tests.support.tmux import Tmux
from tests.support.victims import victim_argv
from tests.support.waiting import wait_until

OOM = (
    "import sys\n"
    "print('[2026-11-29 14:00:01] server_args=ServerArgs(model_path=\\'/m/Qwen\\', mem_fraction_static=0.88)')\n"
    "print('[2026-11-29 14:00:09 TP0] Load weight begin. avail mem=139.00 GB')\n"
    "print('[2026-11-29 14:00:19 TP0] Load weight end. elapsed=9.1 s, avail mem=60.00 GB, mem usage=79 GB.')\n"
    "print('[2026-11-29 14:00:20 TP0] Memory pool end. avail mem=16.00 GB')\n"
    "print('[2026-11-29 14:00:21 TP0] Capture cuda graph begin. This takes minutes. avail mem=16.00 GB')\n"
    "print('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.38 GiB. GPU 3 has a total capacity of "
    "94.97 GiB of which 1.06 GiB is free.')\n"
    "sys.exit(1)\n"
)


@pytest.fixture
def verbs(capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(capsys)


def launched(verbs: Verbs, path: Path, *more: str) -> dict[str, Any]:
    done = verbs("launch", str(path), "--json", *more)
    assert done.status == 0, done.err
    view: dict[str, Any] = done.json[0]
    return view


def rows(done: Done) -> list[dict[str, Any]]:
    assert done.status == 0, done.err
    found: list[dict[str, Any]] = done.json["launches"]
    return found


def notes_folder(view: dict[str, Any]) -> Path:
    return Path(view["log_path"]).parent / "notes"


def test_a_failed_start_stands_in_the_history_with_its_cause(verbs: Verbs, tmp_path: Path) -> None:
    path = write_profile(
        tmp_path, "dies", [sys.executable, "-c", OOM], engine="sglang", tags=["chain"], env={"NCCL_ALGO": "Tree"}
    )
    view = launched(verbs, path)
    wait_until(lambda: rows(verbs("history", "--json"))[0]["outcome"] == "failed", what="it is seen to have failed")
    row = rows(verbs("history", "--outcome", "gpu-oom", "--profile", "dies", "--tag", "chain", "--json"))[0]
    assert (row["launch_id"], row["cause"], row["exit_status"]) == (view["launch_id"], "gpu-oom", 1)
    assert "2.38 GiB" in row["cause_line"]
    assert row["answered_after_s"] is None
    for words, fits in (
        (["nccl_algo", "TREE"], False),
        (["nccl_algo"], True),
        (["2.38"], True),
        (["gpu-oom", "dies"], True),
    ):
        assert bool(rows(verbs("history", *words, "--json"))) is fits, words
    assert rows(verbs("history", "--since", "1h", "--json"))
    assert rows(verbs("history", "--since", "2031-01-01", "--json")) == []
    text = verbs("history").out
    assert "failed gpu-oom" in text
    assert verbs("history", "--since", "soon").status == 2
    assert verbs("history", "nothing-like-it").out == "no launch fits\n"


def test_notes_and_tags_go_into_the_folder_and_come_back_from_it(verbs: Verbs, tmp_path: Path) -> None:
    view = launched(verbs, write_profile(tmp_path, "p", victim_argv()))
    launch_id = view["launch_id"]
    try:
        done = verbs("note", "last", "warm", "GPU,", "it's fine", "--tag", "best", "--json")
        assert (done.status, done.json["on_host"], done.json["tags"]) == (0, True, ["best"])
        assert verbs("note", launch_id[:-1], "--tag", "x", "--untag", "best").status == 0
        written = [json.loads(file.read_text()) for file in sorted(notes_folder(view).glob("*.json"))]
        assert [(one["kind"], one["text"]) for one in written] == [
            ("note", "warm GPU, it's fine"), ("tag", "best"), ("tag", "x"), ("untag", "best"),
        ]  # fmt: skip
        assert verbs("--read-only", "note", "p", "y").status == 5
        assert verbs("note", "p", "--tag", "two words").status == 2
        shutil.rmtree(state_folder() / "spool", ignore_errors=True)
        for file in state_folder().glob("store.sqlite*"):
            file.unlink()
        assert rows(verbs("history", "--json")) == []
        assert verbs("note", launch_id).out.splitlines()[1:] == [
            "tags: x", f"{written_at(verbs, launch_id)}  {view['owner']}: warm GPU, it's fine",
        ]  # fmt: skip
        assert [row["tags"] for row in rows(verbs("history", "warm gpu", "--json"))] == [["x"]]
        shown = verbs("status", "p")
        assert "note: warm GPU, it's fine" in shown.out
        assert "tags: x" in shown.out
    finally:
        assert verbs("stop", "p").status == 0
    assert verbs("note", "p", "--undo").status == 0
    assert rows(verbs("history", "--json"))[0]["tags"] == ["best", "x"]


def written_at(verbs: Verbs, launch_id: str) -> str:
    import time

    note = verbs("note", launch_id, "--json").json["notes"][0]
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(note["at_s"]))


def test_a_beginning_that_several_have_names_them(verbs: Verbs, tmp_path: Path) -> None:
    path = write_profile(tmp_path, "quick", [sys.executable, "-c", "pass"])
    ids = [launched(verbs, path)["launch_id"] for _ in range(2)]
    common = ids[0][: next(n for n in range(30) if ids[0][n] != ids[1][n])]
    for words in (("status", common), ("stop", common), ("note", common), ("diff", common, ids[0])):
        done = verbs(*words)
        assert done.status == 4, words
        assert "2 launches begin with" in done.problem
        assert all(one in done.problem for one in ids), words
    assert verbs("note", "nothing").status == 4
    assert "no launch nothing" in verbs("diff", "nothing", ids[0]).problem
    same = verbs("diff", *ids, "--json").json
    assert {row["key"] for row in same["rows"] if row["section"] == "flags" and row["differs"]} == set()


@pytest.mark.faults
def test_what_only_a_lost_folder_knew_is_unknown(verbs: Verbs, tmp_path: Path) -> None:
    one = launched(verbs, write_profile(tmp_path, "one", [sys.executable, "-c", "pass"]))
    other = launched(verbs, write_profile(tmp_path, "other", [sys.executable, "-c", "pass", "--flag", "2"]))
    verbs("history")
    shutil.rmtree(Path(other["log_path"]).parent)
    done = verbs("diff", "one", other["launch_id"], "--json")
    assert any("folder" in note and other["launch_id"] in note for note in done.json["notes"]), done.json["notes"]
    flags = {row["key"]: row for row in done.json["rows"] if row["section"] == "flags"}
    assert (flags["--flag"]["left"], flags["--flag"]["right"]) == (None, "2"), "the store still has what was asked"
    settings = [row for row in done.json["rows"] if row["section"] == "settings"]
    assert [(row["differs"], row["left_known"], row["right_known"]) for row in settings] == [(None, False, False)]
    assert "? by the server's own account  unknown  unknown" in verbs("diff", "one", "other").out
    assert verbs("diff", one["launch_id"], one["launch_id"]).status == 4


def test_without_a_store_servers_are_launched_and_watched_all_the_same(verbs: Verbs, tmp_path: Path) -> None:
    state_folder().mkdir(parents=True)
    (state_folder() / "store.sqlite").write_text("no store at all, but long enough to have a header of its own" * 3)
    path = write_profile(tmp_path, "p", victim_argv())
    done = verbs("launch", str(path), "--json")
    assert done.status == 0
    told = [line for line in done.err.splitlines() if "without history" in line]
    assert told == [
        f"specconsole: going on without history: {state_folder() / 'store.sqlite'}: is not a specconsole store "
        "(try: move it away; a new one is made)"
    ]
    try:
        for words in (("attach", "p", "--timeout", "0.5"), ("status", "p")):
            done = verbs(*words)
            assert (done.status, done.err.count("without history")) == (1, 1), words
        for words in (("history",), ("note", "p", "x"), ("diff", "p", "last")):
            done = verbs(*words)
            assert (done.status, "store.sqlite: is not a specconsole store" in done.problem) == (2, True)
    finally:
        assert verbs("stop", "p").status == 0


async def test_a_window_without_a_store_is_told_why(isolated_home: Path) -> None:
    state_folder().mkdir(parents=True)
    (state_folder() / "store.sqlite").write_bytes(b"x" * 200)
    async with open_supervisor((), window=True, spare_store=True) as console:
        assert "going on without history" in console.store_trouble
        assert str(state_folder() / "store.sqlite") in console.store_trouble


@pytest.mark.faults
def test_a_window_opens_over_a_store_that_is_none(isolated_home: Path, start_tmux: Callable[..., Tmux]) -> None:
    state_folder().mkdir(parents=True)
    (state_folder() / "store.sqlite").write_bytes(b"x" * 200)
    tmux = start_tmux([sys.executable, "-m", "specconsole"], columns=120, rows=36)
    wait_until(lambda: "without history" in tmux.screen(), timeout_s=60, what="it says so")
    tmux.keys("q")


def test_relaunch_is_as_launched_or_as_proposed(verbs: Verbs, tmp_path: Path) -> None:
    path = write_profile(tmp_path, "dies", [sys.executable, "-c", OOM, "--"], engine="sglang", args={"tp_size": 2})
    first = launched(verbs, path, "--set", "mem_fraction_static=0.88", "--no-preflight")
    wait_until(lambda: rows(verbs("history", "--json"))[0]["outcome"] == "failed", what="it failed")
    path.unlink()
    requested = json.loads((Path(first["log_path"]).parent / "requested.json").read_text())
    done = verbs("relaunch", first["launch_id"], "--as-proposed", "--json")
    assert done.status == 0, done.err
    # 1.32 GiB missing and 1 spare of 139: 0.88 - 0.0167.
    assert "with mem_fraction_static = 0.86" in done.err
    again = json.loads((Path(done.json["log_path"]).parent / "requested.json").read_text())
    assert again["argv"] == [word.replace("0.88", "0.86") if word == "0.88" else word for word in requested["argv"]]
    same = verbs("relaunch", first["launch_id"][:-1], "--set", "tp_size=4").out.strip()
    rows_ = {row["launch_id"]: row for row in rows(verbs("history", "--profile", "dies", "--json"))}
    assert "--tp-size 4 --mem-fraction-static 0.88" in rows_[same]["command"]
    assert verbs("relaunch", "nothing").status == 4
    assert verbs("--read-only", "relaunch", "dies").status == 5


@pytest.mark.faults
def test_relaunch_names_whom_it_would_stop(verbs: Verbs, tmp_path: Path) -> None:
    first = launched(verbs, write_profile(tmp_path, "p", victim_argv()))
    requested = Path(first["log_path"]).parent / "requested.json"
    shape = json.loads(requested.read_text())
    requested.write_text(json.dumps({**shape, "owner": "eva@pc", "client_id": "x" * 32}) + "\n")
    done = verbs("relaunch", "last")
    assert done.status == 5
    assert "p was started by eva@pc" in done.err
    assert "owner eva@pc" in done.err
    done = verbs("relaunch", "last", "--theirs", "p", "--json")
    assert done.status == 0, done.err
    second = done.json
    try:
        assert second["launch_id"] != first["launch_id"]
        outcomes = {row["launch_id"]: row["outcome"] for row in rows(verbs("history", "--json"))}
        assert outcomes[first["launch_id"]] == "stopped"
        argv = json.loads((Path(second["log_path"]).parent / "requested.json").read_text())["argv"]
        assert argv == shape["argv"]
    finally:
        assert verbs("stop", second["launch_id"]).status == 0
