"""Notes and tags of launches: kept in the store first, then in the launch's folder on its host.

What `add` returned is committed in the store and survives `kill -9`. The folder gets it at once where the host is
reached, else with the next look at that host; from there every console of the account has it, and a store that was
lost gets it back. Entries are only ever added (`core.launching.annotations`), so the two copies are joined, never
overwritten.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from specconsole.core.launching.annotations import (
    Annotation,
    Annotations,
    Kind,
    checked_note,
    checked_tag,
    entry_id,
    join,
    last_change,
    tag_words,
)
from specconsole.core.launching.annotations_scripts import (
    KEEP_ENTRIES,
    READ_ENTRIES,
    keep_arguments,
    parse_entries,
    parse_kept,
)
from specconsole.core.records import Store
from specconsole.errors import NotFoundError, SpecconsoleError
from specconsole.ports import Clock, Transport

_AT_ONCE = 16
"""Entries, and folders, in one command: a note may have 4,000 characters."""
_FOLDERS_AT_ONCE = 400
_LIMIT_S = 10.0


class LaunchNotes:
    """For one console and the person at it (`by`: `user@machine`)."""

    def __init__(self, store: Store, clock: Clock, by: str) -> None:
        self._store = store
        self._clock = clock
        self._by = by

    async def of(self, launch_id: str) -> Annotations:
        """What is known here."""
        return join(await self._store.annotations(launch_id))

    async def note(self, launch_id: str, text: str) -> Annotation:
        """Adds a note. Raises BadInputError for a text that can't be one."""
        return (await self._add(launch_id, [("note", checked_note(text))]))[0]

    async def tag(self, launch_id: str, on: Sequence[str] = (), off: Sequence[str] = ()) -> None:
        """Puts tags on and takes others off. Raises BadInputError for a word that can't be one."""
        wanted: list[tuple[Kind, str]] = [("tag", checked_tag(word)) for word in on]
        wanted += [("untag", checked_tag(word)) for word in off]
        if wanted:
            await self._add(launch_id, wanted)

    async def tag_line(self, launch_id: str, line: str, present: Sequence[str]) -> None:
        """`best -old` as a person types it; `present`: the tags that it has."""
        await self.tag(launch_id, *tag_words(line, present))

    async def undo(self, launch_id: str) -> Annotation:
        """Takes back this person's last change. Raises NotFoundError without one."""
        last = last_change(await self._store.annotations(launch_id), self._by)
        if last is None:
            raise NotFoundError("nothing here that you wrote", where=launch_id)
        await self._add(launch_id, [("undo", last.entry_id)])
        return last

    async def _add(self, launch_id: str, wanted: Sequence[tuple[Kind, str]]) -> list[Annotation]:
        now_s = self._clock.wall_s()
        # A microsecond apart, so that they sort as they were given.
        entries = [
            Annotation(entry_id(now_s + n / 1_000_000, secrets.token_hex(4)), launch_id, now_s, self._by, kind, text)
            for n, (kind, text) in enumerate(wanted)
        ]
        await self._store.put_annotations(entries, on_host=False)
        return entries

    # ---------------------------------------------------------------- the host's copy

    async def send(self, transport: Transport, launch_id: str, folder: str) -> str:
        """Writes what the folder does not have; "" when it has all, else why not. Never raises for the host's sake."""
        waiting = (await self._store.annotations_to_send()).get(launch_id, ())
        for start in range(0, len(waiting), _AT_ONCE):
            part = waiting[start : start + _AT_ONCE]
            try:
                done = await transport.run_sh(KEEP_ENTRIES, keep_arguments(folder, part), timeout_s=_LIMIT_S)
            except (SpecconsoleError, TimeoutError) as error:
                return str(error) or "no answer in time"
            kept, why = parse_kept(done.stdout)
            await self._store.put_annotations([e for e in part if e.entry_id in kept], on_host=True)
            if why:
                return why
        return ""

    async def exchange(self, transport: Transport, folders: Mapping[str, str], *, writes: bool = True) -> int:
        """Takes over what the folders (by launch id) have and, if it `writes`, sends what they lack; how many entries
        were new here.

        Raises TransportError, TimeoutError, SpecconsoleError of the store.
        """
        new = 0
        ids = list(folders)
        for start in range(0, len(ids), _FOLDERS_AT_ONCE):
            part = ids[start : start + _FOLDERS_AT_ONCE]
            done = await transport.run_sh(READ_ENTRIES, [folders[one] for one in part], timeout_s=_LIMIT_S * 3)
            entries = parse_entries(done.stdout)
            # Only the launches that were asked about: a folder's name is the host's own word.
            found = [entry for launch_id in part for entry in entries.get(launch_id, ())]
            new += await self._store.put_annotations(found, on_host=True)
        for launch_id in await self._store.annotations_to_send() if writes else ():
            if launch_id in folders:
                await self.send(transport, launch_id, folders[launch_id])
        return new
