"""The console's store: one SQLite file, one writer thread at a time, one transaction a call.

A call that returned is committed. Under WAL a commit survives `kill -9` at any moment; on a network file system, where
WAL must not be used, a rollback journal does the same. Two consoles may use the file at once: they wait for each other.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from specconsole.adapters.sqlite_store_files import (
    JournalMode,
    file_system_of,
    journal_mode_for,
    make_private,
    mounts_text,
    refuse_foreign,
    refuse_newer,
)
from specconsole.adapters.sqlite_store_history import SqliteHistory
from specconsole.adapters.sqlite_store_rows import json_text, launch_of, put_launch, stored_launch
from specconsole.adapters.sqlite_store_schema import APPLICATION_ID, MIGRATIONS, VERSION
from specconsole.core.reading.history import PhaseSample, StartKey
from specconsole.core.records import StoredLaunch, StoredRecord
from specconsole.core.views.history_facts import merged
from specconsole.errors import BadInputError, SpecconsoleError

BUSY_TIMEOUT_S = 15.0
"""So long a call waits for another console's transaction; ours take milliseconds."""

_PUT_SAMPLE = "INSERT OR REPLACE INTO phase_samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_RECORD = "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)"


T = TypeVar("T")


class SqliteStore(SqliteHistory):
    """Implements `core.records.Store`. Make it with `open`; `aclose` when done."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._turn = threading.Lock()

    @classmethod
    async def open(cls, path: Path, *, journal_mode: JournalMode | None = None) -> SqliteStore:
        """Opens the store, makes it if it is missing, and brings an older one up to date.

        `journal_mode` None: decided by the file system. Raises BadInputError for a file that is not a store, is
        damaged or was written by a newer version (it is left as it is), SpecconsoleError when nothing can be written
        there.
        """
        return await asyncio.to_thread(cls._open, path, journal_mode)

    @classmethod
    def _open(cls, path: Path, journal_mode: JournalMode | None) -> SqliteStore:
        refuse_foreign(path, application_id=APPLICATION_ID, newest=VERSION)
        make_private(path)
        mode = journal_mode or journal_mode_for(file_system_of(str(path.resolve()), mounts_text()))
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, path, mode)
        except sqlite3.Error as error:
            connection.close()
            raise _told(error, path) from error
        except BaseException:
            connection.close()
            raise
        return cls(path, connection)

    @classmethod
    async def in_memory(cls) -> SqliteStore:
        """An empty one that ends with this console: for what must go on when the disk takes nothing."""

        def make() -> SqliteStore:
            path = Path(":memory:")
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            _prepare(connection, path, "delete")
            return cls(path, connection)

        return await asyncio.to_thread(make)

    async def aclose(self) -> None:
        """Waits for a call in progress."""

        def close() -> None:
            with self._turn:
                self._connection.close()

        await asyncio.to_thread(close)

    async def put_launches(self, rows: Iterable[StoredLaunch]) -> None:
        new = tuple(rows)

        def work(db: sqlite3.Connection) -> None:
            for row in new:
                old = stored_launch(db, row.launch_id)
                if (launch := merged(old, row)) != old:
                    put_launch(db, launch)

        await self._transaction(work)

    async def rebuild_launches(self, host: str, rows: Iterable[StoredLaunch]) -> None:
        new = tuple(rows)

        def work(db: sqlite3.Connection) -> None:
            launches = [merged(stored_launch(db, row.launch_id), row) for row in new]
            db.execute("DELETE FROM launches WHERE host = ?", (host,))
            db.execute("DELETE FROM history WHERE host = ?", (host,))
            for launch in launches:
                put_launch(db, launch)

        await self._transaction(work)

    async def launches(self, *, host: str | None = None, limit: int = 500) -> tuple[StoredLaunch, ...]:
        rows = await self._read(
            "SELECT * FROM launches WHERE ?1 IS NULL OR host = ?1 ORDER BY started_at_s IS NULL, started_at_s DESC, "
            "launch_id LIMIT ?2",
            (host, limit),
        )
        return tuple(launch_of(row) for row in rows)

    async def launch(self, launch_id: str) -> StoredLaunch | None:
        return await self._look(lambda db: stored_launch(db, launch_id))

    async def put_samples(self, launch_id: str, samples: Iterable[PhaseSample]) -> None:
        values = [
            (
                launch_id, s.phase, s.part or "", s.nth, s.key.engine, json_text(s.to_json()["key"]),
                s.seconds, int(s.finished), s.to_ready_s, s.at_s,
            )
            for s in samples
        ]  # fmt: skip

        await self._put(_PUT_SAMPLE, values, before=("DELETE FROM phase_samples WHERE launch_id = ?", launch_id))

    async def samples(self, *, engine: str, limit: int = 5000) -> tuple[PhaseSample, ...]:
        rows = await self._read(
            "SELECT key, phase, part, nth, seconds, finished, to_ready_s, at_s FROM phase_samples WHERE engine = ? "
            "ORDER BY at_s DESC LIMIT ?",
            (engine, limit),
        )
        return tuple(
            PhaseSample(
                StartKey.from_json(json.loads(key)),
                phase,
                part or None,
                nth,
                seconds,
                bool(finished),
                to_ready_s,
                at_s,
            )
            for key, phase, part, nth, seconds, finished, to_ready_s, at_s in rows
        )

    async def put_records(self, rows: Iterable[StoredRecord]) -> None:
        values = [(r.kind, r.record_id, r.launch_id, r.at_s, json_text(r.body)) for r in rows]
        await self._put(_PUT_RECORD, values)

    async def records(self, kind: str, *, launch_id: str | None = None, limit: int = 10000) -> tuple[StoredRecord, ...]:
        rows = await self._read(
            "SELECT kind, record_id, at_s, body, launch_id FROM records "
            "WHERE kind = ?1 AND (?2 IS NULL OR launch_id = ?2) ORDER BY at_s DESC, record_id DESC LIMIT ?3",
            (kind, launch_id, limit),
        )
        return tuple(StoredRecord(k, i, at_s, json.loads(body), launch) for k, i, at_s, body, launch in reversed(rows))

    async def drop_records(self, kind: str, record_ids: Sequence[str]) -> int:
        wanted = [(kind, record_id) for record_id in record_ids]
        return await self._put("DELETE FROM records WHERE kind = ? AND record_id = ?", wanted)

    async def _put(
        self, sql: str, values: Sequence[tuple[object, ...]], *, before: tuple[str, str] | None = None
    ) -> int:
        """Runs `before` (a statement and its one value) and then `sql` for each of `values`, in one transaction.

        The number of rows that `sql` touched comes back, never a cursor: one that is freed in another thread resets
        a cached statement that may be running there ("bad parameter or other API misuse", CPython 3.11).
        """

        def work(db: sqlite3.Connection) -> int:
            if before is not None:
                db.execute(before[0], before[1:])
            return db.executemany(sql, values).rowcount

        return await self._transaction(work)

    async def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `work` in a thread, whole or not at all; what it returns must be no cursor (see `_put`)."""

        def transaction() -> T:
            with self._turn:
                db = self._connection
                try:
                    db.execute("BEGIN IMMEDIATE")
                    try:
                        done = work(db)
                        db.execute("COMMIT")
                    except BaseException:
                        if db.in_transaction:
                            db.execute("ROLLBACK")
                        raise
                except sqlite3.Error as error:
                    raise _told(error, self._path) from error
                return done

        return await asyncio.to_thread(transaction)

    async def _look(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Runs `work`, which only reads, in a thread."""

        def look() -> T:
            with self._turn:
                try:
                    return work(self._connection)
                except sqlite3.Error as error:
                    raise _told(error, self._path) from error

        return await asyncio.to_thread(look)

    async def _read(self, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        return await self._look(lambda db: db.execute(sql, values).fetchall())


def _prepare(db: sqlite3.Connection, path: Path, mode: JournalMode) -> None:
    refuse_newer(path, _version(db), VERSION)  # the header on disk may be older than the journal
    _set_journal_mode(db, mode)
    # NORMAL under WAL loses nothing to a killed process, only the newest commits to a power cut.
    db.execute(f"PRAGMA synchronous = {'NORMAL' if mode == 'wal' else 'FULL'}")
    db.execute("BEGIN IMMEDIATE")  # of two consoles that start at once, one migrates
    try:
        version = _version(db)
        refuse_newer(path, version, VERSION)
        for step in MIGRATIONS[version:]:
            for statement in step:
                db.execute(statement)
        if version < VERSION:
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _set_journal_mode(db: sqlite3.Connection, mode: JournalMode) -> None:
    """Only where it differs: changing it needs the file alone, and another console may have it open."""
    until_s = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            (now,) = db.execute("PRAGMA journal_mode").fetchone()
            if now != mode:
                (now,) = db.execute(f"PRAGMA journal_mode = {mode}").fetchone()
            break
        except sqlite3.OperationalError as error:
            # SQLite does not wait here by itself, whatever the busy timeout says.
            if "locked" not in str(error) or time.monotonic() > until_s:
                raise
            time.sleep(0.02)


def _version(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def _told(error: sqlite3.Error, path: Path) -> SpecconsoleError:
    """The error in words, with what to try."""
    text = str(error)
    if "full" in text:
        return SpecconsoleError("the disk is full: nothing was stored", where=str(path), try_="free some space")
    if "locked" in text or "busy" in text:
        return SpecconsoleError(
            f"another program has held the store for {BUSY_TIMEOUT_S:.0f} s: nothing was stored",
            where=str(path),
            try_="end the program that holds it (fuser names it)",
        )
    if "readonly" in text or "read-only" in text:
        return SpecconsoleError("the store can't be written", where=str(path), try_="make it writable")
    if isinstance(error, sqlite3.DatabaseError) and ("malformed" in text or "not a database" in text):
        return BadInputError(
            "the store is damaged",
            where=str(path),
            try_="move it away; launches are found again from the hosts, measured points and notes are in the old file",
        )
    return SpecconsoleError(
        f"the store failed: {text}",
        where=str(path),
        try_="check the disk; a store that is moved away is made anew, and launches are found again from the hosts",
    )
