"""Output between marks: any bytes, any chunking."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specconsole.adapters.ssh.framing import Collector, exit_status
from specconsole.adapters.ssh.quoting import printf, word
from specconsole.errors import BadInputError

MARK = b"0123456789abcdef"


@given(st.binary(max_size=200), st.lists(st.integers(1, 40), max_size=30), st.integers(0, 300))
def test_any_output_in_any_chunks(output: bytes, sizes: list[int], limit: int) -> None:
    stream = output + b"\n" + MARK + b" 3s\nrest"
    collector, done, at = Collector(MARK, limit), False, 0
    for size in [*sizes, len(stream)]:
        if not done:
            done = collector.feed(stream[at : at + size])
            at += size
    assert done
    assert collector.output == output[:limit]
    assert collector.truncated is (len(output) > limit)
    assert collector.words == b"3s"


def test_an_end_without_a_mark_keeps_everything() -> None:
    collector = Collector(MARK, 100)
    assert not collector.feed(b"abc\n" + MARK[:7])
    collector.flush()
    assert (collector.output, collector.words) == (b"abc\n" + MARK[:7], None)


@pytest.mark.parametrize(("words", "status"), [(b"0", 0), (b"130", 130), (b"137s", None), (b"", None), (b"-", None)])
def test_statuses(words: bytes, status: int | None) -> None:
    assert exit_status(words) == status


@given(st.binary(max_size=300).filter(lambda data: b"\0" not in data))
def test_words_through_sh(data: bytes) -> None:
    quoted = word(data.decode("utf-8", "surrogateescape"))
    done = subprocess.run(["sh"], input=b"printf %s " + quoted + b"\n", capture_output=True)
    assert done.stdout == data


def test_printf_prints_every_byte_in_dash_and_bash() -> None:
    data = bytes(range(256)) * 50 + b"%s \\n MARK COMMAND"
    for shell in ("sh", "bash"):
        assert subprocess.run([shell], input=printf(data) + b"\n", capture_output=True).stdout == data


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_part_that_begins_with_a_dash_is_no_option(shell: str) -> None:
    """At whatever offset a dash falls on a part's beginning: 4,096 bytes were lost there once, without a word."""
    for data in (b"-", b"--", b"-n", b"x" * 4095 + b"-" * 9000, b"- " * 8192):
        assert subprocess.run([shell], input=printf(data) + b"\n", capture_output=True).stdout == data


def test_a_nul_is_refused() -> None:
    with pytest.raises(BadInputError):
        word("a\0b")
