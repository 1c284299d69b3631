"""Notes and tags of a launch: entries that are only ever added, and what they say together.

An entry is a fact of one moment (`ada noted this`, `ada took tag x off`), with an id that no other entry has. Copies of
a launch's entries in several places (the console's store, the launch's folder on the host) are put together by
joining them: in any order, any number of times, nothing is lost and nothing counts twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from specconsole.core.hosts.plain_text import one_line
from specconsole.core.launching.masking import mask_text
from specconsole.errors import BadInputError

Kind = Literal["note", "tag", "untag", "undo"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_NOTE_CHARS = 4000
MAX_TAG_CHARS = 40
_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Annotation:
    """One entry."""

    entry_id: str
    """Sorts by time: microseconds since 1970 in 16 digits, `-`, a random end."""
    launch_id: str
    at_s: float
    """Wall clock of the console that wrote it, seconds since the epoch."""
    by: str
    """`user@machine`."""
    kind: Kind
    text: str
    """The note, the tag's name, or the id of the entry that is undone."""

    def to_line(self) -> str:
        """One JSON line, as it stands in the launch's folder."""
        return json.dumps({"schema": _SCHEMA, **asdict(self)}, ensure_ascii=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Note:
    """A note that stands."""

    entry_id: str
    at_s: float
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a launch's entries say together."""

    notes: tuple[Note, ...] = ()
    """The oldest first."""
    tagged: tuple[str, ...] = ()
    """Tags put on, sorted."""
    untagged: tuple[str, ...] = ()
    """Tags taken off (also one that the profile gave), sorted."""

    def tags(self, of_profile: Iterable[str] = ()) -> tuple[str, ...]:
        """The launch's tags: the profile's first, in its order, without those taken off."""
        mine = [tag for tag in of_profile if tag not in self.untagged]
        return tuple(dict.fromkeys((*mine, *self.tagged)))

    @property
    def text(self) -> str:
        """Tags that were put on, and all notes: `#best warm GPU`; "" without any."""
        return " ".join([*(f"#{tag}" for tag in self.tagged), self.note_text]).strip()

    @property
    def note_text(self) -> str:
        """All notes in one line, the newest first; "" without one."""
        return "; ".join(" ".join(note.text.split()) for note in reversed(self.notes))


NONE_YET = Annotations()


def entry_id(now_s: float, token: str) -> str:
    """An id for an entry of this moment; `token` is random."""
    return f"{max(0, int(now_s * 1_000_000)):016d}-{token}"


def join(entries: Iterable[Annotation]) -> Annotations:
    """What entries from anywhere say together, whatever their order and however often each is among them."""
    ordered = sorted({entry.entry_id: entry for entry in entries}.values(), key=lambda entry: entry.entry_id)
    undone: set[str] = set()
    for entry in reversed(ordered):
        # An undo that was itself undone undoes nothing.
        if entry.kind == "undo" and entry.entry_id not in undone:
            undone.add(entry.text)
    standing = [entry for entry in ordered if entry.entry_id not in undone]
    tags: dict[str, bool] = {}
    for entry in standing:
        if entry.kind in ("tag", "untag"):
            tags[entry.text] = entry.kind == "tag"
    return Annotations(
        tuple(Note(e.entry_id, e.at_s, e.by, e.text) for e in standing if e.kind == "note"),
        tuple(sorted(tag for tag, on in tags.items() if on)),
        tuple(sorted(tag for tag, on in tags.items() if not on)),
    )


def last_change(entries: Iterable[Annotation], by: str) -> Annotation | None:
    """The newest entry of this person that stands; None without one: what `undo` is about."""
    ordered = sorted(entries, key=lambda entry: entry.entry_id)
    undone: set[str] = set()
    for entry in reversed(ordered):
        if entry.entry_id in undone:
            continue
        if entry.kind == "undo":
            undone.add(entry.text)
        elif entry.by == by:
            return entry
    return None


def parse_annotation(line: str, launch_id: str) -> Annotation | None:
    """An entry from a launch's folder; None for what is none (cut, of another launch, of a newer kind)."""
    try:
        shape: Any = json.loads(line)
        found = Annotation(
            str(shape["entry_id"]),
            str(shape["launch_id"]),
            float(shape["at_s"]),
            one_line(str(shape["by"])),
            shape["kind"],
            printable(str(shape["text"])[:MAX_NOTE_CHARS]),
        )
        if found.kind in ("tag", "untag"):
            checked_tag(found.text)
    except (ValueError, TypeError, KeyError, RecursionError, BadInputError):
        return None
    whole = found.kind in KINDS and found.launch_id == launch_id and plain_id(found.entry_id)
    return found if whole else None


def printable(text: str) -> str:
    """Lines of a text without anything that could drive a terminal or turn text around, blanks around it cut."""
    lines = text.encode("utf-8", "replace").decode("utf-8").splitlines()
    return "\n".join("".join(c if c.isprintable() else " " for c in line).rstrip() for line in lines).strip()


def plain_id(text: str) -> bool:
    """Whether it can be an entry's id, and with that a file's name."""
    return 0 < len(text) <= 64 and text.isascii() and text.replace("-", "").isalnum()


def checked_note(text: str) -> str:
    """The note without blanks around it and without control characters. Raises BadInputError."""
    kept = mask_text(printable(text))
    if not kept:
        raise BadInputError("a note needs a text", try_='specconsole note LAUNCH "what there is to know"')
    if len(kept) > MAX_NOTE_CHARS:
        raise BadInputError(f"a note has at most {MAX_NOTE_CHARS} characters, not {len(kept)}", try_="a shorter one")
    return kept


def checked_tag(text: str) -> str:
    """The tag's name: letters, digits and `_.:/+-`. Raises BadInputError."""
    tag = text.strip().removeprefix("#")
    if not tag or len(tag) > MAX_TAG_CHARS or not all(c.isalnum() or c in "_.:/+-" for c in tag):
        raise BadInputError(
            f"{text.strip()[:60]!r} can't be a tag", try_=f"at most {MAX_TAG_CHARS} letters, digits and _.:/+-"
        )
    return tag


def tag_words(text: str, present: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(tags to put on, tags to take off) of a line as a person types it: `best -old`; those that change nothing are
    left out. Raises BadInputError."""
    words = text.replace(",", " ").split()
    off = [checked_tag(word[1:]) for word in words if word.startswith("-")]
    on = [checked_tag(word.removeprefix("+")) for word in words if not word.startswith("-")]
    return tuple(t for t in on if t not in present), tuple(t for t in off if t in present)
