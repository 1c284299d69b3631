"""One launch as far as it is known, for being put beside another: from what the store keeps of it and its account."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specconsole.core.hardware.gpu_memory import MemorySnapshot, parse_snapshots
from specconsole.core.launching.account_text import speculation_text
from specconsole.core.launching.effective import Account
from specconsole.core.launching.flag_pairs import pair_up
from specconsole.core.records import StoredLaunch
from specconsole.core.views.history import HistoryRow, pick

_INTERPRETER = re.compile(r"(?:^|/)(?:python[0-9.]*|(?:ba|da|z)?sh)$")
_OURS = frozenset({"PYTHONUNBUFFERED", "SPT_NOENV"})
"""Variables that every launch gets from the console."""


@dataclass(frozen=True, slots=True)
class LaunchSide:
    """None: nobody knows; an empty mapping: there is nothing."""

    launch_id: str
    profile: str
    host: str
    engine: str = ""
    outcome: str = ""
    """State or last word of the life cycle; "" unknown."""
    cause: str = ""
    exit_status: int | None = None
    owner: str = ""
    at_s: float = 0.0
    """When it was asked for."""
    tags: tuple[str, ...] = ()
    note: str = ""
    flags: Mapping[str, Any] | None = None
    """Words of the command line by flag, as they reached the process; `command` is what stands before the first one.
    True: a flag without a value. Tables given as JSON are taken apart (`--speculative-config.method`)."""
    settings: Mapping[str, Any] | None = None
    """Effective settings by the server's own account."""
    settings_complete: bool = True
    """Whether the account names every setting there is."""
    versions: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] | None = None
    """Variables, secrets starred; besides `working folder` and `environment`."""
    phases_s: Mapping[str, float | None] | None = None
    """Seconds in each phase and part, in order, until it was ready."""
    answered_after_s: float | None = None
    memory_bytes: Mapping[str, int] | None = None
    """`GPU 3 before`, `GPU 3 answering`, `GPU 3 after` -> bytes used."""
    unknown: tuple[str, ...] = ()
    """Why something is not known, a line each."""

    @property
    def runs(self) -> bool:
        """Whether it is known to run: what only an end brings is then not there, and not unknown."""
        return self.outcome not in ("", "unknown", "stopped", "failed", "gone")

    def to_json(self) -> dict[str, Any]:
        return {
            "launch_id": self.launch_id,
            "profile": self.profile,
            "host": self.host,
            "engine": self.engine,
            "outcome": self.outcome or None,
            "at_s": self.at_s or None,
        }


def side_of(
    launch: StoredLaunch,
    row: HistoryRow,
    account: Account | None,
    *,
    outcome: str | None = None,
    unknown: Sequence[str] = (),
) -> LaunchSide:
    """`outcome`: the state now, of a launch that is watched."""
    facts = launch.facts
    asked = pick(facts, "asked", dict)
    snapshots = pick(facts, "memory", list)
    return LaunchSide(
        launch_id=launch.launch_id,
        profile=launch.profile,
        host=launch.host,
        engine=launch.engine,
        outcome=outcome or launch.outcome,
        cause=row.cause,
        exit_status=row.exit_status,
        owner=launch.owner,
        at_s=row.at_s,
        tags=row.tags,
        note=row.annotations.note_text,
        flags=None if asked is None else flags_of([str(word) for word in asked.get("argv") or ()]),
        settings=None if account is None else _settings(account),
        settings_complete=launch.engine != "llamacpp",
        versions=_versions(account, facts),
        environment=None if asked is None else _environment(asked),
        phases_s=_phases(facts),
        answered_after_s=row.answered_after_s,
        memory_bytes=None if snapshots is None else memory_of(_snapshots(snapshots)),
        unknown=tuple(unknown),
    )


def flags_of(argv: Sequence[str]) -> dict[str, Any]:
    """The words of a command line by flag, each with its dashes."""
    first = _program_end(argv)
    found: dict[str, Any] = {"command": " ".join(argv[:first])} if argv else {}
    dashes = {word.lstrip("-").partition("=")[0]: word[: len(word) - len(word.lstrip("-"))] for word in argv[first:]}
    for name, values in pair_up(argv[first:]):
        key = f"{dashes.get(name, '--')}{name}"
        table = _table(values)
        if table is not None:
            found.update({f"{key}.{inner}": value for inner, value in table.items()})
            continue
        value: Any = " ".join(values) if values else True
        found[key] = f"{found[key]} {value}" if key in found else value
    return found


