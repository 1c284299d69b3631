"""A launch as text: its row in the list, its title, the phase strip and the line below that says when it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from specconsole.core.launching.account_text import account_note
from specconsole.ui.formatters import bar, clock_text, count, duration, fit, row, span, spread, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specconsole.core.launching.waiting import Waiting
    from specconsole.core.reading.model import EtaRange, Progress, Reading, TimelineEntry
    from specconsole.core.views.launch import LaunchView

MARKS: dict[str, tuple[str, str]] = {
    "queued": ("○", "$muted"), "preparing": ("◌", "$muted"), "starting": ("●", "$primary"),
    "loading": ("●", "$primary"), "answers": ("✓", "$success"), "not-answering": ("!", "$warning"),
    "stalled": ("!", "$warning"), "stopping": ("○", "$warning"), "stopped": (" ", "$muted"),
    "failed": ("✗", "$error"), "gone": ("✗", "$error"), "unknown": ("?", "$warning"),
}  # fmt: skip
RUNNING = frozenset(
    {"queued", "preparing", "starting", "loading", "answers", "not-answering", "stalled", "stopping", "unknown"}
)
"""States in which something of it may be up: a server, or what waits on the host to start it."""
WIDE_LIST = 64
"""Cells from which on a list of launches says also where and since when."""
_QUEUE_CELLS = 72
_UNITS = {"percent": "%", "byte": "B", "shard": "shards", "graph": "graphs", "file": "files", "token": "tokens",
          "item": "items"}  # fmt: skip


def title(view: LaunchView) -> Content:
    """`eagle3-topk1 @ gpu-a:30000 ─ starting`."""
    where = f"{view.host}:{view.port}" if view.port is not None else view.host
    style = MARKS[view.state][1]
    parts: list[str | tuple[str, str]] = [(view.name, "bold"), (f" @ {where} ─ ", "$muted"), (view.state, style)]
    if view.adopted:
        parts.append((" · adopted", "$muted"))
    if not view.ours and view.owner:
        parts.append((f" · {view.owner}'s", "$warning"))
    return row(*parts)


def state_note(view: LaunchView) -> tuple[str, str]:
    """What stands beside a launch's name in the list: (text, style)."""
    reading = view.reading
    if view.state == "failed":
        return (reading.failure.failure_class if reading and reading.failure else "failed"), "$error"
    if view.state in ("starting", "loading") and reading is not None:
        share = _share(reading.progress)
        note = reading.phase if share is None else f"{reading.phase} {share:.0%}"
        return note, f"$phase-{reading.phase}"
    if view.state == "answers":
        metrics = reading.metrics if reading else None
        if metrics and metrics.running and metrics.gen_throughput_tok_s is not None:
            return f"{metrics.gen_throughput_tok_s:.0f} tok/s", "$success"
        return (clock_text(view.started_at_s, seconds=False) if view.started_at_s else "answers"), "$success"
    return view.state, MARKS[view.state][1]


def _where_and_when(view: LaunchView) -> Content:
    """`  gpu-a:30000   14:02 `, for a list with room."""
    where = f"{view.host}:{view.port}" if view.port is not None else view.host
    when = clock_text(view.started_at_s, seconds=False) if view.started_at_s is not None else ""
    return fit(styled(f"  {where}", "$muted"), 18) + fit(styled(f"  {when}", "$muted"), 8)


def list_row(view: LaunchView, width: int, *, selected: bool, focused: bool) -> Content:
    """`● eagle3-topk1    weights`."""
    mark, style = MARKS[view.state]
    note, note_style = state_note(view)
    if view.stale_since_s is not None:
        mark, style = "?", "$warning"
    name_style = "bold" if selected else ""
    left = row((mark, style), " ", (view.name, name_style) if name_style else view.name)
    if width >= WIDE_LIST:
        left = fit(left, width - WIDE_LIST + 22) + _where_and_when(view)
    line = spread(left, row(" ", (note, note_style)), width)
    return line.stylize("on $selection") if selected and focused else line.stylize("on $panel") if selected else line


def _share(progress: Progress | None) -> float | None:
    if progress is None or not progress.total:
        return None
    return min(1.0, progress.done / progress.total)


def strip(view: LaunchView, width: int) -> Content:
    """`starting 12 s ▸ distributed 9 s ▸ weights ██████░░░ 22/64`; the oldest phases give way first."""
    reading = view.reading
    if view.state == "queued" and view.waiting is not None:
        return fit(_queue_strip(view.waiting), width)
    if reading is None:
        words = {"queued": "waiting its turn", "preparing": "preparing the start", "starting": "started; no log yet"}
        return fit(styled(words.get(view.state, "no log to read"), "$muted"), width)
    now = _current(view, reading, width)
    past = [_past(entry) for entry in _before(reading)]
    arrow = styled(" ▸ ", "$rule")
    kept: list[Content] = []
    room = width - now.cell_length
    for piece in reversed(past):
        need = piece.cell_length + 3
        if room - need < (2 if len(kept) + 1 < len(past) else 0):
            kept.append(styled("…", "$muted"))
            break
        room -= need
        kept.append(piece)
    return fit(arrow.join([*reversed(kept), now]), width)


