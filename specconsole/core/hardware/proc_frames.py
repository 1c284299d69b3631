"""The sampling shell: what it runs on a host, and its output read back as counters.

One `sh` for as long as we watch, two `grep` a round, nothing installed, nothing written. `grep ''` over several
files puts the file's name before each line, so a round is one stream of `path:line` and needs no order. The loop
ends by itself when nobody reads: its next `echo` fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from specconsole.core.hardware.host import CgroupMemory, CpuTimes, DiskCounters, HostCounters
from specconsole.core.hardware.values import clean

SAMPLER_SH = r"""
{
v2=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null | head -n 1)
v1=$(sed -n 's/^[0-9]*:\(.*,\)*memory\(,.*\)*://p' /proc/self/cgroup 2>/dev/null | head -n 1)
files=
for base in "/sys/fs/cgroup:$v2" "/sys/fs/cgroup/memory:$v1" "/sys/fs/cgroup/unified:$v2"; do
  root=${base%%:*}; sub=${base#*:}
  while :; do
    sub=${sub%/}
    case $sub in *..*|*' '*) sub=;; esac
    for name in memory.max memory.current memory.limit_in_bytes memory.usage_in_bytes cpu.max memory.stat \
      memory.events memory.oom_control; do
      [ -r "$root$sub/$name" ] && files="$files $root$sub/$name"
    done
    [ -n "$sub" ] || break
    sub=${sub%/*}
  done
done
[ -r /sys/fs/cgroup/cpu/cpu.cfs_quota_us ] && \
  files="$files /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us"
grep -s '' /proc/self/mountinfo /sys/devices/system/node/node[0-9]*/cpulist
while :; do
  grep -s -v -e '^intr' -e '^softirq' /proc/stat /proc/meminfo /proc/uptime /proc/net/dev /proc/diskstats
  [ -n "$files" ] && grep -s -e '^[0-9m-]' -e '^inactive_file ' -e '^total_inactive_file ' -e '^oom_kill ' \
    /dev/null $files
  echo @round || exit 0
  sleep "$1" || exit 0
done
} </dev/null
"""

_MOST_LINES = 50_000
_LONGEST_LINE = 65536
_CPU = re.compile(r"cpu(\d*) +(.*)")
_NODE = re.compile(r"/sys/devices/system/node/node(\d+)/cpulist")

Files = dict[str, list[str]]


class FrameReader:
    """Turns chunks, cut anywhere, into rounds: lines by file. Files read once before the loop stay in `once`."""

    def __init__(self) -> None:
        self._rest = b""
        self._files: Files = {}
        self._lines = 0
        self.once: Files = {}
        """`/proc/self/mountinfo` and the NUMA nodes' CPU lists."""

    def feed(self, data: bytes) -> list[Files]:
        """The rounds that these bytes complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            self._rest = b""
        rounds = []
        for raw in lines:
            line = raw.decode("utf-8", "replace").rstrip("\r")
            if line == "@round":
                rounds.append(self._files)
                self._files, self._lines = {}, 0
                continue
            path, colon, content = line.partition(":")
            if not colon or not path.startswith("/") or self._lines > _MOST_LINES:
                continue
            self._lines += 1
            kept = self.once if path == "/proc/self/mountinfo" or path.endswith("/cpulist") else self._files
            kept.setdefault(path, []).append(content)
        return rounds


def counters(files: Mapping[str, Sequence[str]], once: Mapping[str, Sequence[str]]) -> HostCounters:
    """A round's files as counters; a missing or broken file leaves its part unknown."""
    cpu, cpus = parse_stat(files.get("/proc/stat", ()))
    memory = parse_meminfo(files.get("/proc/meminfo", ()))
    uptime = files.get("/proc/uptime", ("",))[0].split()
    available = memory.get("MemAvailable")
    if available is None and "MemFree" in memory:  # kernels before 3.14
        available = memory["MemFree"] + memory.get("Buffers", 0) + memory.get("Cached", 0)
    numa = {}
    for path, lines in once.items():
        if (match := _NODE.fullmatch(path)) and lines:
            numa[int(match.group(1))] = parse_cpu_list(lines[0])
    return HostCounters(
        uptime_s=_number(uptime[0]) if uptime else None,
        cpu=cpu,
        cpus=cpus,
        memory_total_bytes=memory.get("MemTotal"),
        memory_available_bytes=available,
        page_cache_bytes=memory.get("Cached"),
        cgroup=parse_cgroup_memory(files),
        cpu_quota=parse_cpu_quota(files),
        disks=parse_diskstats(files.get("/proc/diskstats", ())),
        network=parse_net_dev(files.get("/proc/net/dev", ())),
        numa=numa,
    )


