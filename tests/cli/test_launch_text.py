"""One line about a launch, for people."""

from __future__ import annotations

import pytest

from specconsole.cli.launch_text import failure_text, state_text
from specconsole.core.reading.reading import Reader
from specconsole.core.views.launch import LaunchView


def died(log: bytes, exit_status: int | None) -> LaunchView:
    reader = Reader()
    reader.feed(log)
    reading = reader.reading(dead=True, exit_code=exit_status)
    return LaunchView("20261129-120000-abcdef", "tiny", "local", "other", 1, "failed", reading, exit_status=exit_status)


@pytest.mark.parametrize(
    ("exit_status", "text"),
    [
        (0, "exit status 0, and the log states no cause"),
        (1, "exit status 1, and the log states no cause"),
        (137, "killed: ended by signal KILL"),
    ],
)
def test_only_what_a_signal_ended_is_called_killed(exit_status: int, text: str) -> None:
    assert failure_text(died(b"hello\n", exit_status)) == text


def test_a_state_is_not_said_twice() -> None:
    reader = Reader()
    view = LaunchView("i", "tiny", "local", "other", 1, "starting", reader.reading())
    assert state_text(view) == "starting"
