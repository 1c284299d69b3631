"""What is kept of a launch besides its index row: `StoredLaunch.facts`, written here and read back into a history row.

`asked`: the launch as it was asked for (`LaunchSpec`), secrets masked. `failure`, `metrics`, `server`, `timeline`,
`basis`: of its last reading. `memory`: the GPUs' memory at its moments. `answered_after_s`, `exit_status`, `alive`.
A key that is missing is not known.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from specconsole.core.hardware.gpu_memory import MemorySnapshot
from specconsole.core.launching.command import show
from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.masking import mask_text
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.reading.model import Reading
from specconsole.core.records import StoredLaunch
from specconsole.core.views.history import HistoryRow, pick

_SECRET_NAME = re.compile(r"(?:^|_)(?:api_?key|key|token|secret|password|passwd|credentials?)s?$", re.IGNORECASE)
_MAX_COMMAND_CHARS = 4000
_MAX_LINE_CHARS = 600
_MAX_SEARCHED_CHARS = 12_000


def facts_of_record(record: LaunchRecord) -> dict[str, Any]:
    """What the launch's folder says."""
    facts: dict[str, Any] = {"alive": record.alive}
    if record.spec is not None:
        facts["asked"] = masked_spec(record.spec)
    if record.exit_status is not None:
        facts["exit_status"] = record.exit_status
    if record.answered_after_s is not None:
        facts["answered_after_s"] = record.answered_after_s
    return facts


def facts_of_reading(reading: Reading | None, answered_after_s: float | None) -> dict[str, Any]:
    """What its log says, and when it answered."""
    facts: dict[str, Any] = {}
    if answered_after_s is not None:
        facts["answered_after_s"] = round(answered_after_s, 3)
    if reading is None:
        return facts
    shape = reading.to_json()
    facts |= {"failure": shape["failure"], "timeline": shape["timeline"], "basis": reading.basis}
    if reading.metrics is not None:
        facts["metrics"] = shape["metrics"]
    facts["server"] = {key: value for key, value in shape["server"].items() if key != "args"}
    return facts


def facts_of_memory(snapshots: Iterable[MemorySnapshot]) -> dict[str, Any]:
    """The last snapshot of each moment; {} without any."""
    found = {snapshot.moment: asdict(snapshot) for snapshot in snapshots}
    return {"memory": list(found.values())} if found else {}


def masked_spec(spec: LaunchSpec) -> dict[str, Any]:
    """The launch as it was asked for, fit to be kept and shown: nothing that looks like a secret is in it."""
    env = {name: "***" if secret_name(name) else mask_text(value) for name, value in spec.env.items()}
    settings = {
        name: "***" if secret_name(name) and isinstance(value, str) else _masked(value)
        for name, value in spec.settings.items()
    }
    shape = asdict(spec)
    shape.pop("secret_places")
    return {
        **shape,
        "argv": masked_argv(spec.argv),
        "command": masked_argv(spec.command),
        "log_command": masked_argv(spec.log_command),
        "env": {**env, **dict.fromkeys(spec.secret_names, "***")},
        "settings": settings,
    }


def masked_argv(argv: Sequence[str]) -> list[str]:
    """The words of a command line with the secret ones starred."""
    return shlex.split(mask_text(show(argv)))


def secret_name(name: str) -> bool:
    """Whether a variable's or setting's name says that its value is a secret; `max_total_tokens` does not."""
    return _SECRET_NAME.search(name.replace("-", "_")) is not None and not name.lower().endswith("tokens")


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, list):
        return [_masked(one) for one in value]
    if isinstance(value, dict):
        return {key: _masked(one) for key, one in value.items()}
    return value


def row_of(launch: StoredLaunch) -> HistoryRow:
    """Without what others know of it: notes, tags, measured points."""
    facts = launch.facts
    asked: Mapping[str, Any] = pick(facts, "asked", dict) or {}
    failure: Mapping[str, Any] = pick(facts, "failure", dict) or {}
    metrics: Mapping[str, Any] = pick(facts, "metrics", dict) or {}
    server: Mapping[str, Any] = pick(facts, "server", dict) or {}
    argv = [str(word) for word in asked.get("argv") or ()]
    return HistoryRow(
        launch_id=launch.launch_id,
        host=launch.host,
        profile=launch.profile,
        engine=launch.engine,
        outcome=launch.outcome,
        at_s=pick(asked, "requested_at_s", int, float) or launch.started_at_s or 0.0,
        owner=launch.owner,
        folder=launch.folder,
        cause=str(failure.get("class") or "") if launch.outcome == "failed" else "",
        cause_line=str(failure.get("line") or "")[:_MAX_LINE_CHARS] if launch.outcome == "failed" else "",
        started_at_s=launch.started_at_s,
        ended_at_s=launch.ended_at_s,
        answered_after_s=pick(facts, "answered_after_s", int, float),
        accept_length=pick(metrics, "accept_length", int, float),
        exit_status=pick(facts, "exit_status", int),
        port=pick(asked, "port", int),
        model=str(asked.get("model") or server.get("model") or ""),
        draft_model=str(asked.get("draft_model") or server.get("draft_model") or ""),
        description=str(asked.get("description") or ""),
        command=shlex.join(argv)[:_MAX_COMMAND_CHARS],
        profile_tags=tuple(str(tag) for tag in asked.get("tags") or ()),
    )


def searched_text(launch: StoredLaunch, row: HistoryRow) -> str:
    """What a search looks through, case folded, notes and added tags apart."""
    asked: Mapping[str, Any] = pick(launch.facts, "asked", dict) or {}
    parts = [
        row.launch_id, row.profile, row.host, row.engine, row.owner, row.outcome, row.cause, row.cause_line,
        row.model, row.draft_model, row.description, row.command, *row.profile_tags,
        *(str(name) for name in pick(asked, "env", dict) or {}),
    ]  # fmt: skip
    return "\n".join(part for part in parts if part)[:_MAX_SEARCHED_CHARS].casefold()


def merged(old: StoredLaunch | None, new: StoredLaunch) -> StoredLaunch:
    """What both know: the newer word where there is one, the older where the newer does not say."""
    if old is None:
        return new
    # A launch that runs after all has no outcome, whatever was thought before.
    outcome = new.outcome or ("" if new.facts.get("alive") is True else old.outcome)
    if new.outcome == "gone" and old.outcome:
        outcome = old.outcome  # that its folder was removed since says nothing of how it ended
    return replace(
        new,
        profile=new.profile or old.profile,
        engine=new.engine or old.engine,
        owner=new.owner or old.owner,
        folder=new.folder or old.folder,
        started_at_s=old.started_at_s if new.started_at_s is None else new.started_at_s,
        ended_at_s=old.ended_at_s if new.ended_at_s is None else new.ended_at_s,
        outcome=outcome,
        facts={**old.facts, **{key: value for key, value in new.facts.items() if value is not None}},
    )
