"""Notes and tags: kept through `kill -9`, in the launch's folder for every console, and through a lost store."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from specconsole.adapters.local import LocalTransport
from specconsole.adapters.sqlite_store import SqliteStore
from specconsole.adapters.ssh import SshLink
from specconsole.adapters.system_clock import SystemClock
from specconsole.errors import BadInputError, NotFoundError
from specconsole.services.bench_store import BenchStore
from specconsole.services.notes import LaunchNotes
from tests.core.measuring.build import point, result
from tests.support.sshd_lab import SshdLab
from tests.support.waiting import until

WRITER = Path(__file__).with_name("notes_writer.py")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "one.sqlite")
    yield opened
    await opened.aclose()


def in_folder(folder: Path) -> dict[str, str]:
    """Text by entry id, as the files say."""
    files = sorted((folder / "notes").glob("*.json"))
    return {file.stem: json.loads(file.read_text())["text"] for file in files}


def said(file: Path) -> list[int]:
    text = file.read_text()
    return [int(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def start_writer(path: Path, by: str, folder: Path, output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as sink:
        return subprocess.Popen([sys.executable, str(WRITER), str(path), by, "L1", str(folder)], stdout=sink)


@pytest.mark.parametrize("rounds", [1, pytest.param(8, marks=pytest.mark.faults)])
async def test_two_killed_consoles_lose_no_note_that_was_acknowledged(tmp_path: Path, rounds: int) -> None:
    path, folder = tmp_path / "store.sqlite", tmp_path / "L1"
    folder.mkdir()
    expected: set[str] = set()
    for turn in range(rounds):
        outputs = {by: tmp_path / f"{by}-{turn}" for by in (f"ada{turn}@desk", f"bob{turn}@desk")}
        writers = [start_writer(path, by, folder, output) for by, output in outputs.items()]
        try:
            least = random.Random(turn).randint(3, 25)

            def enough(files: dict[str, Path], count: int) -> bool:
                return all(len(said(file)) >= count for file in files.values())

            await until(partial(enough, outputs, least), timeout_s=60, what="both write")
        finally:
            for writer in writers:
                writer.kill()
                writer.wait()
        expected |= {f"{by} {number}" for by, output in outputs.items() for number in said(output)}
    witness = sqlite3.connect(path)
    assert witness.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows = witness.execute("SELECT line, on_host FROM annotations").fetchall()
    witness.close()
    kept = {json.loads(line)["text"] for line, _ in rows}
    assert expected <= kept
    assert len(kept - expected) <= 2 * rounds, "more than the one note per kill that nobody could be told of"
    on_host = {json.loads(line)["text"] for line, there in rows if there}
    assert on_host <= set(in_folder(folder).values()), "said to be in the folder, and is not"

    # What was not sent yet goes with the next look, and then a store that was lost gets everything back.
    store = await SqliteStore.open(path)
    notes = LaunchNotes(store, SystemClock(), "eva@pc")
    await notes.exchange(LocalTransport(), {"L1": str(folder)})
    await store.aclose()
    assert set(in_folder(folder).values()) == kept
    path.unlink()
    again = await SqliteStore.open(path)
    assert await LaunchNotes(again, SystemClock(), "eva@pc").exchange(LocalTransport(), {"L1": str(folder)}) == len(
        kept
    )
    assert {entry.text for entry in await again.annotations("L1")} == kept
    await again.aclose()


async def test_a_note_waits_here_while_its_folder_cannot_be_written(store: SqliteStore, tmp_path: Path) -> None:
    notes, transport, folder = LaunchNotes(store, SystemClock(), "ada@desk"), LocalTransport(), tmp_path / "L1"
    await notes.note("L1", 'it\'s "quoted" $(touch x) `y`\nwith two lines, ü and \\n')
    assert await notes.send(transport, "L1", str(folder)) == "the launch's folder is gone"
    folder.mkdir()
    (folder / "notes").write_text("a file where a folder should be")
    assert "can't" in (why := await notes.send(transport, "L1", str(folder))) or "exist" in why.lower()
    (folder / "notes").unlink()
    assert await notes.send(transport, "L1", str(folder)) == ""
    assert list(in_folder(folder).values()) == ['it\'s "quoted" $(touch x) `y`\nwith two lines, ü and \\n']
    assert [p.stat().st_mode & 0o777 for p in (folder / "notes").iterdir()] == [0o600]
    before = in_folder(folder)
    assert await notes.send(transport, "L1", str(folder)) == ""
    assert in_folder(folder) == before


async def test_two_consoles_of_one_account_come_to_say_the_same(store: SqliteStore, tmp_path: Path) -> None:
    folder, transport = tmp_path / "L1", LocalTransport()
    folder.mkdir()
    other = await SqliteStore.open(tmp_path / "two.sqlite")
    ada, bob = LaunchNotes(store, SystemClock(), "ada@desk"), LaunchNotes(other, SystemClock(), "bob@laptop")
    await ada.note("L1", "warm GPU")
    await ada.tag("L1", ["best", "wrong"])
    await bob.note("L1", "the draft is stale")
    for notes in (ada, bob, ada):
        await notes.exchange(transport, {"L1": str(folder)})
    await bob.tag_line("L1", "-wrong again", (await bob.of("L1")).tags())
    for notes in (bob, ada):
        await notes.exchange(transport, {"L1": str(folder)})
    mine, theirs = await ada.of("L1"), await bob.of("L1")
    assert mine == theirs
    assert mine.tags() == ("again", "best")
    assert {(note.by, note.text) for note in mine.notes} == {
        ("ada@desk", "warm GPU"), ("bob@laptop", "the draft is stale"),
    }  # fmt: skip
    undone = await ada.undo("L1")
    assert (undone.kind, undone.by) == ("tag", "ada@desk")
    await other.aclose()


async def test_what_lies_in_a_folder_and_is_no_entry_harms_nothing(store: SqliteStore, tmp_path: Path) -> None:
    folder = tmp_path / "L1"
    (folder / "notes").mkdir(parents=True)
    for name, text in {
        "1-a.json": '{"entry_id": "1-a", "launch_id": "L1", "at_s": 1, "by": "x", "kind": "note", "text": "whole"}\n',
        "2.json": "{", "3.json": "\x00\xff", "4.json": "", "not-json": "x",
        "5-a.json": '{"entry_id": "5-a", "launch_id": "OTHER", "at_s": 1, "by": "x", "kind": "note", "text": "y"}\n',
    }.items():  # fmt: skip
        (folder / "notes" / name).write_bytes(text.encode("latin-1"))
    (folder / "notes" / "6.json").mkdir()
    notes = LaunchNotes(store, SystemClock(), "ada@desk")
    assert await notes.exchange(LocalTransport(), {"L1": str(folder), "L2": str(tmp_path / "none")}) == 1
    assert [note.text for note in (await notes.of("L1")).notes] == ["whole"]
    assert (await notes.of("OTHER")).notes == ()
    with pytest.raises(BadInputError):
        await notes.note("L1", "  ")
    with pytest.raises(NotFoundError):
        await notes.undo("L1")


async def test_over_ssh_too(store: SqliteStore, ssh_link: SshLink, sshd: SshdLab, tmp_path: Path) -> None:
    folder = tmp_path / "L1"
    folder.mkdir(mode=0o777)
    sshd.give(folder, ssh_link.host.partition("@")[0] if "@" in ssh_link.host else sshd.accounts[0])
    notes = LaunchNotes(store, SystemClock(), "ada@desk")
    texts = [f"note {n} " + "long " * 300 for n in range(40)]
    for text in texts:
        await notes.note("L1", text)
    assert await notes.send(ssh_link, "L1", str(folder)) == ""
    assert list(in_folder(folder).values()) == [text.strip() for text in texts]


async def test_what_is_said_of_a_launch_stands_with_its_results(store: SqliteStore) -> None:
    one = replace(result("one", [point(1, 90.0, launch_id="L1")]), note="cold")
    other = result("other", [point(1, 91.0, launch_id="L2")], at_s=2000.0)
    results = BenchStore(store)
    for each in (one, other):
        await results.put_whole(each)
    notes = LaunchNotes(store, SystemClock(), "ada@desk")
    await notes.note("L1", "the draft of Tuesday")
    await notes.tag("L1", ["best"])
    found = {each.name: each.note for each in await results.results()}
    assert found == {one.name: "cold; #best the draft of Tuesday", other.name: ""}
