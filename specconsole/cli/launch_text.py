"""A launch for a terminal, for a pipe, and as JSON (schemas: docs/json.md)."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specconsole.core.launching.stopping import StopEvent
    from specconsole.core.reading.model import EtaRange, Reading
    from specconsole.core.views.launch import LaunchView

SCHEMA = 1


def launch_json(view: LaunchView) -> dict[str, Any]:
    """The object `launch` of docs/json.md."""
    shape = asdict(view)
    for key in ("as_of_s", "stale_since_s"):
        # Of this console's own clock: means nothing outside.
        del shape[key]
    shape["stale"] = view.stale_since_s is not None
    shape["reading"] = view.reading.to_json() if view.reading is not None else None
    return shape


def stop_json(event: StopEvent) -> dict[str, Any]:
    """The object `stop` of docs/json.md."""
    return asdict(event)


def phase_text(reading: Reading | None) -> str:
    """`weights (target) 22/64 shards, 8 to 11 s left`."""
    if reading is None:
        return ""
    part = f" ({reading.part})" if reading.part else ""
    text = f"{reading.phase}{part}"
    progress = reading.progress
    if progress is not None:
        total = "" if progress.total is None else f"/{progress.total}"
        unit = "" if progress.unit == "percent" else f" {progress.unit}s"
        text += f" {progress.done}{total}{'%' if progress.unit == 'percent' else unit}"
        if progress.eta_s is not None:
            text += f", {eta_text(progress.eta_s)} left"
    return text


def eta_text(eta: EtaRange) -> str:
    """`8 to 11 s`, `7 to 9 min`."""
    unit, name = (1.0, "s") if eta.high < 120 else (60.0, "min")
    low, high = f"{eta.low / unit:.0f}", f"{eta.high / unit:.0f}"
    return f"{low} {name}" if low == high else f"{low} to {high} {name}"


def state_text(view: LaunchView) -> str:
    """One line about how it stands."""
    text: str = view.state
    if view.state == "queued" and view.waiting is not None:
        from specconsole.core.launching.waiting import waiting_text

        text = waiting_text(view.waiting)
    elif view.state in ("starting", "loading", "stalled"):
        phase = phase_text(view.reading)
        text += f": {phase}" if phase not in ("", view.state) else ""
        if view.reading is not None and view.reading.ready_eta_s is not None:
            text += f", answers in {eta_text(view.reading.ready_eta_s)}"
    elif view.state == "answers" and view.answered_after_s is not None:
        text += f" (after {view.answered_after_s:.1f} s)"
    elif view.state == "not-answering":
        text += f": {view.health} {view.health_detail}".rstrip()
    elif view.state == "failed":
        text += f": {failure_text(view)}"
    elif view.state == "stopped" and view.exit_status is not None:
        from specconsole.core.launching.stopping import describe_exit

        text += f" ({describe_exit(view.exit_status)})"
    if view.stale_since_s is not None:
        text += " (its host can't be reached)"
    return text


def failure_text(view: LaunchView) -> str:
    """The cause and where it stands, or the exit status when none is stated."""
    from specconsole.core.launching.stopping import describe_exit

    failure = view.reading.failure if view.reading is not None else None
    if failure is None or (failure.line is None and view.health_detail):
        return view.health_detail or describe_exit(view.exit_status)
    if failure.failure_class == "killed" and failure.line is None and (view.exit_status or 0) <= 128:
        # The class for "gone with no cause stated" is no word for a server that ended by itself.
        return f"{describe_exit(view.exit_status)}, and the log states no cause"
    where = f" (log line {failure.line_no})" if failure.line_no is not None else ""
    return f"{failure.failure_class}: {failure.line or describe_exit(view.exit_status)}{where}"


def advice_text(view: LaunchView) -> str:
    """What to try; "" without a known advice."""
    failure = view.reading.failure if view.reading is not None else None
    return failure.advice.text if failure is not None and failure.advice is not None else ""


def when_text(at_s: float | None) -> str:
    """Local time of day, with the date when it is not today."""
    if at_s is None:
        return "-"
    then = time.localtime(at_s)
    today = time.localtime()[:3] == then[:3]
    return time.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M", then)
