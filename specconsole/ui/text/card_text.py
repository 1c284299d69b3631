"""The cards: why a launch failed, or why it seems to hang, and the one key that goes on from there."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual.content import Content

from specconsole.ui.formatters import count, duration, fit, row, safe, styled

if TYPE_CHECKING:
    from specconsole.core.reading.model import Failure, RankReading
    from specconsole.core.views.launch import LaunchView

SEEN_BEFORE_LINES = 3
EVIDENCE_LINES = 3


def card_kind(view: LaunchView | None) -> str:
    """`failure`, `suspect`, `stall`, `left-over`, or "" when there is nothing to say."""
    if view is None or view.stale_since_s is not None:
        return ""
    reading = view.reading
    if view.state in ("failed", "gone"):
        return "failure"
    if view.left_over:
        return "left-over"
    if reading is None:
        return ""
    if view.state == "stalled" or reading.stalled:
        return "stall"
    return "suspect" if reading.suspect is not None and view.state not in ("answers", "stopped") else ""


def proposed_change(view: LaunchView | None) -> Mapping[str, Any]:
    """The settings that the card's relaunch changes; empty when it proposes none."""
    reading = view.reading if view is not None else None
    failure = (reading.failure or reading.suspect) if reading is not None else None
    advice = failure.advice if failure is not None else None
    return (advice.set or {}) if advice is not None else {}


def change_text(change: Mapping[str, Any], was: Mapping[str, Any] | None = None) -> str:
    """`mem_fraction_static 0.88 -> 0.84, tp_size = 4`; a removed setting is `no …`, one whose old value is not in `was`
    has none."""
    known = was or {}

    def text(name: str, value: Any) -> str:
        plain = name.removeprefix("args.")
        if value is None:
            return f"no {plain}"
        return f"{plain} {known[plain]} -> {value}" if plain in known else f"{plain} = {value}"

    return ", ".join(text(name, value) for name, value in change.items())


def values_before(view: LaunchView) -> dict[str, Any]:
    """What the launch had, as its server printed it: what a change starts from."""
    args = dict(view.reading.server.args) if view.reading is not None else {}
    return args if view.port is None else {**args, "port": view.port}


def card(
    view: LaunchView,
    before: Sequence[str],
    width: int,
    now_s: float,
    *,
    brief: bool = False,
    evidence: Sequence[str] = (),
) -> list[Content]:
    """Lines of the card that fits the view, each exactly `width` cells; empty without one.

    `brief`: fewer lines. `evidence`: what the GPUs say about a silence.
    """
    kind = card_kind(view)
    if kind in ("failure", "suspect"):
        return _failure(view, kind, before, width, brief=brief)
    if kind == "stall":
        return _stall(view, width, evidence[:1] if brief else evidence[:EVIDENCE_LINES])
    if kind == "left-over":
        lines = [fit(styled("! stopped, and this is still there", "bold $warning"), width)]
        lines += [fit(styled(f"  {line}"), width) for line in view.left_over[:5]]
        return [*lines, _keys(width, ("K", "stop again"))]
    return []


def _keys(width: int, *pairs: tuple[str, str]) -> Content:
    """The keys that go on from here, as many as fit."""
    parts: list[str | tuple[str, str]] = []
    room = width
    for key, what in pairs:
        room -= len(key) + len(what) + 6
        if room < 0:
            break
        parts += ["  ", (f" {key} ", "bold $background on $primary"), f" {what} "]
    return fit(row(*parts), width)


def _failure(view: LaunchView, kind: str, before: Sequence[str], width: int, *, brief: bool) -> list[Content]:
    reading = view.reading
    failure = (reading.failure or reading.suspect) if reading is not None else None
    if failure is None:
        status = "unknown" if view.exit_status is None else str(view.exit_status)
        head = row(("✗ gone", "bold $error"), f" · exit status {status} · the log states no cause")
        return [fit(head, width), _keys(width, ("R", "relaunch as it was"), ("e", "edit"), ("E", "evidence"))]
    lines = [_headline(failure, kind, width)]
    if failure.line:
        lines += [fit(styled(f"  {part}", "$error"), width) for part in _wrapped(failure.line, width - 4, 2)]
    if before:
        if not brief:
            lines.append(fit(styled("  seen just before", "$muted"), width))
        lines += [fit(styled(f"  │ {line.strip()}", "$muted"), width) for line in before[-SEEN_BEFORE_LINES:]]
    if failure.messenger and failure.messenger != failure.line and not brief:
        lines.append(fit(row(("  passed on as  ", "$muted"), failure.messenger.strip()), width))
    change = proposed_change(view)
    if failure.advice is not None:
        first, *rest = _wrapped(failure.advice.text, width - 8, 3)
        lines.append(fit(row(("  try  ", "bold $success"), first), width))
        lines += [fit(styled(f"       {part}"), width) for part in rest]
    relaunch = f"relaunch with {change_text(change, values_before(view))}" if change else "relaunch as it was"
    lines.append(_keys(width, ("R", relaunch), ("!", "the line"), ("e", "edit"), ("c", "fold")))
    return lines


def _headline(failure: Failure, kind: str, width: int) -> Content:
    where = [part for part in (failure.in_phase, failure.in_part, failure.rank) if part]
    place = f" in {' '.join(where)}" if where else ""
    at = f" · line {count(failure.line_no)}" if failure.line_no is not None else " · no line states it"
    word = "✗ " if kind == "failure" else "? perhaps "
    return fit(row((f"{word}{failure.failure_class}", "bold $error" if kind == "failure" else "bold $warning"),
                   place, (at, "$muted")), width)  # fmt: skip


def _stall(view: LaunchView, width: int, evidence: Sequence[str]) -> list[Content]:
    reading = view.reading
    assert reading is not None
    silent = f" · silent for {duration(reading.silent_s)}" if reading.silent_s is not None else ""
    lines = [fit(row((f"! nothing moves in {reading.phase}", "bold $warning"), (silent, "$muted")), width)]
    if reading.stall_reason:
        lines += [fit(styled(f"  {part}"), width) for part in _wrapped(reading.stall_reason, width - 4, 2)]
    behind = ranks_behind(reading.ranks)
    if behind:
        lines.append(fit(row(("  behind  ", "$warning"), behind), width))
    lines += [fit(row(("  GPUs    ", "$warning"), text), width) for text in evidence]
    lines.append(_keys(width, ("E", "collect evidence"), ("R", "relaunch"), ("c", "fold")))
    return lines


def ranks_behind(ranks: Sequence[RankReading]) -> str:
    """The ranks whose last word is oldest, when they differ; "" when all stand at the same phase."""
    if len({rank.phase for rank in ranks}) < 2:
        return ""
    last = min(ranks, key=lambda rank: rank.line_no)
    same = [rank.rank for rank in ranks if rank.phase == last.phase]
    others = sorted({rank.phase for rank in ranks} - {last.phase})
    return f"{', '.join(same[:6])} last in {last.phase} (line {count(last.line_no)}), the others in {', '.join(others)}"


def _wrapped(text: str, width: int, most: int) -> list[str]:
    lines = textwrap.wrap(safe(text.strip()), max(20, width)) or [""]
    return [*lines[: most - 1], lines[most - 1] + " …"] if len(lines) > most else lines
