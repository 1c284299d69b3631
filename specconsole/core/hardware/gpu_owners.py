"""Whose the processes on the GPUs are: asked of /proc in one go, joined with the launches that we know.

A launch is told by the environment that it hands to every process it forks (`SPECCONSOLE_LAUNCH`), an adopted
server by pid and start ticks. What can't be seen is said to be hidden, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from specconsole.core.hardware.gpu import GpuProcess
from specconsole.core.hardware.processes import parse_stat
from specconsole.core.hardware.values import clean
from specconsole.core.launching.command import show

OWNERS_SH = r"""
{
echo "namespace=$(readlink /proc/self/ns/pid 2>/dev/null)"
read -r up rest </proc/uptime 2>/dev/null && echo "uptime=$up"
echo "hertz=$(getconf CLK_TCK 2>/dev/null)"
grep -s -m 1 'hidepid=[^0]' /proc/self/mountinfo | sed 's/.*/hidepid=1/'
for pid in "$@"; do
  [ -d "/proc/$pid" ] || { echo "#pid=$pid"; echo gone=1; continue; }
  echo "#pid=$pid"
  printf 'stat='; cat "/proc/$pid/stat" 2>/dev/null || echo
  line=; chain=; up=$pid
  while [ "$up" -gt 1 ] && [ ${#chain} -lt 400 ] && read -r line 2>/dev/null <"/proc/$up/stat"; do
    set -- ${line##*) }
    chain="$chain$up:${20} "; up=$2
  done
  echo "chain=$chain"
  echo "user=$(ls -ld "/proc/$pid" 2>/dev/null | { read -r a b user rest; printf %s "$user"; })"
  printf 'command='; head -c 4000 "/proc/$pid/cmdline" 2>/dev/null | tr '\000\n\r' '\001  '; echo
  if [ -r "/proc/$pid/environ" ]; then
    printf 'launch='; tr '\000' '\n' <"/proc/$pid/environ" 2>/dev/null | sed -n 's/^SPECCONSOLE_LAUNCH=//p' | head -n 1
    echo
  fi
  sed -n 's/^read_bytes: /read_bytes=/p' "/proc/$pid/io" 2>/dev/null
done
echo '#end'
} </dev/null
"""
"""Arguments: process ids. Reads /proc only; `head -c` bounds what a process can make us read."""

_LONGEST_COMMAND = 100
"""In a label; the whole one is in the owner."""

_INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""include/linux/proc_ns.h, PROC_PID_INIT_INO: outside of any container."""

# `sglang::scheduler_DP0_TP3_EP3`, `VLLM::Worker_TP1` (setproctitle of SGLang 0.5.17 and vLLM 0.11 and later)
_RANK = re.compile(r"(?:^|[_:\s])((?:(?:DP|PP|TP|EP|CP|DCP|PCP)\d+)(?:_(?:DP|PP|TP|EP|CP|DCP|PCP)\d+)*)(?=$|[_\s])")


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, as far as this account may see it."""

    pid: int
    gone: bool = False
    """No such process here: dead, or in a pid namespace that we can't see."""
    state: str | None = None
    ppid: int | None = None
    start_ticks: int | None = None
    age_s: float | None = None
    user: str | None = None
    command: str | None = None
    environ_seen: bool = False
    launch_id: str | None = None
    chain: tuple[tuple[int, int], ...] = ()
    """(pid, start ticks) of the process itself, its parent, and so on, without pid 1."""
    read_bytes: int | None = None
    """What the process had fetched from storage so far (/proc/PID/io)."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The answer of `OWNERS_SH`."""

    by_pid: Mapping[int, Owner]
    in_container: bool | None = None
    """True when our shell lives in a pid namespace of its own: other containers' processes are hidden."""
    hidepid: bool = False
    whole: bool = True


@dataclass(frozen=True, slots=True)
class KnownLaunch:
    """What tells a launch's processes."""

    launch_id: str
    name: str
    processes: frozenset[tuple[int, int]] = frozenset()
    """(pid, start ticks) of an adopted server's processes, which carry no launch id; their children count as well."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose a process on a GPU is."""

    process: GpuProcess
    owner: Owner | None
    launch_id: str | None
    label: str
    """`eagle3-topk1, TP3`, or `not ours: pid 71, bob, 3 h, python train.py`."""


def parse_owners(output: bytes) -> Owners:
    """The answer of `OWNERS_SH`; a cut one is marked, not guessed at."""
    text = output.decode("utf-8", "replace")
    head, *parts = text.split("\n#pid=")
    facts = _facts(head.splitlines())
    uptime_s, hertz = _float(facts.get("uptime")), _float(facts.get("hertz")) or 100.0
    namespace = facts.get("namespace", "")
    owners = {}
    for part in parts:
        lines = part.splitlines()
        if not lines or not lines[0].isdigit():
            continue
        pid, values = int(lines[0]), _facts(lines[1:])
        if "gone" in values:
            owners[pid] = Owner(pid, gone=True)
            continue
        stat = parse_stat(values.get("stat", ""))
        age_s = max(0.0, uptime_s - stat.start_ticks / hertz) if stat and uptime_s is not None else None
        read_bytes = values.get("read_bytes", "")
        owners[pid] = Owner(
            pid,
            gone=stat is None and not values.get("command"),
            state=stat.state if stat else None,
            ppid=stat.ppid if stat else None,
            start_ticks=stat.start_ticks if stat else None,
            age_s=age_s,
            user=clean(values.get("user", "")) or None,
            command=_command(values.get("command", "")) or (clean(stat.name) if stat else None),
            environ_seen="launch" in values,
            launch_id=clean(values.get("launch", "")).strip() or None,
            chain=_chain(values.get("chain", "")),
            read_bytes=int(read_bytes) if read_bytes.isdigit() else None,
        )
    return Owners(
        owners,
        in_container=None if not namespace else namespace != _INITIAL_PID_NAMESPACE,
        hidepid="hidepid" in facts,
        whole=text.endswith("#end\n"),
    )


def claim(process: GpuProcess, owners: Owners, launches: Collection[KnownLaunch]) -> Claim:
    """Says whose a process is; `launches` are the ones on this host."""
    if process.pid is None:
        return Claim(process, None, None, "hidden: a process of another container or account")
    owner = owners.by_pid.get(process.pid)
    if owner is not None and not owner.gone:
        for launch in launches:
            if owner.launch_id == launch.launch_id or not launch.processes.isdisjoint(owner.chain):
                return Claim(process, owner, launch.launch_id, _ours(launch.name, process, owner))
        if owner.launch_id is not None:
            return Claim(process, owner, owner.launch_id, _ours(f"launch {owner.launch_id}", process, owner))
    return Claim(process, owner, None, _not_ours(process, owner, owners))


def hidden_note(
    used_bytes: int | None, processes: Sequence[GpuProcess], in_container: bool | None, idle_bytes: int = 1 << 30
) -> str:
    """What to say of memory that no listed process accounts for; "" when there is nothing to say.

    A driver keeps some hundred MiB for itself, hence `idle_bytes`.
    """
    listed = [process.used_bytes for process in processes]
    if used_bytes is None or any(amount is None for amount in listed):
        return ""
    unexplained = used_bytes - sum(amount for amount in listed if amount is not None)
    if unexplained < idle_bytes:
        return ""
    where = (
        "in another container (process ids are hidden here)" if in_container else "by no process that the tool lists"
    )
    return f"{unexplained / (1 << 30):.0f} GiB held {where}"


def rank_of(text: str | None) -> str | None:
    """`TP3` in `sglang::scheduler_TP3`, `DP0_TP1` in `sglang::scheduler_DP0_TP1_EP1`... as the engine spells it."""
    match = _RANK.search(text) if text else None
    return match.group(1).replace("_", " ") if match else None


def age_text(age_s: float | None) -> str | None:
    """`45 s`, `12 min`, `3 h`, `5 d`."""
    if age_s is None:
        return None
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if age_s < limit:
            return f"{int(age_s // unit)} {name}"
    return f"{int(age_s // 86400)} d"


def _ours(name: str, process: GpuProcess, owner: Owner) -> str:
    rank = rank_of(owner.command) or rank_of(process.name)
    dead = ", dead but not reaped" if owner.state == "Z" else ""
    return f"{name}, {rank}{dead}" if rank else f"{name}{dead}"


def _not_ours(process: GpuProcess, owner: Owner | None, owners: Owners) -> str:
    if owner is None:
        return f"pid {process.pid}, {process.name or 'name unknown'} (not looked up yet)"
    if owner.gone:
        if owners.in_container:
            why = "not visible here: another container's process, or the host's"
        elif owners.hidepid:
            why = "not visible to this account (hidepid)"
        else:
            why = "no such process any more"
        return f"pid {process.pid}, {process.name or 'name unknown'}: {why}"
    command = owner.command or process.name or ""
    if len(command) > _LONGEST_COMMAND:
        command = command[: _LONGEST_COMMAND - 1] + "…"
    parts = [f"pid {process.pid}", owner.user, age_text(owner.age_s), command]
    start = "not ours: " if owner.environ_seen else "not known to be ours: "
    return start + ", ".join(part for part in parts if part)


def _chain(text: str) -> tuple[tuple[int, int], ...]:
    pairs = (part.partition(":") for part in text.split())
    return tuple((int(pid), int(ticks)) for pid, _, ticks in pairs if pid.isdigit() and ticks.isdigit())


def _command(text: str) -> str:
    """The command line for a person, secrets masked. A process title (setproctitle) is one word with a blank tail."""
    argv = [clean(part).strip() for part in text.rstrip("\x01 ").split("\x01")]
    return show(argv)[:500] if len(argv) > 1 else argv[0][:500]


def _facts(lines: Sequence[str]) -> dict[str, str]:
    facts: dict[str, str] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if equals and key not in facts:
            facts[key] = value
    return facts


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
