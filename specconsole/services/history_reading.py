"""The log of a launch whose host can't be asked: what an earlier look left in the local spool, and its reading.

Nothing is written but what opening a spool makes; another console may follow the same launch meanwhile.
"""

from __future__ import annotations

import json
from pathlib import Path

from specconsole.core.reading.model import Reading
from specconsole.core.reading.reading import Reader
from specconsole.services.spool import Spool


def kept_log(folder: Path, engine: str, *, ended: bool, stopped: bool) -> tuple[Spool, Reading] | None:
    """Spool and reading of a launch's local folder; None when nothing of its log came here. For a thread.

    Raises SpecconsoleError when the spool can't be opened.
    """
    if not (folder / "log").is_file():
        return None
    spool = Spool(folder)
    reader = _reader(folder, spool, engine)
    return spool, reader.reading(None, dead=ended, exit_code=None, stop_asked=stopped)


def _reader(folder: Path, spool: Spool, engine: str) -> Reader:
    try:
        saved = json.loads((folder / "checkpoint.json").read_bytes())
        reader = Reader.resume(saved["reader"])
        if int(saved["spool_bytes"]) == spool.size_bytes and reader.offset >= spool.size_bytes:
            return reader
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    reader = Reader(engine=engine if engine and engine != "other" else None)
    for _, block in spool.blocks(0):
        reader.feed(block)
    return reader
