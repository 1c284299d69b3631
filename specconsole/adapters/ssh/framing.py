"""Finds a command's output between marks in the endless output of one shell; pure.

The shell's stream carries `MARK` lines that only we can have asked for (128 random bits), so that a command's own
bytes, whatever they are, never end it early.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Collector:
    """Takes a stream's bytes until `\\n` + mark + words + `\\n`; keeps at most `limit` of what came before."""

    mark: bytes
    limit: int
    truncated: bool = False
    words: bytes | None = None
    """What stood between the mark and the end of its line; None while the mark has not come."""
    rest: bytes = b""
    """Bytes after the mark's line."""
    _kept: bytearray = field(default_factory=bytearray)
    _tail: bytes = b""

    @property
    def output(self) -> bytes:
        return bytes(self._kept)

    def feed(self, data: bytes) -> bool:
        """True once the end mark has been seen whole."""
        data = self._tail + data
        found = data.find(b"\n" + self.mark)
        if found < 0:
            # The mark may be cut anywhere by the transport: hold back what could be its beginning.
            hold = min(len(data), len(self.mark))
            self._keep(data[: len(data) - hold])
            self._tail = data[len(data) - hold :]
            return False
        end = data.find(b"\n", found + 1)
        if end < 0:
            self._keep(data[:found])
            self._tail = data[found:]
            return False
        self._keep(data[:found])
        self.words = data[found + 1 + len(self.mark) : end].strip()
        self.rest = data[end + 1 :]
        self._tail = b""
        return True

    def flush(self) -> None:
        """The stream ended without a mark: what was held back was output."""
        self._keep(self._tail)
        self._tail = b""

    def _keep(self, data: bytes) -> None:
        room = self.limit - len(self._kept)
        if len(data) > room:
            self.truncated = True
            data = data[: max(0, room)]
        self._kept += data


def exit_status(words: bytes) -> int | None:
    """The status after an end mark: `3`, or `137s` when the shell said that a signal ended the command (None)."""
    if not words.isdigit():
        return None
    return int(words)
