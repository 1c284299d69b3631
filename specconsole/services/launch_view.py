"""A launch's record -> the part of its view that the folder alone decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from specconsole.core.launching.command import show
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.start_eta import eta_of_starts
from specconsole.core.launching.stopping import describe_exit
from specconsole.core.reading.model import Reading
from specconsole.core.reading.probe_series import ProbeReader, sampled
from specconsole.core.views.launch import LaunchState, LaunchView, ProbeView

_SHOWN = 120
"""Points of a small plot."""


@dataclass(frozen=True, slots=True)
class WhoWeAre:
    """The person at this console, as launches name their owners."""

    owner: str
    """`user@machine`."""
    client_id: str


def view_of_record(record: LaunchRecord, host: str, us: WhoWeAre) -> LaunchView:
    """State and reading are the caller's."""
    spec = record.spec
    if spec is None:
        return LaunchView(
            record.launch_id, "?", host, "unknown", None, "unknown", health_detail=record.problem, ours=False
        )
    return LaunchView(
        launch_id=record.launch_id,
        name=spec.profile,
        host=host,
        engine=spec.engine,
        port=spec.port,
        state="unknown",
        health_detail=record.problem,
        started_at_s=record.started_at_s,
        ended_at_s=record.exit_at_s,
        age_s=record.age_s if record.alive else None,
        exit_status=record.exit_status,
        owner=spec.owner,
        # Root is shared on GPU machines: the account's name alone says nothing.
        ours=spec.client_id == us.client_id and spec.owner == us.owner,
        adopted=spec.adopted,
        tags=spec.tags,
        command=show(spec.argv),
        log_path=record.log_path,
        last_log_mtime_age_s=_age(record.moment.now_s, record.log_mtime_s),
        waiting=record.waiting,
        processes=((record.process.pid, record.process.start_ticks),) if record.process and record.alive else (),
    )


def probe_views(reader: ProbeReader | None) -> tuple[ProbeView, ...]:
    """What the probes have read so far."""
    return tuple(
        ProbeView(one.name, one.count, one.last, one.mean, one.unreadable, sampled(one, _SHOWN))
        for one in (reader.series() if reader is not None else ())
    )


def failure_note(record: LaunchRecord, reading: Reading | None) -> str:
    """Why it failed, in one line."""
    failure = reading.failure if reading is not None else None
    if failure is not None and (failure.line or not record.problem):
        return f"{failure.failure_class}: {failure.line or describe_exit(record.exit_status)}"
    return record.problem or describe_exit(record.exit_status)


def keep_time(before: LaunchView, view: LaunchView) -> LaunchView:
    """The old view when nothing but the time of looking differs, so that nothing is repainted for it."""
    return before if replace(before, as_of_s=view.as_of_s) == view and view.as_of_s - before.as_of_s < 1.0 else view


def with_outlook(
    reading: Reading | None, state: LaunchState, past_starts_s: Sequence[float], age_s: float | None
) -> Reading | None:
    """While the log supports no estimate (it is silent at first), earlier starts of the profile here do."""
    if reading is None or reading.ready_eta_s is not None or state not in ("preparing", "starting", "loading"):
        return reading
    return replace(reading, ready_eta_s=eta_of_starts(past_starts_s, age_s))


def history_note(last_start_s: float | None) -> str:
    """`last: 8:30`; "" without history."""
    return "" if last_start_s is None else f"last: {int(last_start_s) // 60}:{int(last_start_s) % 60:02d}"


def _age(now_s: float | None, then_s: float | None) -> float | None:
    return None if now_s is None or then_s is None else max(0.0, now_s - then_s)
