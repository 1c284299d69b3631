"""`kill -9` at random moments of two real writing processes: nothing committed is lost, nothing half-done is seen."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from specconsole.adapters.sqlite_store import JournalMode, SqliteStore
from tests.support.waiting import until

WRITER = Path(__file__).parent / "store_writer.py"
BATCH = 8


def _start(path: Path, name: str, mode: JournalMode, said: Path) -> subprocess.Popen[bytes]:
    with said.open("wb") as output:
        return subprocess.Popen([sys.executable, str(WRITER), str(path), name, mode], stdout=output)


def _committed(said: Path) -> list[int]:
    """The numbers said in whole lines; the last may be cut by the kill."""
    text = said.read_text()
    return [int(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _all_said(files: list[Path], least: int) -> bool:
    return all(len(_committed(file)) >= least for file in files)


@pytest.mark.parametrize(("mode", "rounds"), [("wal", 3), ("delete", 2)])
async def test_nothing_committed_is_lost(tmp_path: Path, mode: JournalMode, rounds: int) -> None:
    await _rounds(tmp_path, mode, rounds)


@pytest.mark.faults
@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_nothing_committed_is_lost_in_many_rounds(tmp_path: Path, mode: JournalMode) -> None:
    await _rounds(tmp_path, mode, 30)


async def _rounds(tmp_path: Path, mode: JournalMode, rounds: int) -> None:
    path = tmp_path / "store.sqlite3"
    expected: dict[str, set[int]] = {"a": set(), "b": set()}
    for turn in range(rounds):
        said = {name: tmp_path / f"said-{name}-{turn}" for name in expected}
        writers = {name: _start(path, name, mode, said[name]) for name in expected}
        try:
            least = random.Random(turn).randint(1, 25)
            await until(partial(_all_said, list(said.values()), least), timeout_s=60, what=f"{least} commits each")
        finally:
            for writer in writers.values():
                writer.send_signal(signal.SIGKILL)
            for writer in writers.values():
                writer.wait()
        for name, file in said.items():
            expected[name] |= set(_committed(file))

        witness = sqlite3.connect(path)  # not through the code under test
        assert witness.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = witness.execute("SELECT launch_id, at_s, count(*) FROM records GROUP BY 1, 2").fetchall()
        witness.close()
        assert {count for *_, count in rows} == {BATCH}, "half a batch was seen"
        for name, numbers in expected.items():
            found = {int(number) for launch_id, number, _ in rows if launch_id == name}
            assert numbers <= found, f"lost after they were committed: {sorted(numbers - found)}"
            assert len(found - numbers) <= turn + 1, "more than the one commit per kill that nobody could tell us of"

    reopened = await SqliteStore.open(path)
    assert len(await reopened.records("note", limit=10**9)) == BATCH * len(rows)
    await reopened.aclose()
