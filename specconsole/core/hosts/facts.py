"""What a host says about itself at connect: one script, and the pure reading of its output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

GPU_TOOLS = ("nvidia-smi", "amd-smi", "rocm-smi", "npu-smi")
WANTED = (
    "setsid",
    "timeout",
    "ps",
    "stat",
    "tail",
    "head",
    "mktemp",
    "mkdir",
    "docker",
    "podman",
    "squeue",
    "kubectl",
    "py-spy",
)
"""Tools that are looked for besides python3 and the GPU tools."""
NEEDED = ("setsid", "ps", "stat", "tail", "head", "mktemp", "mkdir")
"""Without these something of ours does not work there."""

CLOCK_SH = "date +%s.%N"
"""Alone and small: the offset is known to within half the round trip."""

# Every value is printed through `one`, which keeps the first line only.
FACTS_SH = r"""
one() { printf '%s=%s\n' "$1" "$(printf %s "$2" | head -n 1)"; }
read -r up _ </proc/uptime 2>/dev/null; one uptime "$up"
one machine "$(cat /etc/machine-id 2>/dev/null || cat /var/lib/dbus/machine-id 2>/dev/null)"
one boot "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
one kernel "$(uname -sr 2>/dev/null)"; one arch "$(uname -m 2>/dev/null)"
one cpus "$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
one name "$(hostname 2>/dev/null || uname -n 2>/dev/null)"
one user "$(id -un 2>/dev/null)"; one uid "$(id -u 2>/dev/null)"; one home "$HOME"
entry=$(getent passwd "$(id -u)" 2>/dev/null || grep "^[^:]*:[^:]*:$(id -u):" /etc/passwd 2>/dev/null)
one shell "${entry##*:}"
for f in /etc/os-release /usr/lib/os-release; do
  [ -r "$f" ] && { one os "$(. "$f"; printf %s "$PRETTY_NAME")"; break; }
done
for t in TOOLS; do p=$(command -v "$t" 2>/dev/null) && one "tool:$t" "$p"; done
seen=' '
for t in python3 python3.9 python3.10 python3.11 python3.12 python3.13 python3.14; do
  p=$(command -v "$t" 2>/dev/null) || continue
  v=$("$p" -V 2>/dev/null) || continue
  case $seen in *" $v "*) ;; *) seen="$seen$v "; one "python:$p" "${v#Python }";; esac
done
for f in /etc/systemd/logind.conf /etc/systemd/logind.conf.d/*.conf /run/systemd/logind.conf.d/*.conf \
  /usr/lib/systemd/logind.conf.d/*.conf; do
  [ -r "$f" ] && sed -n 's/^[[:space:]]*KillUserProcesses[[:space:]]*=[[:space:]]*/kill_user=/p' "$f"
