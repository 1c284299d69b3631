"""Results, their points, request records and notes in the store, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec

from specconsole.core.launching.annotations import NONE_YET, join
from specconsole.core.measuring.result import SCHEMA_VERSION, MeasuredPoint, Result
from specconsole.core.records import Store, StoredRecord
from specconsole.errors import NotFoundError

_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Note:
    """What a person wrote about a result."""

    note_id: str
    result_id: str
    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """How a person wants to see the results."""

    baseline_id: str | None = None
    """Compared with; None: the newest plain one."""
    hidden: frozenset[str] = frozenset()


class BenchStore:
    """The measuring part of `core.records.Store`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put_point(
        self, result: Result, index: int, point: MeasuredPoint, requests: Sequence[Mapping[str, Any]]
    ) -> None:
        """One point as soon as it is measured, with its request lines."""
        key = f"{result.result_id}/{index:05d}"
        launch_id = point.launch_id
        await self._store.put_records(
            [
                StoredRecord("point", key, point.at_s, asdict(point), launch_id),
                StoredRecord("request", key, point.at_s, {"requests": list(requests)}, launch_id),
                _head(result),
            ]
        )

    async def put_result(self, result: Result) -> None:
        """The result without its points, which are there already."""
        await self._store.put_records([_head(result)])

    async def put_whole(self, result: Result) -> None:
        """With its points (an import)."""
        rows = [
            StoredRecord("point", f"{result.result_id}/{n:05d}", point.at_s, asdict(point), point.launch_id)
            for n, point in enumerate(result.points)
        ]
        await self._store.put_records([*rows, _head(result)])

    async def results(self) -> tuple[Result, ...]:
        """The oldest first, each with what was noted on it and on its launches."""
        removed = await self.removed()
        heads = [r for r in await self._store.records("result", limit=_ALL) if r.record_id not in removed]
        points: dict[str, list[MeasuredPoint]] = {}
        for row in sorted(await self._store.records("point", limit=_ALL), key=lambda r: r.record_id):
            result_id = row.record_id.rpartition("/")[0]
            points.setdefault(result_id, []).append(msgspec.convert(row.body, MeasuredPoint, strict=False))
        notes: dict[str, list[str]] = {}
        for note in await self.notes():
            notes.setdefault(note.result_id, []).append(note.text)
        said = {launch: join(entries) for launch, entries in (await self._store.all_annotations()).items()}
        for result_id, measured in points.items():
            for launch_id in dict.fromkeys(point.launch_id for point in measured):
                if (text := said.get(launch_id, NONE_YET).text) and text not in notes.get(result_id, ()):
                    notes.setdefault(result_id, []).append(text)
        return tuple(_whole(row, points.get(row.record_id, []), notes.get(row.record_id, [])) for row in heads)

    async def requests(self, result: Result) -> dict[int, list[dict[str, Any]]]:
        """Request lines by index of the point."""
        launch_id = result.points[0].launch_id if result.points else None
        found: dict[int, list[dict[str, Any]]] = {}
        for row in await self._store.records("request", launch_id=launch_id, limit=_ALL):
            result_id, _, index = row.record_id.rpartition("/")
            if result_id == result.result_id and index.isdigit():
                found[int(index)] = list(row.body.get("requests") or ())
        return found

    async def known(self) -> dict[str, str]:
        """How each stored result ended, by id, removed ones included."""
        rows = await self._store.records("result", limit=_ALL)
        found = {row.record_id: str(row.body.get("ended", "")) for row in rows}
        return {**found, **dict.fromkeys(await self.removed(), "removed")}

    async def removed(self) -> set[str]:
        return {row.record_id for row in await self._store.records("removed-result", limit=_ALL)}

    async def remove(self, result_id: str, at_s: float) -> None:
        """Its numbers go; that it was removed stays, since its folder on the host may still be there."""
        await self._store.put_records([StoredRecord("removed-result", result_id, at_s, {})])
        for kind in ("point", "request", "note"):
            rows = await self._store.records(kind, limit=_ALL)
            mine = [row.record_id for row in rows if row.record_id.rpartition("/")[0] == result_id]
            await self._store.drop_records(kind, mine)
        await self._store.drop_records("result", [result_id])

    async def choice(self) -> Choice:
        """The last that was made."""
        rows = [row for row in await self._store.records("results-choice", limit=_ALL) if row.record_id == "all"]
        return msgspec.convert(rows[-1].body, Choice, strict=False) if rows else Choice()

    async def put_choice(self, choice: Choice, at_s: float) -> None:
        body = {"baseline_id": choice.baseline_id, "hidden": sorted(choice.hidden)}
        await self._store.put_records([StoredRecord("results-choice", "all", at_s, body)])

    async def add_note(self, result_id: str, text: str, at_s: float) -> Note:
        note = Note(f"{result_id}/{at_s:.3f}", result_id, at_s, text)
        await self._store.put_records([StoredRecord("note", note.note_id, at_s, {"text": text})])
        return note

    async def notes(self) -> tuple[Note, ...]:
        rows = await self._store.records("note", limit=_ALL)
        return tuple(
            Note(row.record_id, row.record_id.rpartition("/")[0], row.at_s, str(row.body.get("text", "")))
            for row in rows
        )


def find_result(results: Iterable[Result], wanted: str) -> Result:
    """By id, a unique start of it, or by name (the newest). Raises NotFoundError."""
    known = list(results)
    exact = [r for r in known if r.result_id == wanted]
    begins = [r for r in known if r.result_id.startswith(wanted)] if len(wanted) >= 4 else []
    named = [r for r in known if r.name == wanted]
    if exact or len(begins) == 1:
        return (exact or begins)[0]
    if named:
        return named[-1]
    many = f"{len(begins)} results begin with that" if begins else ""
    raise NotFoundError(many or f"no result {wanted}", try_="specconsole results list")


def _head(result: Result) -> StoredRecord:
    body = asdict(replace(result, points=()))
    launch_id = result.points[0].launch_id if result.points else ""
    return StoredRecord("result", result.result_id, result.started_at_s, {"schema": SCHEMA_VERSION, **body}, launch_id)


def _whole(row: StoredRecord, points: list[MeasuredPoint], notes: list[str]) -> Result:
    result = msgspec.convert({k: v for k, v in row.body.items() if k != "schema"}, Result, strict=False)
    note = "; ".join(text for text in (result.note, *notes) if text)
    return replace(result, points=tuple(points), note=note)
