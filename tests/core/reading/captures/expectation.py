"""Compares a reading with what a person wrote down for a log. Every difference is one line of text."""

from __future__ import annotations

import gzip
import tomllib
from pathlib import Path
from typing import Any

from specconsole.core.reading.model import Failure, Reading

SPAN_TOLERANCE_S = 1.2
"""SGLang's and vLLM's stamps have whole seconds: an end and a begin are each off by less than one."""


def load(path: Path) -> dict[str, dict[str, Any]]:
    """The expectations of one engine."""
    with path.open("rb") as file:
        return tomllib.load(file)


def log_bytes(folder: Path, name: str) -> bytes:
    """A recorded log, as it was written."""
    path = folder / name
    raw = path.read_bytes()
    return gzip.decompress(raw) if path.suffix == ".gz" else raw


def differences(want: dict[str, Any], got: Reading, *, alive: bool = False) -> list[str]:
    """What is not as written down. `alive`: the reading was asked for while the process still ran."""
    wrong: list[str] = []

    def check(field: str, ok: bool, expected: object, value: object) -> None:
        if not ok:
            wrong.append(f"{field}: expected {expected!r}, got {value!r}")

    check("engine", got.engine in want["engine"], want["engine"], got.engine)
    phases = want["live_phase"] if alive and "live_phase" in want else want["phase"]
    check("phase", got.phase in phases, phases, got.phase)
    if "part" in want:
        check("part", got.part in want["part"] or (got.part is None and "" in want["part"]), want["part"], got.part)
    if "failure" in want and not (alive and "failed" not in phases):
        if alive and phases != ["failed"] and got.failure is None and want["failure"]:
            pass  # not sure yet while it may still live: a suspect will do
        else:
            wrong += _failure_differences(want["failure"], got.failure)
    wrong += _progress_differences(want, got)
    facts = got.server
    for field, value in (("version", facts.version), ("model", facts.model), ("port", facts.port)):
        if field in want:
            check(field, value == want[field], want[field], value)
    if "draft_model" in want:
        expected = want["draft_model"] or None
        check("draft_model", facts.draft_model == expected, expected, facts.draft_model)
    for key, value in want.get("args", {}).items():
        check(f"args.{key}", facts.args.get(key) == value, value, facts.args.get(key))
    there = [warning.warning_class for warning in got.warnings]
    for warning in want.get("warnings", []):
        check("warnings", warning in there, warning, there)
    for warning in want.get("no_warnings", []):
        check("warnings", warning not in there, f"no {warning}", there)
    if "warning_text" in want:
        texts = [warning.text for warning in got.warnings]
        check("warnings.text", any(want["warning_text"] in text for text in texts), want["warning_text"], texts)
    wrong += _metric_differences(want.get("metrics", {}), got)
    wrong += _timeline_differences(want, got)
    if "ranks" in want:
        names = [rank.rank for rank in got.ranks]
        check("ranks", all(name in names for name in want["ranks"]), want["ranks"], names)
    check("starts", got.starts == want.get("starts", 1), want.get("starts", 1), got.starts)
    return wrong


def _failure_differences(want: dict[str, Any] | bool, got: Failure | None) -> list[str]:
    if not want:
        return [] if got is None else [f"failure: expected none, got {got.failure_class}: {got.line!r}"]
    assert isinstance(want, dict)
    if got is None:
        return [f"failure: expected {want['class']}, got none"]
    wrong = []
    if got.failure_class not in want["class"]:
        wrong.append(f"failure.class: expected {want['class']}, got {got.failure_class} ({got.line!r})")
    texts = want["line_contains"]
    if texts and not any(text in (got.line or "") for text in texts):
        wrong.append(f"failure.line: expected one of {texts}, got {got.line!r}")
    if not texts and got.line is not None:
        wrong.append(f"failure.line: expected none, got {got.line!r}")
    if "in_phase" in want and got.in_phase not in want["in_phase"]:
        wrong.append(f"failure.in_phase: expected {want['in_phase']}, got {got.in_phase}")
    if "in_part" in want and got.in_part not in want["in_part"]:
        wrong.append(f"failure.in_part: expected {want['in_part']}, got {got.in_part}")
    if "rank" in want and got.rank != want["rank"]:
        wrong.append(f"failure.rank: expected {want['rank']}, got {got.rank}")
    messengers = want.get("messenger_contains")
    if messengers and not any(text in (got.messenger or "") for text in messengers):
        wrong.append(f"failure.messenger: expected one of {messengers}, got {got.messenger!r}")
    if "advice_set" in want:
        found = got.advice.set if got.advice else None
        if found != want["advice_set"]:
            wrong.append(f"failure.advice.set: expected {want['advice_set']}, got {found}")
    return wrong


def _progress_differences(want: dict[str, Any], got: Reading) -> list[str]:
    wrong = []
    progress = got.progress
    for field in ("done", "total"):
        if field in want:
            value = getattr(progress, field) if progress else None
            if value != want[field]:
                wrong.append(f"progress.{field}: expected {want[field]}, got {value}")
    for field, value in (
        ("rate", progress.rate_per_s if progress else None),
        ("eta", progress.eta_s.mid if progress and progress.eta_s else None),
    ):
        if field in want and (value is None or not want[field][0] <= value <= want[field][1]):
            wrong.append(f"progress.{field}: expected {want[field]}, got {value}")
    if want.get("progress") is False and progress is not None:
        wrong.append(f"progress: expected none, got {progress}")
    return wrong


def _metric_differences(want: dict[str, Any], got: Reading) -> list[str]:
    wrong = []
    for name, span in want.items():
        value = getattr(got.metrics, name) if got.metrics else None
        if span is False:
            if value is not None:
                wrong.append(f"metrics.{name}: expected none, got {value}")
        elif value is None or not span[0] <= value <= span[1]:
            wrong.append(f"metrics.{name}: expected {span}, got {value}")
    return wrong


def _timeline_differences(want: dict[str, Any], got: Reading) -> list[str]:
    wrong = []
    entered = [f"{e.phase}:{e.part}" if e.part else str(e.phase) for e in got.timeline]
    place = 0
    for step in want.get("order", []):
        found = [i for i in range(place, len(entered)) if _same_stay(step, entered[i])]
        if not found and step not in ("ready", "serving"):
            wrong.append(f"timeline: no {step} after {want['order'][: want['order'].index(step)]} in {entered}")
            break
        if not found and not any(_same_stay(step, e) for e in entered):
            # `ready` and `serving` are one entry each, which moves to the end when it is entered again.
            wrong.append(f"timeline: no {step} in {entered}")
        place = found[0] if found else place
    for phase in want.get("never", []):
        if any(e.phase == phase for e in got.timeline):
            wrong.append(f"timeline: {phase} must not be in {entered}")
    for span in want.get("spans", []):
        stays = [e for e in got.timeline if e.phase == span["phase"] and e.part == span.get("part")]
        seconds = sum(e.seconds or 0.0 for e in stays)
        tolerance = span.get("tolerance", SPAN_TOLERANCE_S)
        if not stays or abs(seconds - span["seconds"]) > tolerance:
            wrong.append(f"timeline.{span['phase']}/{span.get('part')}: expected {span['seconds']} s, got {seconds}")
    return wrong


def _same_stay(step: str, entered: str) -> bool:
    return step == entered or (":" not in step and entered.split(":")[0] == step)
