"""A console that writes notes until it is killed: `python notes_writer.py STORE BY LAUNCH FOLDER`.

Says each note's number on standard output after the call returned, so that its killer knows what must be there.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from specconsole.adapters.local import LocalTransport
from specconsole.adapters.sqlite_store import SqliteStore
from specconsole.adapters.system_clock import SystemClock
from specconsole.services.notes import LaunchNotes


async def write(path: Path, by: str, launch_id: str, folder: str) -> None:
    store = await SqliteStore.open(path)
    notes = LaunchNotes(store, SystemClock(), by)
    transport = LocalTransport()
    number = 0
    while True:
        await notes.note(launch_id, f"{by} {number}")
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        if number % 5 == 0:
            await notes.send(transport, launch_id, folder)
        number += 1


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), *sys.argv[2:5]))
