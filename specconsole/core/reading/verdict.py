"""State to `Reading`: what is said at one moment, with a clock or without, of a live process or of a dead one."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from specconsole.core.reading import eta, stall
from specconsole.core.reading.history import History, StartKey
from specconsole.core.reading.history_eta import combined_phase_eta, phase_history_eta, ready_eta
from specconsole.core.reading.model import (
    START_PHASES,
    Failure,
    Phase,
    Progress,
    Reading,
    ReadingWarning,
    TimelineEntry,
)
from specconsole.core.reading.phases import Phases
from specconsole.core.reading.pipeline import Pipeline

_ENDED: tuple[Phase, ...] = ("stopping", "stopped", "failed")
SLOW_LOAD_S = 900.0
"""Weights that take longer than this are worth a person's look (cold cache, network file system)."""


def build_reading(
    pipeline: Pipeline,
    *,
    log_now_s: float | None,
    now_s: float | None,
    arrived_at_s: float | None,
    dead: bool,
    exit_code: int | None,
    stop_asked: bool,
    gpu: stall.GpuActivity | None,
    key: StartKey | None,
    history: History | None,
    basis: Literal["whole", "tail"],
    lines: int,
    size: int,
) -> Reading:
    """Puts the parts together; changes none of them."""
    phases = pipeline.phases
    stopping = phases.phase in ("stopping", "stopped")
    failure, suspect = pipeline.failures.verdict(
        dead=dead,
        exit_code=exit_code,
        stop_asked=stop_asked or stopping,
        clean_stop=phases.phase == "stopped" or (stopping and exit_code in (None, 0)),
        phase=phases.phase,
        part=phases.part,
    )
    phase, part = phases.phase, phases.part
    timeline = phases.timeline(log_now_s)
    if failure is not None:
        phase, part = "failed", None
        timeline = (*timeline, _failed_entry(pipeline, failure, timeline))
    elif dead and phase != "stopped":
        phase, part = "stopped", None
        timeline = (*timeline, TimelineEntry("stopped", None, log_now_s, None, max(1, lines)))
    elif phase == "serving" and _idle_again(pipeline, log_now_s, now_s, arrived_at_s, gpu):
        phase = "ready"
    progress = _progress(phases, phase, now_s) if phase in START_PHASES else None
    spent_s = _spent_s(phases, log_now_s, now_s)
    phase_eta = progress.eta_s if progress is not None else None
    if phase in START_PHASES:
        phase_eta = combined_phase_eta(history, key, phase, part, phases.nth, spent_s, phase_eta)
        if progress is not None:
            progress = replace(progress, eta_s=phase_eta)
    silent_s, stalled, reason = _silence(pipeline, phase, now_s, arrived_at_s, gpu, key, history, spent_s)
    return Reading(
        engine=pipeline.engine,
        phase=phase,
        part=part,
        progress=progress,
        ready_eta_s=ready_eta(history, key, phase, part, phases.nth, phase_eta),
        failure=failure,
        warnings=_warnings(pipeline, phase, progress, spent_s),
        metrics=pipeline.serving.metrics(),
        server=replace(pipeline.facts, port=pipeline.phases.port or pipeline.facts.port),
        timeline=timeline,
        suspect=suspect,
        ranks=phases.rank_readings(now_s),
        starts=max(1, pipeline.starts),
        basis=basis,
        lines=lines,
        bytes=size,
        silent_s=silent_s,
        stalled=stalled,
        stall_reason=reason,
    )


def _failed_entry(pipeline: Pipeline, failure: Failure, timeline: tuple[TimelineEntry, ...]) -> TimelineEntry:
    line_no = failure.line_no or (timeline[-1].line_no if timeline else 1)
    start_s = pipeline.trouble_stamps.get(str(failure.line_no))
    return TimelineEntry("failed", None, start_s, None, line_no)


def _progress(phases: Phases, phase: Phase, now_s: float | None) -> Progress | None:
    if phases.bar is None or phase != phases.phase:
        return None
    if phases.downloads.tracks:
        return phases.downloads.progress(now_s=now_s)
    return eta.progress(phases.bar, now_s=now_s)


