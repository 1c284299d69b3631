"""The part of a server's log that was written between two moments, by its bytes: no stamp and no clock is needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specconsole.core.launching.masking import Masker
from specconsole.core.views.log_line import plain
from specconsole.errors import SpecconsoleError
from specconsole.ports import Transport

_BLOCK_BYTES = 1024 * 1024
SHOWN_BYTES = 64 * 1024
# $1: how many bytes, $2: the file. How many lines end within them.
_COUNT_LINES = 'head -c "$1" -- "$2" | wc -l'


@dataclass(frozen=True, slots=True)
class LogPart:
    """Lines of a log."""

    launch_id: str
    first_line: int | None
    """Number of the first one, counted from 0; None when it could not be counted."""
    lines: tuple[str, ...]
    cut: bool
    """There are more than are shown."""


async def read_range(transport: Transport, path: str, start: int, stop: int) -> bytes:
    """Bytes of a file, as far as they are there. Raises SpecconsoleError, TimeoutError."""
    file = await transport.open_file(path)
    try:
        data = bytearray()
        while start + len(data) < stop:
            part = await file.read_at(start + len(data), min(_BLOCK_BYTES, stop - start - len(data)))
            if not part:
                break
            data += part
        return bytes(data)
    finally:
        await file.aclose()


async def log_part(
    transport: Transport, launch_id: str, path: str, start: int, stop: int, secrets: Iterable[str] = ()
) -> LogPart:
    """The lines that were begun in a range, whole, secrets masked. Raises SpecconsoleError, TimeoutError."""
    shown = min(stop, start + SHOWN_BYTES)
    # One byte before tells whether the range begins within a line, whose rest is left out.
    data = await read_range(transport, path, max(0, start - 1), shown)
    if start > 0:
        data = data.partition(b"\n")[2]
    done = await transport.run_sh(_COUNT_LINES, [str(max(0, start - 1)), path])
    masker = Masker(secrets)
    data = masker.feed(data) + masker.flush()
    text = done.stdout.strip()
    first = int(text) + (1 if start > 0 else 0) if text.isdigit() else None
    # The last line is left out where it goes on beyond the range.
    body, _, rest = data.rpartition(b"\n")
    lines = plain(body if body else rest).decode("utf-8", "replace").split("\n") if data else []
    return LogPart(launch_id, first, tuple(line.rstrip("\r") for line in lines), shown < stop)


def no_log(launch_id: str) -> SpecconsoleError:
    """What is said when there is no log to look into."""
    return SpecconsoleError("its log is not known to this console", where=launch_id or "a server that it did not start")
