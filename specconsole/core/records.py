"""What the console keeps between two runs, as plain rows, and what a store of them can do.

The launches here are an index of the hosts' launch folders and can be rebuilt from them at any time; the folders are
the truth. Phase samples, points, request records and notes on results exist only here; notes and tags of launches here
and in the launches' folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from specconsole.core.launching.annotations import Annotation
from specconsole.core.reading.history import PhaseSample

if TYPE_CHECKING:
    from specconsole.core.views.history import HistoryPage, HistoryQuery


@dataclass(frozen=True, slots=True)
class StoredLaunch:
    """One launch as the index knows it."""

    launch_id: str
    host: str
    folder: str
    """On the host; "" for an adopted server, which has none."""
    profile: str = ""
    engine: str = ""
    owner: str = ""
    started_at_s: float | None = None
    """Host's wall clock, seconds since the epoch; None while unknown."""
    ended_at_s: float | None = None
    outcome: str = ""
    """The life cycle's last word; "" while it is not over."""
    facts: dict[str, Any] = field(default_factory=dict)
    """JSON values: whatever else a pane shows without asking the host."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """Anything else that is kept: `kind` is `point`, `request`, `note`, ...; (kind, record_id) is unique."""

    kind: str
    record_id: str
    at_s: float
    """Console's wall clock, seconds since the epoch."""
    body: dict[str, Any]
    """JSON values."""
    launch_id: str = ""
    """"" for what belongs to no launch."""


class Store(Protocol):
    """What services may ask of the store. Every method that returns has done it: what was written is committed and
    survives `kill -9`. Raises SpecconsoleError when the disk is full or the file was damaged."""

    async def put_launches(self, rows: Iterable[StoredLaunch]) -> None:
        """Adds, by launch id; of one that is there already, what the new row does not say is kept
        (`core.views.history_facts.merged`)."""

    async def rebuild_launches(self, host: str, rows: Iterable[StoredLaunch]) -> None:
        """Makes the index of `host` exactly these rows, in one transaction."""

    async def launches(self, *, host: str | None = None, limit: int = 500) -> tuple[StoredLaunch, ...]:
        """The newest first; those without a start time last."""

    async def launch(self, launch_id: str) -> StoredLaunch | None:
        """None when it is not in the index."""

    async def put_samples(self, launch_id: str, samples: Iterable[PhaseSample]) -> None:
        """Replaces all that was known of this launch, so that two consoles that watched it count once."""

    async def samples(self, *, engine: str, limit: int = 5000) -> tuple[PhaseSample, ...]:
        """The newest samples of an engine, for `History`."""

    async def put_records(self, rows: Iterable[StoredRecord]) -> None:
        """Adds or replaces, by kind and id."""

    async def records(self, kind: str, *, launch_id: str | None = None, limit: int = 10000) -> tuple[StoredRecord, ...]:
        """The oldest first, the newest `limit` of them."""

    async def drop_records(self, kind: str, record_ids: Sequence[str]) -> int:
        """How many were there and are gone."""

    async def history(self, query: HistoryQuery) -> HistoryPage:
        """The launches that fit, the newest first, with their notes, tags and best point."""

    async def put_annotations(self, entries: Iterable[Annotation], *, on_host: bool) -> int:
        """Adds those that are not there; how many that were. `on_host`: their launch's folder has them."""

    async def annotations(self, launch_id: str) -> tuple[Annotation, ...]:
        """Every entry of a launch, the oldest first."""

    async def all_annotations(self) -> dict[str, tuple[Annotation, ...]]:
        """Every entry there is, by launch id."""

    async def annotations_to_send(self) -> dict[str, tuple[Annotation, ...]]:
        """Entries that no launch's folder is known to have, by launch id."""
