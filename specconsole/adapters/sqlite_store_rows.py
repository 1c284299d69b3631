"""Launches to rows of the store and back; a launch and its line in the history are written together."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict
from typing import Any

from specconsole.core.launching.annotations import Annotations
from specconsole.core.records import StoredLaunch
from specconsole.core.views.history import HistoryRow
from specconsole.core.views.history_facts import row_of, searched_text

_PUT_LAUNCH = "INSERT OR REPLACE INTO launches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_HISTORY = "INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_COLUMNS = ("launch_id", "host", "profile", "engine", "outcome", "cause", "at_s")
"""Fields of a history row that have a column of their own."""
_APART = frozenset({*_COLUMNS, "annotations", "best_tok_s", "best_at"})


def json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def launch_of(row: tuple[Any, ...]) -> StoredLaunch:
    """Of a row of `launches`."""
    launch_id, host, folder, profile, engine, owner, started_at_s, ended_at_s, outcome, facts = row
    return StoredLaunch(
        launch_id, host, folder, profile, engine, owner, started_at_s, ended_at_s, outcome, json.loads(facts)
    )


def stored_launch(db: sqlite3.Connection, launch_id: str) -> StoredLaunch | None:
    """None when it is not there."""
    found = db.execute("SELECT * FROM launches WHERE launch_id = ?", (launch_id,)).fetchone()
    return None if found is None else launch_of(found)


def put_launch(db: sqlite3.Connection, launch: StoredLaunch) -> None:
    """Adds or replaces it, in `launches` and in `history`."""
    db.execute(
        _PUT_LAUNCH,
        (
            launch.launch_id, launch.host, launch.folder, launch.profile, launch.engine, launch.owner,
            launch.started_at_s, launch.ended_at_s, launch.outcome, json_text(launch.facts),
        ),
    )  # fmt: skip
    row = row_of(launch)
    rest = {key: value for key, value in asdict(row).items() if key not in _APART}
    columns = [getattr(row, name) for name in _COLUMNS]
    db.execute(_PUT_HISTORY, (*columns, json_text(rest), searched_text(launch, row)))


def history_row(columns: tuple[Any, ...], rest: str, annotations: Annotations) -> HistoryRow:
    """Of a row of `history`: its columns in `_COLUMNS`'s order, and its JSON."""
    shape = json.loads(rest)
    known = {key: value for key, value in shape.items() if key in HistoryRow.__dataclass_fields__}
    known["profile_tags"] = tuple(known.get("profile_tags") or ())
    return HistoryRow(**dict(zip(_COLUMNS, columns, strict=True)), **known, annotations=annotations)
