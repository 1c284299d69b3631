"""What is looked at before a start: the port, the paths, the memory. Pure judgement over what the host said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["ok", "note", "warning", "stop"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    check: str
    """`port`, `binary`, `model`, `draft`, `memory`, `working-dir`, `version`, `flag`, `rule`, `gpu`, `disk`."""
    severity: Severity
    text: str
    try_: str = ""
    name: str = ""
    """The rule or the check within `check`, where there are several."""
    fix: Mapping[str, Any] | None = None
    """Settings to change, as `LaunchOrder.overrides`; None: there is no such fix."""
    source: str = ""
    """Where the fact comes from; "" where it was looked at."""


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory that a new process may take; None is unknown."""

    total_bytes: int | None = None
    available_bytes: int | None = None
    """The smaller of what the kernel calls available and what is left in the cgroup."""


def parse_memory(output: bytes) -> HostMemory:
    """The output of `probes.MEMORY` (meminfo in kB, proc(5); cgroup v2 says `max` where there is no limit)."""
    facts: dict[str, str] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        key, _, value = line.replace("=", ":").partition(":")
        facts[key] = value.strip()
    total = _kib(facts.get("MemTotal"))
    available = _kib(facts.get("MemAvailable"))
    limit, used = _number(facts.get("cgroup_max")), _number(facts.get("cgroup_used"))
    # cgroup v1 writes "no limit" as a number near 2**63.
    if limit is not None and used is not None and limit < 2**60:
        left = max(0, limit - used)
        total = limit if total is None else min(total, limit)
        available = left if available is None else min(available, left)
    return HostMemory(total, available)


def _kib(text: str | None) -> int | None:
    number = _number((text or "").split(" ")[0])
    return None if number is None else number * 1024


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def judge_port(port: int, free: bool, holders: Sequence[str]) -> Finding:
    """`holders`: one text for each process that holds it, as far as it can be seen."""
    if free:
        return Finding("port", "ok", f"port {port} is free")
    who = "; ".join(holders) if holders else "a process of another user"
    free_one = f"another port (--set port=0 picks a free one); who holds it: specconsole holders --port {port}"
    return Finding("port", "stop", f"port {port} is held by {who}", free_one, fix={"port": 0})


def judge_promise(port: int, profile: str, launch_id: str, owner: str) -> Finding:
    """A launch that runs was given this port, whether it listens yet or not."""
    return Finding(
        "port",
        "stop",
        f"port {port} belongs to {profile} (launch {launch_id}, started by {owner or 'somebody unknown'})",
        f"another port (--set port=0 picks a free one), or specconsole stop {launch_id}",
        fix={"port": 0},
    )


def judge_binary(answer: str, name: str, environment: str | None, working_dir: str | None) -> Finding:
    """`answer` is what `probes.BINARY` printed."""
    if answer.startswith("found "):
        return Finding("binary", "ok", answer.removeprefix("found "))
    if answer == "no-dir":
        return Finding(
            "working-dir", "stop", f"the folder {working_dir} does not exist on the host", "check `working_dir`"
        )
    if answer == "no-venv":
        return Finding(
            "binary", "stop", f"the environment {environment} has no bin folder on the host", "check `environment`"
        )
    if answer == "not-executable":
        return Finding(
            "binary", "stop", f"{name} is no program that this account may run", "chmod +x, or another `command`"
        )
    return Finding("binary", "stop", f"{name} is not on the host", "`environment` or a full path in `command`")


def judge_path(check: str, path: str, kind: str) -> Finding:
    """`kind`: `file`, `folder`, `missing`, `unreadable`; a path that looks like a hub's name can't be judged."""
    if kind == "missing":
        if not path.startswith(("/", "~", ".")):
            return Finding(check, "warning", f"{check} {path}: no such path here, taken for a hub name")
        return Finding(check, "stop", f"{check} {path} does not exist on the host", "check the path in the profile")
    if kind == "unreadable":
        return Finding(check, "stop", f"{check} {path} is not readable for this account", "check owner and mode")
    return Finding(check, "ok", f"{check} {path} is there")


def judge_memory(memory: HostMemory, needed_bytes: int | None) -> Finding:
    """`needed_bytes`: size of the model's files, a lower bound of what a CPU server takes."""
    if memory.available_bytes is None:
        return Finding("memory", "warning", "free memory is unknown")
    free = _gib(memory.available_bytes)
    if needed_bytes is not None and needed_bytes > memory.available_bytes:
        return Finding(
            "memory",
            "warning",
            f"{free} of memory are free and the model's files take {_gib(needed_bytes)}",
            "a smaller model",
        )
    return Finding("memory", "ok", f"{free} of memory are free")


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


def stops(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those that forbid a start."""
    return tuple(finding for finding in findings if finding.severity == "stop")


def parse_paths(output: bytes) -> Mapping[str, tuple[str, int | None]]:
    """The output of `probes.PATHS`: index -> (kind, size in bytes)."""
    found: dict[str, tuple[str, int | None]] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        parts = line.split(" ")
        if len(parts) >= 2:
            found[parts[0]] = (parts[1], _number(parts[2]) if len(parts) > 2 else None)
    return found
