"""The launch history as lines: a table as wide as the screen allows, and what is known of the chosen launch."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from textual.content import Content

from specconsole.core.views.history import HistoryRow
from specconsole.core.views.launch import LaunchState
from specconsole.ui.formatters import duration, fit, row, safe, styled
from specconsole.ui.text.launch_text import MARKS

DETAIL_LINES = 5
_STATES: tuple[str, ...] = get_args(LaunchState)


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    cells: int
    text: Callable[[HistoryRow], str]
    style: str = ""
    right: bool = False


def _columns(width: int) -> list[_Column]:
    """Those that there is room for, in their order; the last takes what is left."""
    always = {"asked for", "profile", "outcome", "best tok/s"}
    wanted = ["answered", "accept", "host", "tags, notes", "took"]
    room = width - 3 - sum(column.cells + 2 for column in _ALL if column.name in always)
    shown = set(always)
    for name in wanted:
        cells = next(column.cells for column in _ALL if column.name == name) + 2
        if room >= cells:
            shown.add(name)
            room -= cells
    # The last takes what is left.
    return [
        replace(column, cells=column.cells + max(0, room)) if column.name == "tags, notes" else column
        for column in _ALL if column.name in shown
    ]  # fmt: skip


def head_line(width: int) -> Content:
    """Names of the columns."""
    names = [f"{c.name:>{c.cells}}" if c.right else f"{c.name:<{c.cells}}" for c in _columns(width)]
    return fit(styled("   " + "  ".join(names), "$muted"), width)


def table_line(one: HistoryRow, width: int, *, chosen: bool, marked: bool) -> Content:
    """One launch; the chosen one stands out by its sign and weight, not by colour alone."""
    mark, style = _mark(one)
    parts: list[str | tuple[str, str]] = [
        ("▸" if chosen else " ", "bold $primary"), ("◆" if marked else mark, "bold $accent" if marked else style), " ",
    ]  # fmt: skip
    for column in _columns(width):
        text = _cell(column.text(one), column.cells, right=column.right)
        look = style if column.name == "outcome" else column.style
        parts += [(text, f"bold {look}".strip() if chosen and column.name == "profile" else look), "  "]
    return fit(row(*parts), width)


def detail_lines(one: HistoryRow | None, width: int) -> list[Content]:
    """Exactly `DETAIL_LINES` lines about the chosen launch."""
    if one is None:
        return [fit(Content(""), width)] * DETAIL_LINES
    where = f"{one.host}:{one.port}" if one.port is not None else one.host
    answered = f"answered after {duration(one.answered_after_s)}" if one.answered_after_s is not None else ""
    took = f"took {duration(one.duration_s)}" if one.duration_s is not None else ""
    status = f"exit status {one.exit_status}" if one.exit_status is not None else ""
    best = f"best {_best(one)} tok/s" if one.best_tok_s is not None else ""
    accept = f"accept length {one.accept_length:.2f}" if one.accept_length is not None else ""
    facts = [one.launch_id, where, one.engine, one.owner, answered, took, status, best, accept]
    lines = [row((" · ".join(fact for fact in facts if fact), "$muted"))]
    if one.cause:
        lines.append(row((f"{one.cause}: ", "bold $error"), (" ".join(one.cause_line.split()), "$error")))
    elif one.description:
        lines.append(styled(one.description))
    said = _said(one)
    lines.append(row(("notes  ", "$muted"), said) if said else styled("no notes; n writes one", "$muted"))
    command = textwrap.wrap(safe(one.command), max(20, width - 9), break_on_hyphens=False) or ["unknown"]
    lines.append(row(("command  ", "$muted"), command[0]))
    lines += [styled(f"         {part}") for part in command[1:]]
    lines = lines[:DETAIL_LINES]
    lines += [Content("")] * (DETAIL_LINES - len(lines))
    return [fit(line, width) for line in lines]


def count_text(rows: Sequence[HistoryRow], wanted: str, *, more: bool) -> str:
    """For the title: `history: 12 launches with "oom"`."""
    count = f"the newest {len(rows)}" if more else str(len(rows))
    return f"history: {count} launch{'' if len(rows) == 1 else 'es'}" + (f' with "{wanted}"' if wanted else "")


def when_text(at_s: float) -> str:
    """`11-29 14:02`, local time."""
    if not at_s:
        return "–"
    then = time.localtime(at_s)
    return time.strftime("%m-%d %H:%M", then)


def _mark(one: HistoryRow) -> tuple[str, str]:
    word = one.state or one.outcome
    return MARKS[word] if word in _STATES else ("·", "$muted")


def _best(one: HistoryRow) -> str:
    return "–" if one.best_tok_s is None else f"{one.best_tok_s:,.0f} {one.best_at}".rstrip()


def _cell(text: str, cells: int, *, right: bool = False) -> str:
    shown = Content(safe(text))
    if shown.cell_length > cells:
        shown = shown.truncate(cells, ellipsis=True)
    room = max(0, cells - shown.cell_length)
    return " " * room + shown.plain if right else shown.plain + " " * room


def _said(one: HistoryRow) -> str:
    return " ".join([*(f"#{tag}" for tag in one.tags), one.annotations.note_text]).strip()


_ALL = (
    _Column("asked for", 11, lambda one: when_text(one.at_s), "$muted"),
    _Column("profile", 20, lambda one: one.profile or "?"),
    _Column("host", 10, lambda one: one.host, "$muted"),
    _Column("outcome", 18, lambda one: one.state_text),
    _Column("answered", 8, lambda one: duration(one.answered_after_s), right=True),
    _Column("took", 8, lambda one: duration(one.duration_s), right=True),
    _Column("accept", 6, lambda one: "–" if one.accept_length is None else f"{one.accept_length:.2f}", right=True),
    _Column("best tok/s", 12, _best, right=True),
    _Column("tags, notes", 20, _said, "$accent"),
)
