"""Room and speed of the disks that a start needs: launch folder and log, caches, shared memory, the model's files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from specconsole.core.launching.preflight import Finding
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.script import STATE_FOLDER

# $1: the model's path or "", $2: `sample` to time its disk: a part of one file is read past the page cache (64 MiB, two
# seconds at most), because what a cold start waits for is the disk. A file system without a limit of files says 0 of 0.
DISK = f"""\
{{
LC_ALL=C; export LC_ALL
room() {{ # $1 what, $2 a path that need not be there yet
  what=$1 at=$2
  while [ -n "$at" ] && [ ! -d "$at" ]; do case $at in */*) at=${{at%/*}} ;; *) at= ;; esac; done
  files=$(df -Pi "${{at:-/}}" 2>/dev/null | awk 'NR==2 {{print ($2 > 0) ? $4 : "-"}}')
  # The mount point comes last, and may hold blanks.
  set -- "$1" "$files" $(df -Pk "${{at:-/}}" 2>/dev/null | sed -n 2p)
  [ $# -lt 8 ] || {{
    total=$4 free=$6; shift 7
    printf 'room=%s|%s|%s|%s|%s\\n' "$what" "$total" "$free" "$files" "$*"
  }}
  [ "$what" != launches ] || [ ! -d "$at" ] || [ -w "$at" ] || printf 'denied=%s\\n' "$at"
}}
room launches "{STATE_FOLDER}/launches"
room caches "${{XDG_CACHE_HOME:-$HOME/.cache}}"
[ ! -d /dev/shm ] || room shm /dev/shm
path=$1
case $path in '~/'*) path=$HOME/${{path#'~/'}} ;; esac
if [ -d "$path" ]; then for one in "$path"/*.safetensors; do [ -f "$one" ] && path=$one && break; done; fi
if [ "$2" = sample ] && [ -f "$path" ] && [ -r "$path" ]; then
  limit=; ! command -v timeout >/dev/null 2>&1 || limit='timeout 2'
  $limit dd if="$path" of=/dev/null bs=1048576 count=64 iflag=direct 2>&1 | sed -n 's/^\\([0-9]* bytes.*\\)$/read=\\1/p'
fi
printf 'end=1\\n'
}}
"""
_KIB, _GIB = 1024, 1024**3
_LEAST_BYTES = 64 * _KIB**2
"""Below this the launch's own files may fail to be written."""
_LITTLE_BYTES = _GIB
"""A day's log of a busy server; a first start compiles kernels of as much."""
_SHM_BYTES = _GIB
"""NCCL's and the workers' shared memory; docker gives 64 MiB unless told."""
_LEAST_READ_BYTES = 16 * _KIB**2
"""Less than that says nothing about a speed."""
_READ = re.compile(r"(?P<bytes>\d+) bytes.*?(?:copied|transferred)[^,]*, *(?P<seconds>[0-9.]+(?:e[-+]?\\d+)?) *s")


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """One file system."""

    total_bytes: int
    free_bytes: int
    free_files: int | None
    """Files that may still be made; None where the file system has no such limit."""
    mounted_at: str


@dataclass(frozen=True, slots=True)
class Disks:
    """What the host said; a part that is missing was not said."""

    rooms: Mapping[str, DiskRoom]
    """`launches`, `caches`, `shm` -> the file system that it lies on."""
    denied: str = ""
    """A folder that the launches can't be written in."""
    read_bytes_per_s: float | None = None
    """Of the model's disk, past the page cache; None where it can't be told."""


def parse_disks(output: bytes) -> Disks:
    """The output of `DISK`; what is cut or odd is left out."""
    rooms: dict[str, DiskRoom] = {}
    denied, rate = "", None
    for line in output.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("=")
        parts = value.split("|")
        if key == "room" and len(parts) == 5 and parts[1].isdigit() and parts[2].isdigit():
            files = int(parts[3]) if parts[3].isdigit() else None
            rooms[parts[0]] = DiskRoom(int(parts[1]) * _KIB, int(parts[2]) * _KIB, files, parts[4])
        elif key == "denied":
            denied = value
        elif key == "read" and (match := _READ.search(value)):
            size, seconds = int(match["bytes"]), float(match["seconds"])
            if size >= _LEAST_READ_BYTES and seconds > 0:
                rate = size / seconds
    return Disks(rooms, denied, rate)


def judge_disks(profile: Profile, disks: Disks, weights_bytes: int | None, ranks: int) -> tuple[Finding, ...]:
    """`ranks`: processes that share memory with each other; `weights_bytes` None: not known."""
    found: list[Finding] = []
    if disks.denied:
        text = f"{disks.denied} can't be written by this account: launches are kept there"
        found.append(Finding("disk", "stop", text, "its owner and mode", "denied"))
    launches, caches = disks.rooms.get("launches"), disks.rooms.get("caches")
    if launches is not None:
        found.append(_room(launches, "launches", "the launch's files and log"))
    if caches is not None and profile.engine in ("sglang", "vllm") and not _same(caches, launches):
        found.append(_room(caches, "caches", "compiled kernels and graphs", full="warning"))
    shm = disks.rooms.get("shm")
    if shm is not None and ranks > 1 and shm.free_bytes < _SHM_BYTES:
        text = f"{shm.mounted_at} has {_size(shm.free_bytes)} free: {ranks} ranks share memory there"
        found.append(Finding("disk", "warning", text, "docker run --shm-size 32g, or --ipc=host", "shm"))
    if disks.read_bytes_per_s is not None:
        text = f"the model's disk reads {disks.read_bytes_per_s / 1e9:.2f} GB/s (64 MiB, past the page cache)"
        if weights_bytes is not None:
            text += f": cold, {_size(weights_bytes)} of weights take {_time(weights_bytes / disks.read_bytes_per_s)}"
        found.append(Finding("disk", "note", text, name="read"))
    return tuple(found)


def _same(one: DiskRoom, other: DiskRoom | None) -> bool:
    return other is not None and (one.mounted_at, one.total_bytes) == (other.mounted_at, other.total_bytes)


def _room(room: DiskRoom, name: str, what: str, full: str = "stop") -> Finding:
    where = f"{what} ({room.mounted_at})"
    if room.free_files == 0:
        return Finding("disk", "stop", f"no file can be made any more for {where}", "delete files there", name)
    if room.free_bytes < _LEAST_BYTES:
        text = f"{_size(room.free_bytes)} free for {where}: the disk is full"
        return Finding("disk", "stop" if full == "stop" else "warning", text, "make room there", name)
    if room.free_bytes < _LITTLE_BYTES:
        return Finding("disk", "warning", f"only {_size(room.free_bytes)} free for {where}", "make room there", name)
    return Finding("disk", "ok", f"{_size(room.free_bytes)} free for {where}", name=name)


def _size(size_bytes: float) -> str:
    return f"{size_bytes / _GIB:.1f} GiB" if size_bytes >= _GIB else f"{size_bytes / _KIB**2:.0f} MiB"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