def _program_end(argv: Sequence[str]) -> int:
    """Where the program's own flags begin: `python3 -u -m module` and `sh -c '...'` are the program."""
    end = 1
    if argv and _INTERPRETER.search(argv[0]):
        while end < len(argv) and argv[end] not in ("-m", "-c", "-lc") and argv[end].startswith("-"):
            end += 1
        if end + 1 < len(argv) and argv[end] in ("-m", "-c", "-lc"):
            end += 2
    return next((n for n in range(end, len(argv)) if _is_flag(argv[n])), len(argv))


def _is_flag(word: str) -> bool:
    return bool(pair_up([word]))


def _table(values: Sequence[str]) -> dict[str, Any] | None:
    if len(values) != 1 or not values[0].startswith("{"):
        return None
    try:
        shape = json.loads(values[0])
    except ValueError:
        return None
    return shape if isinstance(shape, dict) else None


def _settings(account: Account) -> dict[str, Any]:
    found = account.effective
    told: dict[str, Any] = {}
    if found.speculation.on is not None:
        told["speculation"] = speculation_text(found.speculation).partition(" (by ")[0]
    facts = {
        "attention backend": found.attention_backend,
        "draft attention backend": found.draft_attention_backend,
        "CUDA graphs": found.cuda_graphs,
        "context": found.context,
        "KV tokens": found.kv_tokens,
        "running cap": found.running_cap,
    }
    told |= {name: value for name, value in facts.items() if value is not None}
    return {**told, **dict(sorted(found.settings.items()))}


def _versions(account: Account | None, facts: Mapping[str, Any]) -> dict[str, str]:
    found = {key: str(value) for key, value in (account.effective.build if account is not None else {}).items()}
    server = pick(facts, "server", dict) or {}
    if "version" not in found and server.get("version"):
        found["version"] = str(server["version"])
    console = (pick(facts, "asked", dict) or {}).get("console_version")
    return {**found, "specconsole": str(console)} if console else found


def _environment(asked: Mapping[str, Any]) -> dict[str, str]:
    found = {str(k): str(v) for k, v in sorted((pick(asked, "env", dict) or {}).items()) if k not in _OURS}
    for key, name in (("working_dir", "working folder"), ("environment", "environment")):
        if asked.get(key):
            found[name] = str(asked[key])
    return found


def _phases(facts: Mapping[str, Any]) -> dict[str, float | None] | None:
    timeline = pick(facts, "timeline", list)
    if not timeline or facts.get("basis") != "whole":
        return None
    found: dict[str, float | None] = {}
    for number, entry in enumerate(timeline):
        if not isinstance(entry, dict):
            return None
        if entry.get("phase") in ("ready", "serving", "stopping", "stopped", "failed"):
            break
        name = f"{entry.get('phase')} ({entry['part']})" if entry.get("part") else str(entry.get("phase"))
        seconds = _stay_s(entry, timeline[number + 1] if number + 1 < len(timeline) else None)
        known = found.get(name, 0.0)
        found[name] = None if seconds is None or known is None else round(known + seconds, 3)
    return found


def _stay_s(entry: Mapping[str, Any], following: Any) -> float | None:
    """To the next phase's begin: a server's own word leaves out what it does before that."""
    start, seconds = pick(entry, "start_s", int, float), pick(entry, "seconds", int, float)
    after = pick(following, "start_s", int, float) if isinstance(following, dict) else None
    if start is not None and after is not None:
        return max(0.0, float(after) - float(start))
    return None if seconds is None else float(seconds)


def memory_of(snapshots: Sequence[MemorySnapshot]) -> dict[str, int]:
    """What each GPU held at the launch's moments, and what it took from before the start until it answered."""
    words = {"before-launch": "before", "answers": "answering", "after-stop": "after"}
    found: dict[str, int] = {}
    for snapshot in snapshots:
        if snapshot.moment in words:
            for gpu in snapshot.gpus:
                if gpu.used_bytes is not None:
                    found[f"GPU {gpu.index} {words[snapshot.moment]}"] = gpu.used_bytes
    for name in [name for name in found if name.endswith(" answering")]:
        before = found.get(name.replace(" answering", " before"))
        if before is not None:
            found[name.replace(" answering", " taken")] = found[name] - before
    return found


def _snapshots(shapes: Sequence[Any]) -> tuple[MemorySnapshot, ...]:
    return parse_snapshots("\n".join(json.dumps(shape) for shape in shapes).encode())
