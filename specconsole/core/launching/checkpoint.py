"""A model's files on a host, in one look: what is there, and the heads of its shards. The tensors are never read."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

# $1: a model's folder or file. Packed, since headers of many shards are megabytes of text that shrink tenfold.
# $2: bytes of a single file, $3: bytes of each further shard of a GGUF model.
# `od` gives a safetensors header's length; what is longer than 8 MiB, or longer than its file, is not sent.
CHECKPOINT = r"""
{
path=$1 limit=$2 further=$3
case $path in '~/'*) path=$HOME/${path#'~/'} ;; esac
send() { # $1 file, $2 bytes of it
  # A pipe would wait for ever.
  if [ ! -f "$1" ] || [ ! -r "$1" ]; then printf 'unreadable %s\n' "${1##*/}"; return; fi
  size=$(stat -Lc %s "$1" 2>/dev/null) || { printf 'broken %s\n' "${1##*/}"; return; }
  n=$2; [ "$n" -le "$size" ] || n=$size
  printf 'file %s %s %s\n' "$size" "$n" "${1##*/}"
  [ "$n" -eq 0 ] || head -c "$n" "$1"
  printf '\n'
}
head_of() { # a safetensors file
  if [ ! -f "$1" ] || [ ! -r "$1" ]; then send "$1" 0; return; fi
  n=$(od -An -tu8 -N8 "$1" 2>/dev/null | tr -d ' ')
  case $n in ''|?????????*) n=64 ;; *) if [ "$n" -le 8388608 ]; then n=$((n + 8)); else n=64; fi ;; esac
  send "$1" "$n"
}
look() {
  printf 'at %s\n' "$path"
  if [ -d "$path" ]; then
    printf 'folder\n'
    for one in "$path"/*; do
      case ${one##*/} in *'
'*) continue ;; esac
      if [ -d "$one" ]; then continue; fi
      if [ ! -e "$one" ]; then [ ! -L "$one" ] || printf 'broken %s\n' "${one##*/}"; continue; fi
      case $one in
        */config.json) send "$one" 4194304 ;;
        *.index.json) send "$one" 33554432 ;;
        *.safetensors) head_of "$one" ;;
        *) send "$one" 0 ;;
      esac
    done
  elif [ -f "$path" ]; then
    printf 'single\n'
    send "$path" "$limit"
    case $path in
      *-00001-of-?????.gguf)
        stem=${path%-00001-of-?????.gguf}; all=${path#"$stem-00001"}
        for one in "$stem"-?????"$all"; do [ "$one" = "$path" ] || send "$one" "$further"; done ;;
    esac
  elif [ -e "$path" ]; then
    printf 'odd\n'
  else
    printf 'missing\n'
  fi
  printf 'end\n'
}
if command -v gzip >/dev/null 2>&1; then look | gzip -1c; else look; fi
}
"""
OUTPUT_LIMIT_BYTES = 192 * 1024 * 1024
_UNPACKED_LIMIT_BYTES = 768 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FoundFile:
    size_bytes: int
    head: bytes = b""
    """Its first bytes, as far as they were asked for."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is at a model's path. Its parts are not judged yet."""

    kind: str
    """`folder`, `single`, `missing`, `odd` (a pipe, a device), or `unknown` when the look was cut."""
    files: Mapping[str, FoundFile] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    """Links that lead nowhere, or in a circle."""
    unreadable: tuple[str, ...] = ()
    path: str = ""
    """The path as the host has it, `~` replaced."""


def parse_checkpoint(output: bytes) -> Checkpoint:
    """The output of `CHECKPOINT`; never raises."""
    data = _unpacked(output)
    kind, path = "unknown", ""
    files: dict[str, FoundFile] = {}
    broken: list[str] = []
    unreadable: list[str] = []
    at = 0
    while at < len(data):
        end = data.find(b"\n", at)
        if end < 0:
            break
        word, _, rest = data[at:end].decode("utf-8", "surrogateescape").partition(" ")
        at = end + 1
        if word in ("folder", "single", "missing", "odd"):
            kind = word
        elif word == "at":
            path = rest
        elif word == "broken":
            broken.append(rest)
        elif word == "unreadable":
            unreadable.append(rest)
        elif word == "file":
            size, _, tail = rest.partition(" ")
            taken, _, name = tail.partition(" ")
            if not (size.isdigit() and taken.isdigit()) or at + int(taken) >= len(data):
                break
            files[name] = FoundFile(int(size), data[at : at + int(taken)])
            at += int(taken) + 1
        elif word == "end":
            return Checkpoint(kind, files, tuple(broken), tuple(unreadable), path)
        else:
            break
    return Checkpoint("unknown", files, tuple(broken), tuple(unreadable), path)


def _unpacked(output: bytes) -> bytes:
    if not output.startswith(b"\x1f\x8b"):
        return output
    try:
        return zlib.decompressobj(31).decompress(output, _UNPACKED_LIMIT_BYTES)
    except zlib.error:
        return b""