def _before(reading: Reading) -> list[TimelineEntry]:
    """The stays before the present one. `ready` and `serving` have one entry each, and alternate."""
    entries = list(reading.timeline)
    if reading.phase in ("ready", "serving"):
        return [entry for entry in entries if entry.phase != reading.phase]
    return entries[:-1]


def _name(entry: TimelineEntry) -> str:
    return f"{entry.phase} {entry.part}" if entry.part and entry.part != "target" else entry.phase


def _past(entry: TimelineEntry) -> Content:
    seconds = f" {duration(entry.seconds)}" if entry.seconds is not None and entry.seconds >= 0.5 else ""
    return row((_name(entry), f"$phase-{entry.phase} 80%"), (seconds, "$muted"))


def _current(view: LaunchView, reading: Reading, width: int) -> Content:
    phase = reading.phase
    name = f"{phase} {reading.part}" if reading.part and reading.part != "target" else phase
    style = f"bold $phase-{phase}"
    progress = reading.progress
    entry = reading.timeline[-1] if reading.timeline else None
    if progress is None or phase not in ("download", "weights", "compile", "graph-capture", "kv-cache", "warm-up"):
        seconds = (
            entry.seconds if entry is not None and phase not in ("ready", "serving", "stopped", "failed") else None
        )
        return row((name, style), (f" {duration(seconds)}" if seconds is not None else "", "$muted"))
    if progress.total is None:
        return row((name, style), (f" {count(progress.done)} {_UNITS.get(progress.unit, progress.unit)}", "$muted"))
    cells = max(8, min(24, width // 4))
    share = _share(progress)
    numbers = f" {share:.0%}" if progress.unit == "percent" and share is not None else f" {_amount(progress)}"
    return row((name, style), " ", (bar(share, cells), f"$phase-{phase}"), numbers)


def _amount(progress: Progress) -> str:
    if progress.unit == "byte":
        return f"{progress.done / 1e9:.1f}/{(progress.total or 0) / 1e9:.1f} GB"
    return f"{progress.done}/{progress.total}"


def _basis(eta: EtaRange) -> str:
    """What an estimate rests on: `bar+history:n=7` is `bar, 7 starts`."""
    words = []
    for part in eta.basis.split("+"):
        if part.startswith("history:n="):
            number = part.removeprefix("history:n=")
            words.append("1 start" if number == "1" else f"{number} starts")
        else:
            words.append({"bar": "bar", "stamps": "log stamps", "arrival": "arrival times"}.get(part, part))
    return ", ".join(words)


def outlook(view: LaunchView, width: int, now_s: float, *, reads: str = "", told: bool = False) -> Content:
    """The line below the strip: rate and rest of this phase, when it answers, and what that rests on.

    `reads`: where the weights come from just now. `told`: a card beside it says why nothing moves.
    """
    if view.stale_since_s is not None:
        age = duration(max(0.0, now_s - view.stale_since_s))
        return fit(styled(f"the host can't be reached; all of this is {age} old", "$warning"), width)
    reading = view.reading
    if view.state == "queued" and view.waiting is not None:
        return _joined(_queue_reasons(view.waiting), width)
    if view.state in ("failed", "gone", "stopped", "stopping"):
        return fit(_ended(view), width)
    if reading is None:
        return fit(Content(""), width)
    if view.state in ("answers", "not-answering") or reading.phase in ("ready", "serving"):
        return _joined(_running(view, reading), width)
    pieces: list[Content] = []
    progress = reading.progress
    if progress is not None and progress.rate_per_s:
        pieces.append(styled(_rate(progress)))
    if progress is not None and progress.eta_s is not None:
        pieces.append(row("this phase ", (span(progress.eta_s.low, progress.eta_s.high), "bold")))
    if reading.ready_eta_s is not None:
        eta = reading.ready_eta_s
        pieces.append(row("answers in ", (span(eta.low, eta.high), "bold $primary"), (f" ({_basis(eta)})", "$muted")))
    elif progress is not None and progress.eta_s is not None:
        pieces.append(styled(f"by {_basis(progress.eta_s)}", "$muted"))
    if view.state == "stalled" or reading.stalled:
        pieces.insert(0, styled(_standstill(view, reading, told=told), "bold $warning"))
    if not pieces:
        silent = reading.silent_s if reading.silent_s is not None else view.last_log_mtime_age_s
        quiet = f"; the log is silent for {duration(silent)}" if silent is not None and silent >= 10 else ""
        pieces.append(styled(f"no estimate: this log says no progress here, and there is no start to compare{quiet}",
                             "$muted"))  # fmt: skip
    if reading.basis == "tail":
        pieces.append(styled("read from the log's end only", "$muted"))
    if reads and reading.phase == "weights":
        pieces.append(styled(reads))
    if view.history_note:
        pieces.append(styled(view.history_note, "$muted"))
    return _joined(pieces, width)


def _queue_strip(waiting: Waiting) -> Content:
    """`queued 12 min ▸ needs GPU 0, port 30000`."""
    since = f" {duration(waiting.since_s)}" if waiting.since_s is not None else ""
    needs = ", ".join(waiting.needs) or "what is not known"
    return row(("queued", "bold"), (since, "$muted"), (" ▸ ", "$rule"), f"needs {needs}")


def _queue_reasons(waiting: Waiting) -> list[Content]:
    """What holds it up, one piece each."""
    from specconsole.core.launching.waiting import LATE_S, reason_text

    if waiting.looked_ago_s is not None and waiting.looked_ago_s > LATE_S:
        text = f"what waits there has not looked for {duration(waiting.looked_ago_s)}"
        return [styled(text, "bold $warning")]
    if waiting.reasons:
        return [styled(reason_text(one)) for one in waiting.reasons]
    return [styled("everything is free; looking once more" if waiting.free_once else "looking what is free", "$muted")]


def queue_text(waiting: Waiting, host: str) -> str:
    """All that it waits for, as lines for the empty log."""
    import textwrap

    from specconsole.core.launching.waiting import reason_text

    if not waiting.reasons:
        return f"it waits on {host} for its turn; K calls it off"
    lines = [line for one in waiting.reasons for line in textwrap.wrap(reason_text(one), _QUEUE_CELLS)]
    return "\n".join([f"it waits on {host}, whatever becomes of this console; K calls it off", "", *lines])


def _joined(pieces: Sequence[Content], width: int) -> Content:
    """As many pieces as fit whole, the first ones first."""
    line = pieces[0]
    for piece in pieces[1:]:
        if line.cell_length + 3 + piece.cell_length <= width:
            line += styled(" · ", "$rule") + piece
    return fit(line, width)


def _standstill(view: LaunchView, reading: Reading, *, told: bool) -> str:
    silent = reading.silent_s if reading.silent_s is not None else view.last_log_mtime_age_s
    if told and silent is not None:
        return f"nothing moves for {duration(silent)}"
    return f"nothing moves: {reading.stall_reason or 'no sign of life'}"


def _rate(progress: Progress) -> str:
    rate = progress.rate_per_s or 0.0
    if progress.unit == "byte":
        return f"{rate / 1e6:.0f} MB/s"
    if progress.unit == "percent":
        return f"{rate:.2g} %/s"
    unit = _UNITS.get(progress.unit, progress.unit)
    return f"{rate:.1f} {unit}/s" if rate >= 1 else f"{1 / rate:.1f} s/{unit.removesuffix('s')}"


def _running(view: LaunchView, reading: Reading) -> list[Content]:
    if view.state == "answers":
        took = f" after {duration(view.answered_after_s)}" if view.answered_after_s is not None else ""
        pieces = [row(("answers", "bold $success"), (took, "$muted"))]
    elif view.state == "not-answering":
        detail = f": {view.health_detail}" if view.health_detail else ""
        pieces = [styled(f"does not answer, health says {view.health}{detail}", "bold $warning")]
    else:
        pieces = [row(("its log says ready", "bold"), (f"; not proven yet, health {view.health}", "$muted"))]
    metrics = reading.metrics
    if metrics is not None:
        if metrics.gen_throughput_tok_s is not None:
            # A server without work has no rate: the figure is that of its last requests.
            last = "last " if reading.phase == "ready" and not metrics.running else ""
            pieces.append(row((last, "$muted"), (f"{metrics.gen_throughput_tok_s:.0f}", "bold"), " tok/s"))
        if metrics.accept_length is not None:
            pieces.append(row("accept length ", (f"{metrics.accept_length:.2f}", "bold")))
        if metrics.running is not None:
            waiting = f", {metrics.queued} wait" if metrics.queued else ""
            pieces.append(styled(f"{metrics.running} running{waiting}"))
        if metrics.kv_usage is not None:
            pieces.append(styled(f"KV {metrics.kv_usage:.0%}"))
    for probe in view.probes[:2]:
        if probe.last is not None:
            pieces.append(row((f"{probe.name} ", "$muted"), (f"{probe.last:g}", "bold")))
    note = account_note(view.account)
    if note:
        # Behind the state: it says what all the figures are of.
        pieces.insert(1, styled(note, "bold $warning"))
    return pieces


def _ended(view: LaunchView) -> Content:
    reading = view.reading
    status = f"exit status {view.exit_status}" if view.exit_status is not None else "exit status unknown"
    if view.state == "stopping":
        return styled("stopping, and looking that nothing is left", "$warning")
    if view.left_over:
        return styled(f"{len(view.left_over)} left over: {view.left_over[0]}", "bold $warning")
    if view.state == "failed" and reading is not None and reading.failure is not None:
        failure = reading.failure
        phase = f" in {failure.in_phase}" if failure.in_phase else ""
        return row((failure.failure_class, "bold $error"), (phase, ""), (f" · {status}", "$muted"))
    words = {"gone": "its process is gone and nothing says why", "stopped": "stopped"}.get(view.state, view.state)
    return row(words, (f" · {status}", "$muted"))
