"""A console that writes to the store until it is killed: `python store_writer.py PATH NAME MODE`.

Says each committed number on standard output, after the call returned, so that its killer knows what must be there.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Literal, cast

from specconsole.adapters.sqlite_store import SqliteStore
from specconsole.core.records import StoredRecord


async def main(path: Path, name: str, mode: Literal["wal", "delete"]) -> None:
    store = await SqliteStore.open(path, journal_mode=mode)
    number = len(await store.records("note", launch_id=name, limit=10**9))
    while True:
        batch = [StoredRecord("note", f"{name}-{number}-{i}", float(number), {"x": "y" * 200}, name) for i in range(8)]
        await store.put_records(batch)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 1


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], cast(Literal["wal", "delete"], sys.argv[3])))
