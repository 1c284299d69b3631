"""The local copy of a launch's log: one file of mode 0600 with secrets masked, a sparse line index, and marks.

The follower appends; panes ask for ranges of lines and own none. Offsets are the host file's, until that file is
rotated or truncated: a mark says where and how much was lost. With a quota the oldest part is given back to the disk
(a hole: offsets hold) and marked.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from specconsole.core.reading.text import clean
from specconsole.errors import SpecconsoleError
from specconsole.services.line_index import BLOCK_BYTES, LineIndex

MarkKind = Literal["truncated", "replaced", "lost", "quota"]

DEFAULT_QUOTA_BYTES = 2 * 1024**3
_SHOWN_LINE_BYTES = 16 * 1024
_SCAN_BYTES = 1024 * 1024
_SHOWN_MARKS = 200


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened between two bytes of the spool."""

    offset: int
    """Bytes of the spool before it."""
    kind: MarkKind
    lost_bytes: int | None
    """None is unknown, not none."""
    text: str
    """One line for a person."""
    newlines: int = 0
    """Of `quota`: lines that are gone from the start."""


class Spool:
    """A growing log on this machine; implements `services.commands.LineSource`.

    One writer (the follower, in a thread at a time); readers may be in any thread.
    """

    def __init__(self, folder: Path, *, quota_bytes: int = DEFAULT_QUOTA_BYTES) -> None:
        """Opens or makes `folder/log`. What is there already is indexed, at about a gigabyte a second."""
        self.path = folder / "log"
        self._marks_path = folder / "marks.jsonl"
        self._quota_bytes = quota_bytes
        self._lock = threading.Lock()
        self._index = LineIndex()
        self._kept_from = 0
        self._dropped_lines = 0
        self.generation = 0
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SpecconsoleError(
                f"can't keep the log here: {error.strerror}", where=str(folder), try_="check owner, mode and free space"
            ) from error
        self.marks: tuple[Mark, ...] = tuple(_read_marks(self._marks_path))
        self._mark_lines: tuple[tuple[Mark, ...], tuple[tuple[int, str], ...]] = ((), ())
        for mark in self.marks:
            if mark.kind == "quota" and mark.offset > self._kept_from:
                self._kept_from, self._dropped_lines = mark.offset, mark.newlines
        self._reindex()

    def _reindex(self) -> None:
        offset = self._kept_from
        self._index.skip(offset, self._dropped_lines)
        while block := os.pread(self._fd, _SCAN_BYTES, offset):
            self._index.append(block)
            offset += len(block)

    @property
    def line_count(self) -> int:
        return self._index.line_count

    @property
    def whole_lines(self) -> int:
        """Lines that have their end."""
        return self._index.newlines

    @property
    def size_bytes(self) -> int:
        return self._index.size_bytes

    def append(self, data: bytes) -> None:
        """Writes the next bytes (already masked). Raises SpecconsoleError on a full disk; nothing half is indexed."""
        with self._lock:
            done = 0
            try:
                while done < len(data):
                    done += os.write(self._fd, data[done : done + _SCAN_BYTES])
            except OSError as error:
                raise SpecconsoleError(
                    f"can't keep the log here: {error.strerror}",
                    where=str(self.path),
                    try_="free space on this machine",
                ) from error
            finally:
                self._index.append(data[:done])
            self._keep_quota()

    def truncate(self, size_bytes: int) -> None:
        """Cuts the spool back to a checkpoint's offset (what came after was never read by the reducers)."""
        with self._lock:
            os.ftruncate(self._fd, size_bytes)
            self._index = LineIndex()
            self._reindex()
            self.generation += 1

    def mark(self, kind: MarkKind, lost_bytes: int | None, text: str) -> Mark:
        """Notes an event at the present end."""
        mark = Mark(self.size_bytes, kind, lost_bytes, text)
        self._note(mark)
        return mark

    def _note(self, mark: Mark) -> None:
        self.marks = (*self.marks, mark)
        fd = os.open(self._marks_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, json.dumps(asdict(mark)).encode() + b"\n")
        finally:
            os.close(fd)

    def mark_lines(self) -> tuple[tuple[int, str], ...]:
        """(0-based line that it stands before, text) of each mark, the newest of them; in order."""
        if self._mark_lines[0] is not self.marks:
            found = [(self._line_behind(mark), mark.text) for mark in self.marks[-_SHOWN_MARKS:]]
            self._mark_lines = (self.marks, tuple(sorted(found, key=lambda pair: pair[0])))
        return self._mark_lines[1]

    def _line_behind(self, mark: Mark) -> int:
        if mark.kind == "quota":
            return mark.newlines
        if mark.offset <= self._kept_from:
            return self._dropped_lines
        block = mark.offset // BLOCK_BYTES * BLOCK_BYTES
        start = max(block, self._kept_from)
        before = self._read(mark.offset - start, start)
        newlines = (self._index.newlines_before(block) if start == block else self._dropped_lines) + before.count(b"\n")
        whole = before.endswith(b"\n") if before else self._read(1, mark.offset - 1) == b"\n"
        return newlines if whole else newlines + 1

    def _keep_quota(self) -> None:
        over = self.size_bytes - self._kept_from - self._quota_bytes
        if over <= self._quota_bytes // 4:
            return
        cut = (self._kept_from + over) // BLOCK_BYTES * BLOCK_BYTES
        newlines = self._index.newlines_before(cut)
        # Noted first: a hole without its note would be read as a line of zeros.
        self._note(Mark(cut, "quota", cut - self._kept_from, f"{cut} older bytes are no longer kept here", newlines))
        if not _punch_hole(self._fd, cut):
            self._quota_bytes = sys.maxsize
            return
        self._kept_from, self._dropped_lines = cut, newlines
        self.generation += 1

    def raw(self, start: int, stop: int) -> bytes:
        """Bytes of a range, fewer at the end."""
        return self._read(max(0, stop - start), start)

    def _read(self, size: int, offset: int) -> bytes:
        """Like pread(2); also when closed, for the panes that still show an ended launch; b"" once it was removed."""
        if self._fd >= 0:
            return os.pread(self._fd, size, offset)
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            return os.pread(fd, size, offset)
        finally:
            os.close(fd)

    def lines(self, start: int, stop: int) -> list[str]:
        """Clean lines `start` to `stop` (0-based); a redrawn bar is its last state, a very long line is cut."""
        wanted = min(stop, self.line_count) - start
        if wanted <= 0:
            return []
        found = [""] * min(wanted, max(0, self._dropped_lines - start))
        if len(found) == wanted:
            return found
        start += len(found)
        for piece in self._pieces(self.offset_of(start)):
            found.append(clean(piece))
            if len(found) == wanted:
                break
        return found

    def _pieces(self, offset: int) -> Iterator[bytes]:
        """Raw lines from a line's start on, without their end, cut to what a screen can show."""
        rest = b""
        while True:
            block = self._read(BLOCK_BYTES, offset)
            offset += len(block)
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield _last_state(line)
            if not block:
                if rest:
                    yield _last_state(rest)
                return
            if len(rest) > 16 * BLOCK_BYTES:
                # One endless line: only its end can be on a screen, and memory stays bounded.
                rest = rest[-_SHOWN_LINE_BYTES:]

    def blocks(self, start: int) -> Iterator[tuple[int, bytes]]:
        """(number of the first line, raw bytes of whole lines), about a megabyte each, to the end as it is now."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return  # removed to make room, under a window that still shows it
        try:
            size = self.size_bytes
            start = max(start, self._dropped_lines)
            offset, number, rest = self.offset_of(start), start, b""
            while offset < size:
                block = os.pread(fd, min(_SCAN_BYTES, size - offset), offset)
                if not block:
                    break
                offset += len(block)
                text = rest + block
                cut = text.rfind(b"\n") + 1
                if offset >= size or len(text) > 16 * _SCAN_BYTES:
                    cut = len(text)
                whole, rest = text[:cut], text[cut:]
                if whole:
                    yield number, whole
                    number += whole.count(b"\n")
        finally:
            os.close(fd)

    def offset_of(self, line: int) -> int:
        """Byte offset where a line (0-based) starts; the end for a line that is not there yet."""
        if line <= self._dropped_lines:
            return self._kept_from
        if line > self._index.newlines:
            return self.size_bytes
        offset, seen = self._index.block_of(line)
        while block := self._read(BLOCK_BYTES, offset):
            here = block.count(b"\n")
            if seen + here >= line:
                at = -1
                for _ in range(line - seen):
                    at = block.index(b"\n", at + 1)
                return offset + at + 1
            seen += here
            offset += len(block)
        return self.size_bytes

    def close(self) -> None:
        """Ends writing; the file stays on the disk and can still be read here."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _last_state(line: bytes) -> bytes:
    line = line.rstrip(b"\r")
    cut = line.rfind(b"\r") + 1
    return line[cut : cut + _SHOWN_LINE_BYTES]


def _read_marks(path: Path) -> Iterator[Mark]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield Mark(**json.loads(line))
        except (ValueError, TypeError):
            # Cut by a kill in the middle of a write; the next mark begins a new line.
            continue


def _punch_hole(fd: int, size_bytes: int) -> bool:
    """Gives the first bytes back to the disk, reading as zeros; False where system or file system can't.

    fallocate(2) with FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, which Python's os module does not offer.
    """
    if not sys.platform.startswith("linux"):
        return False
    call = ctypes.CDLL(None, use_errno=True).fallocate
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return int(call(fd, 0x01 | 0x02, 0, size_bytes)) == 0
