"""Textual's way to the terminal, for a terminal that is taken away.

When a terminal closes, the kernel sends SIGHUP and SIGCONT. Textual 8.2.8 answers SIGCONT by writing to it again; the
write fails, its writing thread dies, and after 30 more writes the window waits for that thread for ever, also on its
way out. A file that takes what nobody will see lets it end.
"""

from __future__ import annotations

from typing import IO, Any

from textual.drivers.linux_driver import LinuxDriver


class HangUpDriver(LinuxDriver):
    """Writes into nothing once the terminal is gone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._file: Any = _Forgiving(self._file)


class _Forgiving:
    """What the writing thread needs of a file; an OSError of a write is the terminal's end, and no fault."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._gone = False

    def write(self, text: str) -> None:
        if not self._gone:
            try:
                self._file.write(text)
            except OSError:
                self._gone = True

    def flush(self) -> None:
        if not self._gone:
            try:
                self._file.flush()
            except OSError:
                self._gone = True

    def fileno(self) -> int:
        return self._file.fileno()
