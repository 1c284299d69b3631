"""The store on a real file: what it keeps, who may open it, what it refuses."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specconsole.adapters import sqlite_store, sqlite_store_schema
from specconsole.adapters.sqlite_store import SqliteStore
from specconsole.core.reading.history import PhaseSample, StartKey
from specconsole.core.records import Store, StoredLaunch, StoredRecord
from specconsole.errors import BadInputError, SpecconsoleError

KEY = StartKey("sglang", version="0.5.17", model="m", tp=8, draft="EAGLE3:d", host="gpu-a", cache="cold")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "state" / "store.sqlite3")
    yield opened
    await opened.aclose()


def test_is_a_store() -> None:
    def takes(_store: Store) -> None: ...

    takes(SqliteStore(Path("x"), sqlite3.connect(":memory:")))


async def test_gives_back_what_was_put(store: SqliteStore) -> None:
    launch = StoredLaunch(
        "id-1", "gpu-a", "/l/id-1", "eagle", "sglang", "me@here", 5.0, None, "", {"port": 3, "n": "ü"}
    )
    older = StoredLaunch("id-0", "gpu-a", "/l/id-0", started_at_s=1.0)
    unknown = StoredLaunch("id-2", "gpu-b", "")
    await store.put_launches([older, unknown, launch])
    assert await store.launches() == (launch, older, unknown)
    assert await store.launches(host="gpu-b") == (unknown,)

    samples = (
        PhaseSample(KEY, "weights", "target", 0, 31.5, True, 80.0, 9.0),
        PhaseSample(KEY, "weights", "draft", 1, 3.5, False, None, 9.0),
        PhaseSample(KEY, "kv-cache", None, 0, 1.0, True, 2.0, 9.0),
    )
    await store.put_samples("id-1", samples)
    await store.put_samples("id-1", samples)  # a second console that watched the same launch
    assert set(await store.samples(engine="sglang")) == set(samples)
    assert await store.samples(engine="vllm") == ()

    notes = [StoredRecord("note", f"n{i}", float(i), {"text": "x" * i}, "id-1") for i in range(4)]
    await store.put_records([*notes, StoredRecord("point", "n0", 0.0, {})])
    assert await store.records("note") == tuple(notes)
    assert await store.records("note", limit=2) == tuple(notes[2:])
    assert await store.records("note", launch_id="other") == ()
    assert await store.drop_records("note", ["n1", "missing"]) == 1
    assert [r.record_id for r in await store.records("note")] == ["n0", "n2", "n3"]


async def test_index_of_a_host_is_rebuilt_without_touching_the_others(store: SqliteStore) -> None:
    await store.put_launches([StoredLaunch("a1", "a", "f"), StoredLaunch("a2", "a", "f"), StoredLaunch("b1", "b", "f")])
    await store.rebuild_launches("a", [StoredLaunch("a2", "a", "f", outcome="stopped"), StoredLaunch("a3", "a", "f")])
    assert {(row.launch_id, row.outcome) for row in await store.launches()} == {
        ("a2", "stopped"), ("a3", ""), ("b1", ""),
    }  # fmt: skip


async def test_a_failing_batch_leaves_nothing_behind(store: SqliteStore) -> None:
    await store.put_launches([StoredLaunch("a1", "a", "f")])
    bad = StoredLaunch("a3", "a", None)  # type: ignore[arg-type]  # the NOT NULL column makes the batch fail half-way
    with pytest.raises(SpecconsoleError):
        await store.rebuild_launches("a", [StoredLaunch("a2", "a", "f"), bad])
    assert [row.launch_id for row in await store.launches()] == ["a1"]


async def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "store.sqlite3"
    store = await SqliteStore.open(path, journal_mode="wal")
    await store.put_records([StoredRecord("note", "1", 0.0, {})])
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(["store.sqlite3", "store.sqlite3-wal", "store.sqlite3-shm"], 0o600)
    await store.aclose()
    path.chmod(0o644)
    await (await SqliteStore.open(path)).aclose()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_two_consoles_write_at_once(tmp_path: Path, mode: sqlite_store.JournalMode) -> None:
    path = tmp_path / "store.sqlite3"
    one, other = await asyncio.gather(*(SqliteStore.open(path, journal_mode=mode) for _ in range(2)))
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == (mode,)
    connection.close()

    async def write(store: SqliteStore, name: str) -> None:
        for index in range(30):
            await store.put_records([StoredRecord("note", f"{name}{index}", float(index), {})])

    await asyncio.gather(write(one, "a"), write(other, "b"))
    assert len(await one.records("note")) == len(await other.records("note")) == 60
    await one.aclose()
    await other.aclose()


async def test_many_calls_from_many_threads(store: SqliteStore) -> None:
    async def use(name: int) -> None:
        for index in range(60):
            await store.put_records([StoredRecord("note", f"{name}-{index}", float(index), {})])
            await store.records("note", limit=2)

    await asyncio.gather(*(use(name) for name in range(20)))
    assert len(await store.records("note")) == 1200


async def test_a_cancelled_call_neither_breaks_nor_half_does_it(store: SqliteStore) -> None:
    call = asyncio.ensure_future(
        store.put_records([StoredRecord("note", str(i), float(i), {"x": "y" * 500}) for i in range(3000)])
    )
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await store.put_records([StoredRecord("point", "after", 0.0, {})])
    assert len(await store.records("note")) in (0, 3000)
    assert len(await store.records("point")) == 1


async def test_a_newer_store_is_refused_and_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    await (await SqliteStore.open(path)).aclose()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = delete")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    path.chmod(0o640)
    before = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode, sorted(tmp_path.iterdir()))
    with pytest.raises(BadInputError, match=r"newer specconsole \(schema 99; this one knows") as told:
        await SqliteStore.open(path)
    assert told.value.where == str(path)
    assert told.value.try_
    assert before == (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode, sorted(tmp_path.iterdir()))


async def test_a_newer_version_that_is_only_in_the_journal_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    first = await SqliteStore.open(path, journal_mode="wal")
    newer = sqlite3.connect(path)
    newer.execute("PRAGMA user_version = 99")  # stays in the -wal file while `first` is open
    with pytest.raises(BadInputError, match="newer"):
        await SqliteStore.open(path)
    newer.close()
    await first.aclose()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"hello, not a database, but long enough to have a header " * 4, "not a specconsole store"),
        (b"x", "not a spec"),
    ],
)
async def test_a_file_that_is_no_store_is_refused_and_left_untouched(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "store.sqlite3"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match=text):
        await SqliteStore.open(path)
    assert path.read_bytes() == content


async def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 77")
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(BadInputError, match="another program"):
        await SqliteStore.open(path)
    assert path.read_bytes() == before


async def test_a_damaged_store_says_so(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    store = await SqliteStore.open(path, journal_mode="delete")
    await store.put_records([StoredRecord("note", str(i), 0.0, {"x": "y" * 400}) for i in range(300)])
    await store.aclose()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)

    async def use() -> None:
        broken = await SqliteStore.open(path)
        try:
            await broken.records("note")
        finally:
            await broken.aclose()

    with pytest.raises(BadInputError, match="damaged"):
        await use()


async def test_a_place_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpecconsoleError, match="can't be opened for writing") as told:
        await SqliteStore.open(tmp_path / "file" / "store.sqlite3")
    assert told.value.try_


async def test_a_full_disk_is_told_and_loses_nothing(store: SqliteStore) -> None:
    await store.put_records([StoredRecord("note", "kept", 0.0, {})])
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own SQLITE_FULL, as from a full disk
    with pytest.raises(SpecconsoleError, match="disk is full"):
        await store.put_records([StoredRecord("note", str(i), 0.0, {"x": "y" * 900}) for i in range(500)])
    store._connection.execute("PRAGMA max_page_count = 100000")
    await store.put_records([StoredRecord("note", "later", 1.0, {})])
    assert [r.record_id for r in await store.records("note")] == ["kept", "later"]


async def test_an_older_store_is_brought_up_to_date_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.sqlite3"
    old = await SqliteStore.open(path)
    await old.put_launches([StoredLaunch("a1", "a", "f")])
    await old.aclose()
    step = ("CREATE TABLE later (x INTEGER) STRICT", "INSERT INTO later SELECT count(*) FROM launches")
    newer = (*sqlite_store_schema.MIGRATIONS, step)
    monkeypatch.setattr(sqlite_store, "MIGRATIONS", newer)
    monkeypatch.setattr(sqlite_store, "VERSION", len(newer))
    both = await asyncio.gather(*(SqliteStore.open(path) for _ in range(3)))
    assert [row.launch_id for row in await both[0].launches()] == ["a1"]
    assert both[1]._connection.execute("SELECT x FROM later").fetchall() == [(1,)]
    for store in both:
        await store.aclose()


async def test_a_failing_migration_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.sqlite3"
    await (await SqliteStore.open(path, journal_mode="delete")).aclose()
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(
            sqlite_store, "MIGRATIONS", (*sqlite_store_schema.MIGRATIONS, ("CREATE TABLE t (x)", "NONSENSE"))
        )
        patched.setattr(sqlite_store, "VERSION", len(sqlite_store_schema.MIGRATIONS) + 1)
        with pytest.raises(SpecconsoleError, match="NONSENSE"):
            await SqliteStore.open(path, journal_mode="delete")
    assert path.read_bytes() == before
    await (await SqliteStore.open(path)).aclose()
