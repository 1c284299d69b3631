"""Notes and tags: whatever copies of the entries are joined, in whatever order, they say the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specconsole.core.launching.annotations import (
    Annotation,
    checked_note,
    checked_tag,
    entry_id,
    join,
    last_change,
    parse_annotation,
    tag_words,
)
from specconsole.errors import BadInputError


def entry(n: int, kind: str, text: str, by: str = "ada@desk") -> Annotation:
    return Annotation(entry_id(float(n), "ab12"), "L1", float(n), by, kind, text)  # type: ignore[arg-type]  # a Kind


ENTRIES = st.lists(
    st.builds(
        entry,
        st.integers(0, 30),
        st.sampled_from(["note", "tag", "untag"]),
        st.sampled_from(["a", "b", "warm"]),
    ),
    max_size=12,
    unique_by=lambda one: one.entry_id,
)


@settings(max_examples=60, deadline=None)
@given(ENTRIES, st.randoms(use_true_random=False), st.integers(0, 12))
def test_joining_has_no_order_and_counts_nothing_twice(entries: list[Annotation], dice: object, cut: int) -> None:
    shuffled = [*entries[cut:], *entries[:cut], *entries]
    dice.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert join(shuffled) == join(entries)
    assert join(parse_annotation(one.to_line(), "L1") for one in entries) == join(entries)  # type: ignore[arg-type]  # whole


def test_what_entries_say_together() -> None:
    said = join(
        [entry(1, "note", "first"), entry(3, "untag", "x"), entry(2, "tag", "x"), entry(4, "note", "second\nline")]
    )
    assert [note.text for note in said.notes] == ["first", "second\nline"]
    assert said.note_text == "second line; first"
    assert (said.tagged, said.untagged) == ((), ("x",))
    assert said.tags(["x", "y"]) == ("y",)
    assert join([*(), entry(9, "tag", "z")]).tags(["y"]) == ("y", "z")


def test_undo_takes_back_the_last_of_this_person_and_can_be_taken_back() -> None:
    entries = [entry(1, "note", "mine"), entry(2, "note", "hers", "eva@pc"), entry(3, "tag", "x")]
    last = last_change(entries, "ada@desk")
    assert last is not None
    assert last.text == "x"
    entries.append(entry(4, "undo", last.entry_id))
    assert join(entries).tagged == ()
    again = last_change(entries, "ada@desk")
    assert again is not None
    assert again.text == "mine"
    entries.append(entry(5, "undo", entries[3].entry_id))
    assert join(entries).tagged == ("x",), "an undo that was undone undoes nothing"
    assert last_change(entries, "nobody@x") is None


@pytest.mark.parametrize(
    "line",
    [
        "", "{", "[]", "null", '{"entry_id": "1"}', entry(1, "note", "x").to_line()[:-3],
        entry(1, "note", "x").to_line().replace('"L1"', '"L2"'), entry(1, "noted", "x").to_line(),
        entry(1, "note", "x").to_line().replace("0000000001000000-ab12", "../../etc/passwd"), "[" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_entry_is_none(line: str) -> None:
    assert parse_annotation(line, "L1") is None


def test_what_another_console_wrote_can_not_drive_a_terminal() -> None:
    evil = entry(1, "note", "a\x1b]0;x\x07b\u202ec\r\nd\x9b2J", by="e\x1b[2J")
    found = parse_annotation(evil.to_line(), "L1")
    assert found is not None
    assert (found.text, found.by) == ("a ]0;x b c\nd 2J", "e [2J")
    assert parse_annotation(entry(1, "tag", "a b").to_line(), "L1") is None
    assert parse_annotation(entry(1, "tag", "\x1b[2J").to_line(), "L1") is None


def test_bad_notes_and_tags_are_refused_with_what_to_try() -> None:
    assert checked_note("  a\tb\x1b[31m\nc ") == "a b [31m\nc"
    assert checked_note("\ud800 lone") == "? lone"
    assert checked_note("key hf_abcdefghijklmnopqrstuvwxyz here") == f"key {'*' * 29} here"
    for text in ("", " \n ", "\x00", "x" * 4001):
        with pytest.raises(BadInputError) as told:
            checked_note(text)
        assert told.value.try_
    assert [checked_tag(t) for t in ("#best", "v2/a.b", "für")] == ["best", "v2/a.b", "für"]
    for text in ("", "#", "two words", "a,b", "x" * 41, "a\nb", "[red]"):
        with pytest.raises(BadInputError):
            checked_tag(text)
    assert tag_words("best, -old +new kept", ["old", "kept"]) == (("best", "new"), ("old",))