def _spent_s(phases: Phases, log_now_s: float | None, now_s: float | None) -> float | None:
    """How long the present stay has lasted."""
    here = phases.now
    if now_s is not None and here.start_at_s is not None:
        return max(0.0, now_s - here.start_at_s)
    if log_now_s is None or here.since_s is None:
        return None
    return max(0.0, log_now_s - here.since_s)


def _silence(
    pipeline: Pipeline,
    phase: Phase,
    now_s: float | None,
    arrived_at_s: float | None,
    gpu: stall.GpuActivity | None,
    key: StartKey | None,
    history: History | None,
    spent_s: float | None,
) -> tuple[float | None, bool | None, str | None]:
    """Silence since the last byte, and whether the missing progress means a stall."""
    if now_s is None or arrived_at_s is None:
        return None, None, None
    silent_s = max(0.0, now_s - arrived_at_s)
    if phase in _ENDED:
        return silent_s, None, None
    phases = pipeline.phases
    metrics = pipeline.serving.metrics()
    verdict = stall.judge(
        phase,
        phases.part,
        _still_s(pipeline, now_s, arrived_at_s),
        track=phases.bar,
        usual=phase_history_eta(history, key, phase, phases.part, phases.nth, 0.0),
        spent_s=spent_s,
        gpu=gpu,
        ranks=phases.rank_readings(now_s),
        running=metrics.running if metrics is not None else None,
    )
    return silent_s, verdict.stalled, verdict.reason


def _still_s(pipeline: Pipeline, now_s: float, arrived_at_s: float) -> float:
    """Seconds since the last sign of progress (of bytes at all, where no progress came while it was watched)."""
    since = pipeline.phases.progress_at_s
    return max(0.0, now_s - (since if since is not None else arrived_at_s))


def _idle_again(
    pipeline: Pipeline,
    log_now_s: float | None,
    now_s: float | None,
    arrived_at_s: float | None,
    gpu: stall.GpuActivity | None,
) -> bool:
    """Whether the requests that were being worked on must be done by now, though no line said so. Without a clock the
    log's own tells it, where other lines (access lines, another server's) follow the last one of work."""
    serving = pipeline.serving
    if pipeline.failures_open() or pipeline.findings.has("health-failing"):
        return False
    if now_s is not None and arrived_at_s is not None:
        still_s = _still_s(pipeline, now_s, arrived_at_s)
    elif log_now_s is not None and serving.worked_at_s is not None:
        still_s = log_now_s - serving.worked_at_s
    else:
        return False
    return stall.idle_again(
        pipeline.engine,
        still_s,
        rhythm_s=serving.rhythm_s,
        prompted=pipeline.phases.progress_line_no > serving.last_line_no,
        windows=serving.windows > 0,
        gpu=gpu,
    )


def _warnings(
    pipeline: Pipeline, phase: Phase, progress: Progress | None, spent_s: float | None
) -> tuple[ReadingWarning, ...]:
    found = pipeline.findings.readings()
    found.extend(ReadingWarning("exception-logged", no, text[:500]) for no, text in pipeline.failures.logged[:20])
    useless = pipeline.serving.useless()
    if useless is not None:
        line_no, length = useless
        text = f"accept length {length:.2f}: nearly every drafted token is thrown away"
        found.append(ReadingWarning("speculation-useless", line_no, text))
    serving = pipeline.serving
    if pipeline.phases.draft_expected and serving.windows > 1 and not serving.accepts:
        text = "a draft was configured, and no decode line speaks of accepted tokens"
        found.append(ReadingWarning("speculation-off", pipeline.phases.now.line_no, text))
    if phase == "weights" and spent_s is not None and spent_s > SLOW_LOAD_S:
        done = f"{progress.done} of {progress.total}" if progress is not None else "no count"
        text = f"weights have been loading for {spent_s:.0f} s ({done}): cold cache or slow storage?"
        found.append(ReadingWarning("slow-load", pipeline.phases.now.line_no, text))
    return tuple(sorted(found, key=lambda warning: warning.line_no))
