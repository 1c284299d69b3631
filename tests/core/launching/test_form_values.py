"""What is typed into a field, by its kind; and what is shown of a value is what can be typed again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specconsole.core.launching.command import flag_words
from specconsole.core.launching.form_fields import FormField
from specconsole.core.launching.form_layout import Kind
from specconsole.core.launching.form_values import read_value, value_text


def field(kind: Kind, *path: str, choices: tuple[str, ...] = (), closed: bool = False) -> FormField:
    return FormField(path or ("args", "x"), "server", kind, "x", "--x", choices=choices, closed=closed)


@pytest.mark.parametrize(
    ("one", "text", "value"),
    [
        (field("int"), " 8 ", 8),
        (field("int"), "-1", -1),
        (field("int"), "${steps}", "${steps}"),
        (field("float"), "0.9", 0.9),
        # As it was written, where a number would be spelled otherwise on the command line.
        (field("float"), "0.90", "0.90"),
        (field("float"), "1e-5", "1e-5"),
        (field("float"), "1", 1),
        (field("switch"), "on", True),
        (field("switch"), "No", False),
        (field("choice", choices=("auto", "half"), closed=True), "half", "half"),
        (field("text"), "32k", "32k"),
        (field("text"), "007", "007"),
        (field("text"), "a 'b' $(c) -d", "a 'b' $(c) -d"),
        (field("list"), "1 2 'a b'", [1, 2, "a b"]),
        (field("list"), "[1, [2]]", [1, [2]]),
        (field("list", "tags"), "1 b", ["1", "b"]),
        (field("table"), '{"a": 1}', {"a": 1}),
        (field("table"), "{a = 1}", {"a": 1}),
        (field("path"), "12", "12"),
        (field("text", "env", "OMP_NUM_THREADS"), "8", "8"),
        (field("text", "description"), "8", "8"),
        (field("text", "secrets", "HF_TOKEN"), "env:HF_TOKEN", "env:HF_TOKEN"),
        (field("float", "grace_s"), "5", 5.0),
        (field("int"), "", None),
    ],
)
def test_a_text_is_a_value(one: FormField, text: str, value: Any) -> None:
    read = read_value(one, text)
    assert read.error == ""
    assert (read.value, type(read.value)) == (value, type(value))


@pytest.mark.parametrize(
    ("one", "text", "said", "instead"),
    [
        (field("int"), "8k", "a whole number is wanted", ""),
        (field("int"), "1.5", "a whole number is wanted", ""),
        (field("int"), "9" * 30, "too large", ""),
        (field("int", "port"), "70000", "1 to 65535", ""),
        (field("float"), "a lot", "a number is wanted", ""),
        (field("float"), "nan", "finite", ""),
        (field("float", "grace_s"), "-1", "seconds from 0", ""),
        (field("switch"), "perhaps", "on or off", ""),
        (field("choice", choices=("auto", "half"), closed=True), "hal", "the server takes auto, half", "half"),
        (field("list"), "'a", "quote", ""),
        (field("list"), "[1,", "not a list", ""),
        (field("table"), "{a", "not JSON", ""),
        (field("text"), "a\0b", "NUL", ""),
        (field("text", "secrets", "T"), "hf_abc", "the place of the value", ""),
        (field("text", "env", "HF_TOKEN"), "hf_abc", "looks like a secret", "${secret:HF_TOKEN}"),
    ],
)
def test_what_can_not_be_taken_says_why(one: FormField, text: str, said: str, instead: str) -> None:
    read = read_value(one, text)
    assert said in read.error
    assert read.value is None
    assert read.instead == instead
    assert "hf_abc" not in read.error


VALUES = st.one_of(
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(lambda t: t == t.strip()),
    st.lists(st.one_of(st.integers(0, 999), st.text("ab 'c\"$", min_size=1, max_size=5)), min_size=1, max_size=4),
    st.dictionaries(st.text("ab", min_size=1), st.one_of(st.integers(), st.text("xyz")), max_size=3),
)


@given(VALUES)
def test_what_is_shown_can_be_typed_again_and_makes_the_same_words(value: Any) -> None:
    kinds: dict[type, Kind] = {bool: "switch", int: "int", str: "text", list: "list", dict: "table"}
    one = field(kinds[type(value)])
    again = read_value(one, value_text(value))
    assert again.error == ""
    assert flag_words("x", again.value) == flag_words("x", value)
