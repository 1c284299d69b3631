"""The history part of the store: searching launches, and notes and tags.

A search goes through `history` from the newest to the oldest and stops when it has enough; words are looked for as
they stand (no tokens: a flag, a path and half a name are all found).
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from specconsole.adapters.sqlite_store_rows import history_row
from specconsole.core.launching.annotations import Annotation, Annotations, join, parse_annotation
from specconsole.core.views.history import HistoryPage, HistoryQuery, HistoryRow

T = TypeVar("T")

_SELECT = """SELECT h.launch_id, h.host, h.profile, h.engine, h.outcome, h.cause, h.at_s, h.row, a.launch_id
    FROM history h LEFT JOIN annotated a ON a.launch_id = h.launch_id"""
_POINTS = """SELECT launch_id, json_extract(body, '$.metrics.output_tok_s'),
        json_extract(body, '$.acceptance.accept_length'),
        json_extract(body, '$.concurrency'), json_extract(body, '$.rate_per_s')
    FROM records WHERE kind = 'point' AND launch_id IN"""
_CHUNK = 200
_MAX_ASKED = 400
"""Values in one statement; SQLite's own limit was 999 before 3.32."""


class SqliteHistory:
    """A part of `SqliteStore`."""

    @abstractmethod
    async def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T: ...

    @abstractmethod
    async def _look(self, work: Callable[[sqlite3.Connection], T]) -> T: ...

    async def history(self, query: HistoryQuery) -> HistoryPage:
        return await self._look(lambda db: _history(db, query))

    async def put_annotations(self, entries: Iterable[Annotation], *, on_host: bool) -> int:
        new = tuple(entries)
        return 0 if not new else await self._transaction(lambda db: _put_annotations(db, new, on_host=on_host))

    async def annotations(self, launch_id: str) -> tuple[Annotation, ...]:
        return await self._look(lambda db: tuple(_entries(db, launch_id)))

    async def all_annotations(self) -> dict[str, tuple[Annotation, ...]]:
        def look(db: sqlite3.Connection) -> dict[str, tuple[Annotation, ...]]:
            ids = db.execute("SELECT DISTINCT launch_id FROM annotations").fetchall()
            return {launch_id: tuple(_entries(db, launch_id)) for (launch_id,) in ids}

        return await self._look(look)

    async def annotations_to_send(self) -> dict[str, tuple[Annotation, ...]]:
        def look(db: sqlite3.Connection) -> dict[str, tuple[Annotation, ...]]:
            ids = db.execute("SELECT DISTINCT launch_id FROM annotations WHERE on_host = 0").fetchall()
            return {launch_id: tuple(_entries(db, launch_id, on_host=0)) for (launch_id,) in ids}

        return await self._look(look)


def _history(db: sqlite3.Connection, query: HistoryQuery) -> HistoryPage:
    found: list[HistoryRow] = []
    for columns, rest, annotated in _matching(db, query):
        annotations = join(_entries(db, columns[0])) if annotated else Annotations()
        row = history_row(columns, rest, annotations)
        if query.tag is not None and query.tag not in row.tags:
            continue
        if len(found) >= query.limit:
            return HistoryPage(_measured(db, found), more=True)
        found.append(row)
    return HistoryPage(_measured(db, found))


def _matching(db: sqlite3.Connection, query: HistoryQuery) -> Iterator[tuple[tuple[Any, ...], str, bool]]:
    conditions, values = _conditions(query)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    cursor = db.execute(f"{_SELECT}{where} ORDER BY h.at_s DESC, h.launch_id DESC", values)
    try:
        while rows := cursor.fetchmany(_CHUNK):
            for *columns, rest, annotated in rows:
                yield tuple(columns), rest, annotated is not None
    finally:
        cursor.close()


def _conditions(query: HistoryQuery) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []

    def must(condition: str, *wanted: object) -> None:
        conditions.append(condition)
        values.extend(wanted)

    for column, wanted in (("host", query.host), ("profile", query.profile), ("engine", query.engine)):
        if wanted is not None:
            must(f"h.{column} = ?", wanted)
    if query.outcome is not None:
        if query.outcome == "open":
            must("h.outcome = ''")
        else:
            must("(h.outcome = ? OR h.cause = ?)", query.outcome, query.outcome)
    if query.since_s is not None:
        must("h.at_s >= ?", query.since_s)
    if query.launch_ids is not None:
        ids = query.launch_ids[:_MAX_ASKED]
        must(f"h.launch_id IN ({', '.join('?' * len(ids))})", *ids)
    if query.id_begins:
        must("substr(h.launch_id, 1, ?) = ?", len(query.id_begins), query.id_begins)
    for word in query.words:
        must("(instr(h.searched, ?) OR instr(coalesce(a.searched, ''), ?))", word, word)
    if query.tag is not None:
        # The exact look at the tags comes after; this spares it most rows.
        must("(instr(h.searched, ?) OR instr(coalesce(a.searched, ''), ?))", *[query.tag.casefold()] * 2)
    return conditions, values


def _measured(db: sqlite3.Connection, rows: Sequence[HistoryRow]) -> tuple[HistoryRow, ...]:
    """The rows with the best of their points."""
    best: dict[str, tuple[float, float | None, str]] = {}
    ids = [row.launch_id for row in rows]
    for start in range(0, len(ids), _MAX_ASKED):
        part = ids[start : start + _MAX_ASKED]
        points = db.execute(f"{_POINTS} ({', '.join('?' * len(part))})", part).fetchall()
        for launch_id, tok_s, accept_length, concurrency, rate_per_s in points:
            if tok_s is not None and (launch_id not in best or tok_s > best[launch_id][0]):
                at = f"C={concurrency}" if concurrency is not None else f"{rate_per_s:g}/s" if rate_per_s else ""
                best[launch_id] = (tok_s, accept_length, at)
    return tuple(_with_best(row, best.get(row.launch_id)) for row in rows)


def _with_best(row: HistoryRow, best: tuple[float, float | None, str] | None) -> HistoryRow:
    if best is None:
        return row
    tok_s, accept_length, at = best
    length = row.accept_length if accept_length is None else accept_length
    return replace(row, best_tok_s=tok_s, best_at=at, accept_length=length)


def _entries(db: sqlite3.Connection, launch_id: str, *, on_host: int | None = None) -> list[Annotation]:
    rows = db.execute(
        "SELECT line FROM annotations WHERE launch_id = ?1 AND (?2 IS NULL OR on_host = ?2) ORDER BY entry_id",
        (launch_id, on_host),
    ).fetchall()
    entries = (parse_annotation(line, launch_id) for (line,) in rows)
    return [entry for entry in entries if entry is not None]


def _put_annotations(db: sqlite3.Connection, entries: Sequence[Annotation], *, on_host: bool) -> int:
    """How many were not there yet. An entry never changes; that the host has it is never forgotten."""
    new = 0
    for entry in entries:
        new += db.execute(
            "INSERT OR IGNORE INTO annotations VALUES (?, ?, ?, 0)", (entry.launch_id, entry.entry_id, entry.to_line())
        ).rowcount
        if on_host:
            db.execute(
                "UPDATE annotations SET on_host = 1 WHERE launch_id = ? AND entry_id = ? AND on_host = 0",
                (entry.launch_id, entry.entry_id),
            )
    for launch_id in {entry.launch_id for entry in entries} if new else ():
        said = join(_entries(db, launch_id))
        text = "\n".join((*said.tagged, *(note.text for note in said.notes))).casefold()
        db.execute("INSERT OR REPLACE INTO annotated VALUES (?, ?)", (launch_id, text))
    return new
