"""What only the host can add to a failure's advice: a port that is free there now.

Asked once, of a launch that failed within the last hour; trouble costs the addition, never the launch's state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from specconsole.core.launching.folder import LaunchRecord
from specconsole.core.launching.spec import LaunchSpec
from specconsole.core.reading.model import Advice, Failure, Reading
from specconsole.errors import SpecconsoleError
from specconsole.ports import Launcher

_RECENT_S = 3600.0
_PORT = re.compile(r"(?:port[:= ]+|, |port at |:)(\d{2,5})\b")


async def remedy(launcher: Launcher, record: LaunchRecord, reading: Reading | None) -> Advice | None:
    """Advice to show in place of the reading's own; None where the host has nothing to add."""
    failure = reading.failure if reading is not None else None
    spec = record.spec
    if failure is None or spec is None or failure.failure_class != "port-in-use" or not _recent(record):
        return None
    held = _port_of(failure, spec)
    key = None if held is None else setting_of_port(spec, held)
    if key is None:
        return None
    try:
        free = await launcher.free_port()
    except (SpecconsoleError, TimeoutError):
        return None
    value = _with_port(spec, key, free)
    text = f"Port {held} is held by another process; {free} was free a moment ago: {key} {held} -> {free}."
    return Advice(text, {key: value})


def with_remedy(reading: Reading, found: Advice | None) -> Reading:
    """The reading with that advice in its failure."""
    if found is None or reading.failure is None:
        return reading
    return replace(reading, failure=replace(reading.failure, advice=found))


def setting_of_port(spec: LaunchSpec, port: int) -> str | None:
    """The setting that gave the server this port; None where none did (it chose one itself)."""
    for name, value in spec.settings.items():
        plain = name.lstrip("-").replace("-", "_")
        if "port" in plain and str(value) == str(port):
            # `port` alone is the launch's own, which a flag of that name overrules.
            return f"args.{name}" if plain == "port" else name
        if plain == "dist_init_addr" and str(value).endswith(f":{port}"):
            return name
    return "port" if spec.port == port else None


def _with_port(spec: LaunchSpec, key: str, port: int) -> Any:
    settings: Mapping[str, Any] = spec.settings
    old = settings.get(key.removeprefix("args."))
    if isinstance(old, str) and ":" in old:
        return f"{old.rpartition(':')[0]}:{port}"
    return port


def _port_of(failure: Failure, spec: LaunchSpec) -> int | None:
    named = [int(number) for number in _PORT.findall(failure.line or "")]
    known = [number for number in named if setting_of_port(spec, number) is not None]
    if known:
        return known[-1]
    # `OSError: [Errno 98] Address already in use` names none: vLLM binds its own first.
    return spec.port if not named else None


def _recent(record: LaunchRecord) -> bool:
    now_s, ended_s = record.moment.now_s, record.exit_at_s or record.log_mtime_s
    return now_s is not None and ended_s is not None and now_s - ended_s < _RECENT_S
