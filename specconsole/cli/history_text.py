"""The launch history and a difference as text for a terminal or a pipe."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

from specconsole.core.hosts.plain_text import one_line
from specconsole.core.launching.difference import SECTIONS, Difference, DifferenceRow
from specconsole.core.launching.difference_text import TITLES, left_text, right_text, summary
from specconsole.core.views.history import HistoryRow

_HEAD = ("launch", "asked for", "profile @ host", "outcome", "answered", "took", "accept", "best tok/s", "tags, notes")


def history_lines(rows: Sequence[HistoryRow]) -> list[str]:
    """A table, the newest first; cut at the terminal's edge, whole where it goes elsewhere."""
    body = [
        (
            row.launch_id, _when(row.at_s), f"{row.profile or '?'} @ {row.host}", row.state_text,
            _span(row.answered_after_s), _span(row.duration_s),
            "-" if row.accept_length is None else f"{row.accept_length:.2f}",
            "-" if row.best_tok_s is None else f"{row.best_tok_s:.0f} {row.best_at}".rstrip(),
            " ".join([*(f"#{tag}" for tag in row.tags), row.annotations.note_text]).strip(),
        )
        for row in rows
    ]  # fmt: skip
    return _cut(_aligned([_HEAD, *([one_line(cell) for cell in line] for line in body)]))


def difference_lines(found: Difference, *, everything: bool) -> list[str]:
    """Sections with a line a row; columns as wide as they need, longer values below each other."""
    rows = found.shown(everything=everything)
    names = [one_line(f"{side.profile} @ {side.host}") for side in (found.left, found.right)]
    lines = [f"left   {found.left.launch_id}  {names[0]}", f"right  {found.right.launch_id}  {names[1]}"]
    lines += [f"note: {one_line(note, 500)}" for note in found.notes]
    for section in SECTIONS:
        mine = [row for row in rows if row.section == section]
        if mine:
            lines += ["", f"{TITLES[section]}:", *_section(mine)]
    return [*lines, "", summary(found)]


def _section(rows: Sequence[DifferenceRow]) -> list[str]:
    key_width = min(36, max(len(row.key) for row in rows))
    width = min(32, max(len(left_text(row)) for row in rows))
    lines: list[str] = []
    for row in (replace(row, key=one_line(row.key, 200)) for row in rows):
        mark = "?" if row.differs is None else "!" if row.differs else " "
        left, right = left_text(row), right_text(row)
        remark = f"  ({row.remark})" if row.remark else ""
        if len(left) <= width and len(row.key) <= key_width:
            lines.append(f"{mark} {row.key:<{key_width}}  {left:<{width}}  {right}{remark}".rstrip())
        else:
            lines += [f"{mark} {row.key}{remark}", f"      left   {left}", f"      right  {right}"]
    return lines


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[n]) for line in table) for n in range(len(table[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]


def _cut(lines: list[str]) -> list[str]:
    if not sys.stdout.isatty():
        return lines
    width = shutil.get_terminal_size().columns
    return [line if len(line) <= width else f"{line[: width - 1]}…" for line in lines]


def _when(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_s)) if at_s else "-"


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    return f"{whole // 60}:{whole % 60:02d}" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60:02d}"
