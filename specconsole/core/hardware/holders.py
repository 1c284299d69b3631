"""Who holds ports and GPUs of a host, in full: what /proc shows of a process and of those around it.

`probes.PORT_HOLDERS` finds who listens, `LOOK` describes processes, `LIVES` tells whether one still runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from specconsole.core.hardware.processes import parse_stat, seconds
from specconsole.core.hardware.values import clean
from specconsole.core.launching.masking import mask_text
from specconsole.core.launching.script import IDENTITY, LAUNCH_VARIABLE
from specconsole.core.launching.stopping import describe_age

# $@: process ids. `chain` are the probe's own shell and all above it: through them this console is there.
LOOK = f"""\
{{
{IDENTITY}
printf 'boot=%s\\nuptime=%s\\n' "$(boot)" "$(cut -d' ' -f1 /proc/uptime)"
printf 'hertz=%s\\nuser=%s\\n' "$(getconf CLK_TCK 2>/dev/null || echo 100)" "$(id -un 2>/dev/null || id -u)"
chain=; up=$$
while [ "${{up:-0}}" -gt 0 ] && [ ${{#chain}} -lt 400 ] && read -r line 2>/dev/null <"/proc/$up/stat"; do
  chain="$chain $up"; line=${{line##*) }}; up=${{line#* }}; up=${{up%% *}}
done
printf 'chain=%s\\n' "$chain"
for pid in "$@"; do
  [ -d "/proc/$pid" ] || continue
  printf '#pid=%s\\n' "$pid"
  stat=; read -r stat 2>/dev/null <"/proc/$pid/stat"; printf 'stat=%s\\n' "$stat"
  stat -c 'user=%U' "/proc/$pid" 2>/dev/null
  printf 'command='; tr '\\0\\n' '  ' <"/proc/$pid/cmdline" 2>/dev/null | head -c 4096; printf '\\n'
  printf 'cwd=%s\\n' "$(readlink "/proc/$pid/cwd" 2>/dev/null | tr -d '\\n')"
  mark=$(tr '\\0' '\\n' <"/proc/$pid/environ" 2>/dev/null | sed -n 's/^{LAUNCH_VARIABLE}=//p' | head -n 1)
  printf 'launch=%s\\n' "$mark"
  printf 'cgroup=%s\\n' "$(tr '\\n' ' ' <"/proc/$pid/cgroup" 2>/dev/null | head -c 600)"
  stat=${{stat##*) }}; up=${{stat#* }}; up=${{up%% *}}
  printf 'parent='; [ -n "$up" ] && tr '\\0\\n' '  ' <"/proc/$up/cmdline" 2>/dev/null | head -c 400; printf '\\n'
done
printf '#end\\n'
}}
"""

# $1: pid, $2: start ticks, $3: boot. The state letter, or nothing when that process is gone.
LIVES = f"""\
{{
{IDENTITY}
[ "$3" = "$(boot)" ] || exit 0
ticks "$1"
if [ -n "$ticks" ] && [ "$ticks" = "$2" ]; then stat=${{stat##*) }}; printf '%s\\n' "${{stat%% *}}"; fi
exit 0
}}
"""

_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD, include/linux/sched.h; field 9 of /proc/PID/stat."""

# Docker and containerd by cgroup path (64 hex digits), Kubernetes' pods, LXC, Podman, systemd-nspawn.
_CONTAINER = re.compile(
    r"(?:docker[-/]|libpod-|crio-|cri-containerd-|/lxc/|lxc\.payload\.|machine\.slice/machine-|kubepods[^ ]*/)"
    r"([A-Za-z0-9_.-]+?)(?=\.scope|/|\s|$)"
)


@dataclass(frozen=True, slots=True)
class Listener:
    """One listening port, and who has its sockets."""

    port: int
    pids: tuple[int, ...]
    """As far as this account may look; () for another user's."""
    uids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a port or memory of a GPU, as far as this account may see it."""

    pid: int
    start_ticks: int
    boot: str
    """Boot id and pid namespace: with pid and start ticks it names the process for ever."""
    name: str
    """The kernel's short name."""
    state: str
    ppid: int
    user: str = ""
    age_s: float | None = None
    command: str = ""
    """What looks like a key is masked."""
    parent: str = ""
    """The parent's command line."""
    cwd: str = ""
    """"" where that can't be seen."""
    launch_id: str = ""
    """From its environment; "" when it carries none, or that can't be read."""
    launch_name: str = ""
    launch_owner: str = ""
    ours: bool = False
    """Whether it belongs to a launch of the person at this console."""
    container: str = ""
    """A hint from its control group: `docker 3f9a2c...`; "" outside of one, or unknown."""
    kernel: bool = False
    ports: tuple[int, ...] = ()
    gpus: tuple[tuple[int, int | None], ...] = ()
    """(GPU index, bytes that it holds there or None where the tool does not say)."""
    why_not: str = ""
    """Why it can't be ended from here; "" when it can."""

    @property
    def holds(self) -> str:
        """`port 30000, 60.1 GiB of GPU 0`; of many ports the first three, and how many more."""
        parts = [f"port {port}" for port in self.ports[:3]]
        if len(self.ports) > 3:
            parts.append(f"{len(self.ports) - 3} ports more")
        parts += [
            f"GPU {index}" if held is None else f"{held / 2**30:.1f} GiB of GPU {index}" for index, held in self.gpus
        ]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class HoldersPicture:
    """Of one host at one moment."""

    holders: tuple[Holder, ...]
    notes: tuple[str, ...] = ()
    """What could not be seen."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The answer of `LOOK`."""

    holders: tuple[Holder, ...]
    chain: frozenset[int]
    user: str
    whole: bool


def parse_listeners(output: bytes) -> tuple[Listener, ...]:
    """The answer of `probes.PORT_HOLDERS`, by port."""
    text = output.decode("utf-8", "replace")
    rows, _, listing = text.partition("#listen\n")[2].partition("#fd\n")
    sockets: dict[int, tuple[int, int]] = {}
    for line in rows.splitlines():
        fields = line.split()
        if len(fields) > 9 and fields[7].isdigit() and fields[9].isdigit():
            sockets[int(fields[9])] = (int(fields[1].rpartition(":")[2], 16), int(fields[7]))
    pids: dict[int, dict[int, None]] = {port: {} for port, _ in sockets.values()}
    uids: dict[int, dict[int, None]] = {port: {} for port, _ in sockets.values()}
    for port, uid in sockets.values():
        uids[port][uid] = None
    current: int | None = None
    for line in listing.splitlines():
        if line.startswith("/proc/"):
            part = line.split("/")[2]
            current = int(part) if part.isdigit() else None
        elif current is not None and (found := re.search(r"socket:\[(\d+)\]", line)) and int(found[1]) in sockets:
            pids[sockets[int(found[1])][0]][current] = None
    return tuple(Listener(port, tuple(pids[port]), tuple(uids[port])) for port in sorted(pids))


def parse_look(output: bytes) -> Looked:
    """The answer of `LOOK`; a process of which no line of /proc was whole is left out."""
    text = output.decode("utf-8", "replace")
    # Only "\n" ends a line here: a command line may hold every other character that Python would take for one.
    head, *parts = text.split("\n#pid=")
    facts = dict(line.split("=", 1) for line in head.split("\n") if "=" in line)
    uptime_s, hertz = seconds(facts.get("uptime")), seconds(facts.get("hertz")) or 100.0
    found: list[Holder] = []
    for part in parts:
        own = dict(line.split("=", 1) for line in part.split("\n")[1:] if "=" in line)
        process = parse_stat(own.get("stat", ""))
        if process is None:
            continue
        flags = own["stat"].rpartition(") ")[2].split()[6]
        age = None if uptime_s is None else max(0.0, uptime_s - process.start_ticks / hertz)
        found.append(
            Holder(
                pid=process.pid,
                start_ticks=process.start_ticks,
                boot=facts.get("boot", ""),
                name=clean(process.name),
                state=process.state,
                ppid=process.ppid,
                user=clean(own.get("user", "")),
                age_s=age,
                command=mask_text(clean(own.get("command", "").strip())),
                parent=mask_text(clean(own.get("parent", "").strip())),
                cwd=clean(own.get("cwd", "")),
                launch_id="".join(c for c in own.get("launch", "") if c.isalnum() or c in "-._"),
                container=container_hint(own.get("cgroup", "")),
                kernel=flags.isdigit() and bool(int(flags) & _KERNEL_THREAD),
            )
        )
    chain = frozenset(int(word) for word in facts.get("chain", "").split() if word.isdigit())
    return Looked(tuple(found), chain, facts.get("user", ""), text.endswith("#end\n"))


def container_hint(cgroup: str) -> str:
    """`docker 3f9a2c8d1b02` from the text of /proc/PID/cgroup; "" when it names no container."""
    found = _CONTAINER.search(cgroup)
    if found is None:
        return ""
    text = found[0]
    kind = next(
        (word for word in ("docker", "libpod", "crio", "containerd", "lxc", "kubepods") if word in text), "machine"
    )
    # A container's own id is the last run of 64 hex digits.
    ids = re.findall(r"[0-9a-f]{64}", cgroup)
    return f"{kind} {ids[-1][:12] if ids else found[1][:40]}"


def why_not(holder: Holder, chain: Collection[int], *, ours: bool) -> str:
    """Why a process may not be ended from here at all; "" when a person may pick it."""
    if holder.pid == 1:
        return "it is the first process of the machine, or of its container"
    if holder.kernel or holder.pid == 2:
        return "it is a thread of the kernel"
    if holder.pid in chain:
        return "this console is there through it (its shell, its SSH server or its own parents)"
    if ours:
        return f"it belongs to a launch of yours: specconsole stop {holder.launch_id}"
    if holder.state in ("Z", "X"):
        return "it is dead already; only its parent can take it away"
    return ""


def judged(
    looked: Looked,
    listeners: Iterable[Listener],
    gpus: Mapping[int, Sequence[tuple[int, int | None]]],
    owners: Mapping[str, tuple[str, str, bool]],
) -> tuple[Holder, ...]:
    """Each with what it holds and whether it may be ended. `gpus`: by pid, (GPU index, bytes); `owners`: by launch id,
    (profile, owner, whether it is the person's own)."""
    ports: dict[int, list[int]] = {}
    for listener in listeners:
        for pid in listener.pids:
            ports.setdefault(pid, []).append(listener.port)
    found = []
    for holder in looked.holders:
        name, owner, ours = owners.get(holder.launch_id, ("", "", False)) if holder.launch_id else ("", "", False)
        found.append(
            replace(
                holder,
                launch_name=name,
                launch_owner=owner,
                ours=ours,
                ports=tuple(ports.get(holder.pid, ())),
                gpus=tuple(gpus.get(holder.pid, ())),
                why_not=why_not(holder, looked.chain, ours=ours),
            )
        )
    return tuple(sorted(found, key=lambda one: (-sum(held or 0 for _, held in one.gpus), one.ports, one.pid)))


def whose(holder: Holder) -> str:
    """`launch 2026...-ab12 (eagle3, started by bob@desk)`, `yours: launch ...`, or `no launch`."""
    if not holder.launch_id:
        return "no launch"
    about = ", ".join(
        part
        for part in (holder.launch_name, f"started by {holder.launch_owner}" if holder.launch_owner else "")
        if part
    )
    return f"{'yours: ' if holder.ours else ''}launch {holder.launch_id}{f' ({about})' if about else ''}"


def holder_line(holder: Holder) -> str:
    """`pid 71 (bob, 3 h): python train.py - holds port 30000`."""
    age = "" if holder.age_s is None else f", {describe_age(holder.age_s)}"
    command = holder.command if len(holder.command) <= 120 else f"{holder.command[:119]}…"
    return f"pid {holder.pid} ({holder.user or 'unknown user'}{age}): {command or holder.name} - holds {holder.holds}"