done
[ -d /run/systemd/system ] && one systemd yes
[ -e "/var/lib/systemd/linger/$(id -un 2>/dev/null)" ] && one linger yes
state=${XDG_STATE_HOME:-$HOME/.local/state}; one state "$state"
d=$state; while [ ! -e "$d" ] && [ "$d" != / ] && [ -n "$d" ]; do d=${d%/*}; done; d=${d:-/}
[ -w "$d" ] && one state_writable yes || one state_writable no
one state_fs "$(stat -f -c %T "$d" 2>/dev/null)"
one state_free "$(df -Pk "$d" 2>/dev/null | tail -n 1 | tr -s ' ' | cut -d' ' -f4)"
one shm_free "$(df -Pk /dev/shm 2>/dev/null | tail -n 1 | tr -s ' ' | cut -d' ' -f4)"
one hidepid "$(sed -n 's/^[^ ]* \/proc proc .*hidepid=\([^, ]*\).*/\1/p' /proc/mounts 2>/dev/null)"
""".replace("TOOLS", " ".join((*WANTED, *GPU_TOOLS)))


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host as it described itself. None: it did not say."""

    machine_id: str | None = None
    boot_id: str | None = None
    """Changes with every boot: processes of another boot are gone."""
    name: str | None = None
    user: str | None = None
    uid: int | None = None
    home: str | None = None
    login_shell: str | None = None
    os: str | None = None
    kernel: str | None = None
    arch: str | None = None
    cpu_count: int | None = None
    uptime_s: float | None = None
    clock_offset_s: float | None = None
    """Host's wall clock minus ours."""
    clock_uncertainty_s: float | None = None
    """Half the round trip: the offset is known to within this."""
    tools: dict[str, str] | None = None
    """Tool -> path, of those that were looked for."""
    pythons: tuple[tuple[str, str], ...] = ()
    """(path, version) of each python3, the plain `python3` first."""
    kill_user_processes: bool | None = None
    """True: systemd ends what a user left running when the last login ends, unless lingering is on."""
    lingers: bool = False
    state_folder: str | None = None
    state_writable: bool | None = None
    state_filesystem: str | None = None
    """`ext2/ext3`, `nfs`, `overlayfs` ... as `stat -f` names it."""
    state_free_bytes: int | None = None
    shm_free_bytes: int | None = None
    processes_hidden: bool = False
    """/proc shows only our own processes (hidepid)."""

    @property
    def gpu_tools(self) -> tuple[str, ...]:
        return tuple(tool for tool in GPU_TOOLS if tool in (self.tools or {}))

    @property
    def missing(self) -> tuple[str, ...]:
        """Needed tools that are not there; empty when the host named no tool at all."""
        return tuple(tool for tool in NEEDED if self.tools and tool not in self.tools)


@dataclass(frozen=True, slots=True)
class ClockReading:
    """One round trip of CLOCK_SH; `sent_s` and `received_s` are our wall clock around it."""

    output: bytes
    sent_s: float
    received_s: float


def with_clock(facts: HostFacts, readings: Iterable[ClockReading]) -> HostFacts:
    """The offset from the quickest round trip, where the host's clock could be read at all."""
    best: tuple[float, float] | None = None
    for reading in readings:
        there_s = _number(reading.output.decode("ascii", "replace").strip())
        if there_s is not None:
            half_s = (reading.received_s - reading.sent_s) / 2
            offset_s = there_s - (reading.sent_s + half_s)
            if best is None or half_s < best[1]:
                best = offset_s, half_s
    if best is None:
        return facts
    return replace(facts, clock_offset_s=best[0], clock_uncertainty_s=best[1])


def parse_facts(output: bytes) -> HostFacts:
    """`output` of FACTS_SH."""
    values: dict[str, str] = {}
    tools: dict[str, str] = {}
    pythons: list[tuple[str, str]] = []
    kill: list[str] = []
    for line in output.decode("utf-8", "replace").splitlines():
        key, equals, value = line.partition("=")
        value = value.strip()
        if not equals or not value:
            continue
        if key.startswith("tool:"):
            tools[key[5:]] = value
        elif key.startswith("python:"):
            pythons.append((key[7:], value))
        elif key == "kill_user":
            kill.append(value.lower())
        else:
            values.setdefault(key, value)
    return HostFacts(
        machine_id=values.get("machine"), boot_id=values.get("boot"), name=values.get("name"),
        user=values.get("user"), uid=_whole(values.get("uid")), home=values.get("home"),
        login_shell=values.get("shell"), os=values.get("os"), kernel=values.get("kernel"), arch=values.get("arch"),
        cpu_count=_whole(values.get("cpus")), uptime_s=_number(values.get("uptime")),
        tools=tools or None, pythons=tuple(pythons),
        kill_user_processes=kill[-1] in ("yes", "true", "1", "on") if kill else False if "systemd" in values else None,
        lingers="linger" in values, state_folder=values.get("state"),
        state_writable={"yes": True, "no": False}.get(values.get("state_writable", "")),
        state_filesystem=values.get("state_fs"), state_free_bytes=_kib(values.get("state_free")),
        shm_free_bytes=_kib(values.get("shm_free")), processes_hidden=values.get("hidepid", "0") not in ("0", "off"),
    )  # fmt: skip


def notes_of(facts: HostFacts) -> tuple[str, ...]:
    """What a person should know about this host while working on it, worst first; empty when it is all as usual."""
    return tuple(_notes(facts))


def _notes(facts: HostFacts) -> Iterable[str]:
    if facts.kill_user_processes and not facts.lingers:
        yield "KillUserProcesses is on: servers end with your last login (cure: loginctl enable-linger)"
    if facts.state_writable is False:
        yield f"{facts.state_folder or 'the state folder'} can't be written: nothing can be launched here"
    if facts.missing:
        yield f"missing here: {', '.join(facts.missing)}"
    offset_s, uncertainty_s = facts.clock_offset_s, facts.clock_uncertainty_s or 0.0
    if offset_s is not None and abs(offset_s) > max(2.0, 2 * uncertainty_s):
        yield f"its clock is {abs(offset_s):.0f} s {'ahead' if offset_s > 0 else 'behind'}"
    if facts.processes_hidden:
        yield "other users' processes are hidden (hidepid): who holds a GPU can't be named"


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        # busybox' date prints %N as it is: whole seconds are better than nothing.
        return _number(text.partition(".")[0]) if text and "." in text else None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _kib(text: str | None) -> int | None:
    blocks = _whole(text)
    return None if blocks is None else blocks * 1024
