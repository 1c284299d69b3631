"""`specconsole demo` on a terminal: the window, with a real server's start in it, that leaves the server running."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.fixtures_processes import StartTmux
from tests.support.waiting import all_pids, environ_of

pytestmark = pytest.mark.real


def test_the_window_shows_the_start_and_leaves_the_server_running(
    start_tmux: StartTmux, specconsole_argv: list[str]
) -> None:
    terminal = start_tmux([*specconsole_argv, "demo"], columns=120, rows=36)
    terminal.wait_for("answers after", timeout_s=60)
    terminal.wait_for("accept length")
    screen = terminal.screen()
    assert "demo @ local:" in screen
    assert "K stop" in screen
    assert terminal.alternate_screen()

    terminal.keys("q")
    screen = terminal.wait_for("runs on, on port")
    assert terminal.exit_status() == 0
    assert not terminal.alternate_screen()
    assert terminal.cursor_visible()
    named = re.search(r"specconsole stop (\S+)", screen)
    assert named
    mark = named[1].encode()
    assert any(environ_of(pid).get(b"SPECCONSOLE_LAUNCH") == mark for pid in all_pids())
    ended = subprocess.run(
        [*specconsole_argv, "stop", named[1]], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "nothing is left" in ended.stdout
    assert not any(environ_of(pid).get(b"SPECCONSOLE_LAUNCH") == mark for pid in all_pids())


def test_the_recording_is_marked_as_one_and_plays_to_its_end(
    start_tmux: StartTmux, specconsole_argv: list[str]
) -> None:
    terminal = start_tmux([*specconsole_argv, "demo", "--replay", "--speed", "100"], columns=120, rows=36)
    terminal.wait_for("RECORDING", timeout_s=60)
    terminal.wait_for("end of the recording", timeout_s=60)
    assert "recorded-h200" in terminal.screen()
    terminal.keys("q")
    assert terminal.exit_status() == 0
