"""What the host and the launch's own settings add to a failure's advice: a port that is free there now, a context that
the model was made for.

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
from specconsole.services.spool import Spool

_RECENT_S = 3600.0
_TAIL_BYTES = 64 * 1024
# `W llama_context: n_ctx_seq (131072) > n_ctx_train (4096) -- possible training context overflow` (llama-context.cpp)
_TRAINED = re.compile(rb"n_ctx_seq \((\d{1,12})\) > n_ctx_train \((\d{1,12})\)")
_CONTEXT = ("ctx_size", "c", "n_ctx")
_PORT = re.compile(r"(?:port[:= ]+|, |port at |:)(\d{2,5})\b")


async def remedy(
    launcher: Launcher, record: LaunchRecord, reading: Reading | None, spool: Spool | None = None
) -> Advice | None:
    """Advice to show in place of the reading's own; None where there is nothing to add."""
    failure = reading.failure if reading is not None else None
    spec = record.spec
    if failure is None or spec is None:
        return None
    if failure.failure_class == "host-memory" and spool is not None:
        return shorter_context(spec, spool.raw(max(0, spool.size_bytes - _TAIL_BYTES), spool.size_bytes))
    if failure.failure_class != "port-in-use" or not _recent(record):
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


def shorter_context(spec: LaunchSpec, log: bytes) -> Advice | None:
    """llama.cpp, out of memory with a context that goes beyond what the model was trained for: as much as that for each
    slot. None where the log or the settings do not say it."""
    found = _TRAINED.findall(log)
    key = next((name for name in spec.settings if name.lstrip("-").replace("-", "_") in _CONTEXT), None)
    asked = spec.settings[key] if key is not None else None
    if not found or spec.engine != "llamacpp" or key is None or isinstance(asked, bool) or not str(asked).isdigit():
        return None
    each, trained = (int(number) for number in found[-1])
    slots = max(1, round(int(str(asked)) / each)) if each else 1
    fits = trained * slots
    if not 0 < fits < int(str(asked)):
        return None
    over = f" for each of {slots} slots" if slots > 1 else ""
    text = f"The context does not fit in memory, and the model was made for {trained} tokens{over}"
    return Advice(f"{text}: {key} {asked} -> {fits}.", {key: fits})


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
