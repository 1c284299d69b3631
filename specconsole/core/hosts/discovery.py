"""Running engines that nobody told us about: found in /proc, with port, log and owner, ready to be adopted.

Pure: `DISCOVER_SH` is run on the host, `parse_discovered` reads what it printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specconsole.core.hardware.processes import Process, parse_stat, seconds
from specconsole.core.launching.flag_pairs import pair_up
from specconsole.core.launching.imported_command import engine_of
from specconsole.core.launching.script import IDENTITY, LAUNCH_VARIABLE

# Command lines that are looked at more closely. Process titles count too: vLLM 0.32 renames its children to
# `VLLM::EngineCore`, SGLang 0.5.17 to `sglang::scheduler_TP0`.
_PATTERN = "[sS][gG][lL]ang|[vV][lL][lL][mM]|llama|trtllm|text-generation-(launcher|server|router)|ollama"
# Programs that people pipe a server's output into; their open files are where the log is.
_WRITERS = "tee|ts|rotatelogs|cronolog|multilog|svlogd|stdbuf"

# For each process of interest a block; the command line in hex, because arguments may hold anything. `ls -l` prints
# one line for a descriptor, with control characters in names replaced.
DISCOVER_SH = f"""\
{{
{IDENTITY}
printf 'boot=%s\\nuptime=%s\\nhertz=%s\\nself=%s\\n' "$(boot)" "$(cut -d' ' -f1 /proc/uptime)" \\
  "$(getconf CLK_TCK 2>/dev/null || echo 100)" $$
look() {{
  printf '#pid=%s\\n' "$1"
  stat=; read -r stat 2>/dev/null <"/proc/$1/stat"; printf 'stat=%s\\n' "$stat"
  stat -c 'user=%U' "/proc/$1" 2>/dev/null
  printf 'argv='; od -An -v -tx1 <"/proc/$1/cmdline" 2>/dev/null | tr -d ' \\n'; printf '\\n'
  mark=$(tr '\\0' '\\n' <"/proc/$1/environ" 2>/dev/null | sed -n 's/^{LAUNCH_VARIABLE}=//p' | head -n 1)
  printf 'launch=%s\\ncwd=%s\\n' "$mark" "$(readlink "/proc/$1/cwd" 2>/dev/null)"
  sed -n 's/^[^:]*:[^:]*:/cgroup=/p' "/proc/$1/cgroup" 2>/dev/null | grep -E 'docker|libpod|kubepods' | head -n 1
  ls -l "/proc/$1/fd" 2>/dev/null | sed -n 's/^[^ ]* .* \\([0-9][0-9]*\\) -> /fd=\\1 /p'
}}
for f in $(grep -lsaE '{_PATTERN}' /proc/[0-9]*/cmdline 2>/dev/null) \\
  $(grep -lsxE '{_WRITERS}' /proc/[0-9]*/comm 2>/dev/null); do
  p=${{f#/proc/}}; look "${{p%%/*}}"
done
printf '#listen\\n'
cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | sed -n '/^ *[0-9]*: [0-9A-F]*:[0-9A-F]* [0-9A-F]*:0000 0A /p'
printf '#end\\n'
}}
"""

_SECRET_FLAG = re.compile(r"(?i)(?:^|-)(?:api-key|key|token|password|secret)s?$")
_SOCKET = re.compile(r"^socket:\[(\d+)\]$")
_CONTAINER = re.compile(r"(docker|libpod)[-/]([0-9a-f]{12,64})")


@dataclass(frozen=True, slots=True)
class FoundEngine:
    """One running server, as its host shows it."""

    pid: int
    start_ticks: int
    boot: str
    engine: str
    argv: tuple[str, ...]
    """As the kernel has it; may hold secrets: show `shown_argv`."""
    user: str | None
    age_s: float | None
    port: int | None
    """What its processes really listen on; from the command line where that can't be seen; None when neither."""
    log_path: str | None
    """The file that its output goes to, also through `tee`; None for a terminal, a pipe, /dev/null."""
    log_command: tuple[str, ...] = ()
    """What prints the log where there is no file (a container's); () when nothing is known."""
    cwd: str | None = None
    launch_id: str | None = None
    """Set when some console started it."""
    pids: tuple[int, ...] = ()
    """Its processes that were looked at, itself first."""

    @property
    def shown_argv(self) -> tuple[str, ...]:
        return masked_argv(self.argv)


@dataclass(slots=True)
class _Row:
    process: Process
    user: str | None = None
    argv: tuple[str, ...] = ()
    launch_id: str | None = None
    cwd: str | None = None
    cgroup: str = ""
    fds: dict[int, str] = field(default_factory=dict)


def server_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Without the interpreter of a console script: `python /venv/bin/vllm serve x` is `/venv/bin/vllm serve x`."""
    name = argv[0].rsplit("/", 1)[-1] if argv else ""
    if re.fullmatch(r"(?:python[0-9.]*|sh|bash)", name) and len(argv) > 1 and not argv[1].startswith("-"):
        return tuple(argv[1:])
    return tuple(argv)


def masked_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Values of flags whose name says that they are secret become `***`."""
    shown: list[str] = []
    hide = False
    for word in argv:
        name, sign, _ = word.partition("=")
        secret = word.startswith("--") and bool(_SECRET_FLAG.search(name.lstrip("-")))
        if hide and not word.startswith("--"):
            shown.append("***")
        else:
            shown.append(f"{name}=***" if secret and sign else word)
        hide = (secret and not sign) or (hide and not word.startswith("--"))
    return tuple(shown)


def parse_discovered(output: bytes) -> tuple[FoundEngine, ...]:
    """The servers (not their workers) in the output of DISCOVER_SH, oldest first; () when it is cut."""
    text = output.decode("utf-8", "replace")
    if not text.endswith("#end\n"):
        return ()
    head, _, rest = text.partition("#pid=")
    blocks, _, listing = rest.partition("#listen\n")
    facts = dict(line.split("=", 1) for line in head.splitlines() if "=" in line)
    rows = {row.process.pid: row for block in blocks.split("#pid=") if (row := _row(block, facts)) is not None}
    listeners = _listeners(listing)
    found = [
        engine
        for row in rows.values()
        if (engine := _engine(row, rows, listeners, facts)) is not None
    ]  # fmt: skip
    roots = {one.pid for one in found}
    # A wrapper and its child may both look like the server: the outermost that is one itself stands for both.
    return tuple(sorted((e for e in found if not _below(rows[e.pid], rows, roots)), key=lambda e: e.start_ticks))


def _row(block: str, facts: Mapping[str, str]) -> _Row | None:
    row: _Row | None = None
    for line in block.splitlines()[1:]:
        key, _, value = line.partition("=")
        if key == "stat":
            process = parse_stat(value)
            if process is None or process.dead or facts.get("self") in (str(process.pid), str(process.ppid)):
                return None
            row = _Row(process)
        elif row is None or not value:
            continue
        elif key == "user":
            row.user = None if value == "UNKNOWN" else value
        elif key == "argv":
            row.argv = _argv(value)
        elif key == "launch":
            row.launch_id = value
        elif key == "cwd":
            row.cwd = value
        elif key == "cgroup":
            row.cgroup = value
        elif key == "fd":
            number, _, target = value.partition(" ")
            if number.isdigit():
                row.fds[int(number)] = target
    return row


def _argv(text: str) -> tuple[str, ...]:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return ()
    return tuple(part.decode("utf-8", "surrogateescape") for part in raw.rstrip(b"\0").split(b"\0")) if raw else ()


def _listeners(listing: str) -> dict[str, int]:
    """Inode of a listening socket -> port (proc(5): column 2 is address:port in hex, column 10 the inode)."""
    found: dict[str, int] = {}
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) > 9:
            found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def _engine(
    row: _Row, rows: Mapping[int, _Row], listeners: Mapping[str, int], facts: Mapping[str, str]
) -> FoundEngine | None:
    argv = server_argv(row.argv)
    engine = engine_of(argv)
    if engine == "other":
        return None
    tree = _tree(row, rows)
    wanted = _wanted_port(argv)
    ports = [listeners[inode] for one in tree for inode in _sockets(one) if inode in listeners]
    log_path = _log_path(row, rows)
    hertz = int(facts.get("hertz", "100")) if facts.get("hertz", "").isdigit() else 100
    uptime_s = seconds(facts.get("uptime"))
    return FoundEngine(
        pid=row.process.pid, start_ticks=row.process.start_ticks, boot=facts.get("boot", ""), engine=engine, argv=argv,
        user=row.user, age_s=None if uptime_s is None else max(0.0, uptime_s - row.process.start_ticks / hertz),
        # Several sockets may listen (metrics, torch): the one that was asked for, else the only one, else unknown.
        port=wanted if wanted in ports or not ports else ports[0] if len(set(ports)) == 1 else wanted,
        log_path=log_path, log_command=() if log_path else _log_command(row), cwd=row.cwd, launch_id=row.launch_id,
        pids=tuple(one.process.pid for one in tree),
    )  # fmt: skip


def _tree(row: _Row, rows: Mapping[int, _Row]) -> list[_Row]:
    found = [row]
    for parent in found:
        found += [other for other in rows.values() if other.process.ppid == parent.process.pid and other not in found]
    return found


def _below(row: _Row, rows: Mapping[int, _Row], roots: set[int]) -> bool:
    parent = rows.get(row.process.ppid)
    while parent is not None:
        if parent.process.pid in roots:
            return True
        parent = rows.get(parent.process.ppid)
    return False


def _sockets(row: _Row) -> list[str]:
    return [match[1] for target in row.fds.values() if (match := _SOCKET.match(target))]


def _wanted_port(argv: Sequence[str]) -> int | None:
    for name, values in pair_up(argv):
        if name == "port" and values and values[0].isdigit():
            return int(values[0])
    return None


def _log_path(row: _Row, rows: Mapping[int, _Row]) -> str | None:
    for number in (1, 2):
        target = row.fds.get(number, "")
        if _is_file(target):
            return target
        if target.startswith("pipe:"):
            # `server 2>&1 | tee log`: whoever reads this pipe on its input, and the file it writes.
            for other in rows.values():
                if other.fds.get(0) == target:
                    files = [name for fd, name in sorted(other.fds.items()) if fd != 0 and _is_file(name)]
                    if files:
                        return files[-1]
    return None


def _is_file(target: str) -> bool:
    return (
        target.startswith("/") and not target.startswith(("/dev/", "/proc/", "/memfd:")) and "(deleted)" not in target
    )


def _log_command(row: _Row) -> tuple[str, ...]:
    match = _CONTAINER.search(row.cgroup)
    if match is None:
        return ()
    return ("docker" if match[1] == "docker" else "podman", "logs", "-f", match[2][:12])