def parse_stat(lines: Sequence[str]) -> tuple[CpuTimes | None, dict[int, CpuTimes]]:
    """`cpu  user nice system idle iowait irq softirq steal guest guest_nice`; guest time is inside user (proc(5))."""
    whole, each = None, {}
    for line in lines:
        match = _CPU.match(line)
        if not match:
            continue
        try:
            ticks = [int(part) for part in match.group(2).split()[:8]]
        except ValueError:
            continue
        if len(ticks) < 4:
            continue
        iowait = ticks[4] if len(ticks) > 4 else 0
        times = CpuTimes(sum(ticks) - ticks[3] - iowait, iowait, sum(ticks))
        if match.group(1):
            each[int(match.group(1))] = times
        else:
            whole = times
    return whole, each


def parse_meminfo(lines: Sequence[str]) -> dict[str, int]:
    """Bytes by name (`MemTotal:       131072 kB`)."""
    values = {}
    for line in lines:
        name, _, rest = line.partition(":")
        amount = _number(rest.split()[0]) if rest.split() else None
        if amount is not None:
            values[name] = int(amount) * (1024 if rest.rstrip().endswith("kB") else 1)
    return values


def parse_diskstats(lines: Sequence[str]) -> dict[str, DiskCounters]:
    """By kernel name; sectors are 512 bytes whatever the device's own (Documentation/admin-guide/iostats.rst)."""
    disks = {}
    for line in lines:
        parts = line.split()
        if len(parts) >= 10 and parts[5].isdigit() and parts[9].isdigit():
            name = clean(parts[2])
            disks[name] = DiskCounters(int(parts[5]) * 512, int(parts[9]) * 512, f"{parts[0]}:{parts[1]}")
    return disks


def parse_net_dev(lines: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Received and sent bytes by interface; the two header lines have no colon-number pair."""
    found = {}
    for line in lines:
        name, colon, rest = line.partition(":")
        parts = rest.split()
        if colon and len(parts) >= 9 and parts[0].isdigit() and parts[8].isdigit():
            found[clean(name.strip())] = (int(parts[0]), int(parts[8]))
    return found


def parse_cpu_list(text: str) -> frozenset[int]:
    """`0-3,8` -> 0, 1, 2, 3, 8."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            cpus.update(range(int(first), min(int(last or first), int(first) + 8192) + 1))
    return frozenset(cpus)


# cgroup v1 writes "no limit" as the largest page-aligned 63-bit number; anything near it is no limit.
_NO_LIMIT = 1 << 60


def parse_cgroup_memory(files: Mapping[str, Sequence[str]]) -> CgroupMemory | None:
    """The smallest limit among the groups above us (v2 `memory.max`, v1 `memory.limit_in_bytes`); None without one.

    `used_bytes` is that group's usage without inactive file pages: what the kernel drops before it kills.
    """
    best: CgroupMemory | None = None
    for path, lines in files.items():
        folder, _, name = path.rpartition("/")
        if name not in ("memory.max", "memory.limit_in_bytes") or not lines:
            continue
        limit = _number(lines[0])
        if limit is None or limit >= _NO_LIMIT or (best and best.limit_bytes and best.limit_bytes <= limit):
            continue
        usage = files.get(f"{folder}/memory.current") or files.get(f"{folder}/memory.usage_in_bytes") or ()
        used = _number(usage[0]) if usage else None
        stat = _pairs(files.get(f"{folder}/memory.stat", ()))
        inactive = stat.get("total_inactive_file", stat.get("inactive_file", 0))
        events = _pairs([*files.get(f"{folder}/memory.events", ()), *files.get(f"{folder}/memory.oom_control", ())])
        best = CgroupMemory(int(limit), None if used is None else max(0, int(used) - inactive), events.get("oom_kill"))
    return best


def parse_cpu_quota(files: Mapping[str, Sequence[str]]) -> float | None:
    """CPUs allowed by the tightest `cpu.max` (`400000 100000` is four), or v1's quota; None without a limit."""
    quotas = []
    for path, lines in files.items():
        if path.endswith("/cpu.max") and lines:
            parts = lines[0].split()
            if len(parts) == 2 and parts[0].isdigit() and parts[1].isdigit() and int(parts[1]):
                quotas.append(int(parts[0]) / int(parts[1]))
    quota = _number((files.get("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") or ("",))[0])
    period = _number((files.get("/sys/fs/cgroup/cpu/cpu.cfs_period_us") or ("",))[0])
    if quota and quota > 0 and period:
        quotas.append(quota / period)
    return min(quotas, default=None)


def _pairs(lines: Sequence[str]) -> dict[str, int]:
    split = (line.split() for line in lines)
    return {parts[0]: int(parts[1]) for parts in split if len(parts) == 2 and parts[1].isdigit()}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
