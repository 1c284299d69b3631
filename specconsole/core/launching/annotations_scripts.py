"""The POSIX sh scripts that keep a launch's notes and tags in its folder on the host, and read them there.

One file an entry, `notes/ENTRY-ID.json` with one line: written beside and renamed, so that consoles which write at once
need no lock, and a file system shared over NFS no append. Each script is one brace group (see `script`).
"""

from __future__ import annotations

from collections.abc import Mapping

from specconsole.core.launching.annotations import Annotation, parse_annotation

# $1: the launch's folder; then an entry's id and its line, as often as wanted.
KEEP_ENTRIES = """\
{
umask 077
[ -d "$1" ] || { printf 'gone=1\\n'; exit 0; }
dir=$1/notes; shift
why=$(mkdir -p "$dir" 2>&1) || { printf 'why=%s\\n' "$why"; exit 1; }
while [ $# -ge 2 ]; do
  if [ -e "$dir/$1.json" ] || { printf '%s\\n' "$2" >"$dir/.$1.$$" && mv "$dir/.$1.$$" "$dir/$1.json"; } 2>/dev/null
  then printf 'kept=%s\\n' "$1"
  else rm -f "$dir/.$1.$$"; printf 'why=can not be written: %s\\n' "$(df -Pk "$dir" 2>/dev/null | tail -n 1)"; exit 1
  fi
  shift 2
done
printf 'end=1\\n'
}
"""

# $@: folders of launches.
READ_ENTRIES = """\
{
for dir in "$@"; do
  for entry in "$dir"/notes/*.json; do
    [ -f "$entry" ] || continue
    line=; IFS= read -r line 2>/dev/null <"$entry"
    printf 'launch=%s\\nentry=%s\\n' "${dir##*/}" "$line"
  done
done
printf 'end=1\\n'
}
"""


def keep_arguments(folder: str, entries: tuple[Annotation, ...]) -> list[str]:
    """The arguments of `KEEP_ENTRIES`."""
    return [folder, *(word for entry in entries for word in (entry.entry_id, entry.to_line()))]


def parse_kept(output: bytes) -> tuple[frozenset[str], str]:
    """(ids of the entries that stand in the folder, why not all do: "" when all do)."""
    lines = output.decode("utf-8", "replace").splitlines()
    kept = frozenset(line[5:] for line in lines if line.startswith("kept="))
    if "gone=1" in lines:
        return kept, "the launch's folder is gone"
    why = next((line[4:] for line in lines if line.startswith("why=")), "")
    return kept, why or ("" if "end=1" in lines else "it was broken off")


def parse_entries(output: bytes) -> Mapping[str, tuple[Annotation, ...]]:
    """The entries of each launch; what is none is left out."""
    found: dict[str, list[Annotation]] = {}
    launch_id = ""
    for line in output.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition("=")
        if key == "launch":
            launch_id = value
        elif key == "entry" and (entry := parse_annotation(value, launch_id)) is not None:
            found.setdefault(launch_id, []).append(entry)
    return {launch: tuple(entries) for launch, entries in found.items()}
