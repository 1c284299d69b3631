"""The window in a real terminal (tmux): hostile floods, signals, resizing, few colours."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.tmux import Tmux
from tests.support.waiting import is_alive, wait_until

ROOT = Path(__file__).parents[2]
FLOOD = [sys.executable, "-m", "tests.ui.flood"]

SEQUENCE = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC
    rb"|\x1b[P_^X][^\x1b]*\x1b\\"  # DCS, APC, PM, SOS
    rb"|\x1b[ -/]*[0-~]"
)
COLOUR = re.compile(rb"\x1b\[[\d;]*m\Z")
CURSOR = re.compile(rb"\x1b\[(\d+);(\d+)H\Z")
TITLE = re.compile(rb"\x1b\]2;[^\x07\x1b]*\x1b\\\Z")
BLINK_OR_HIDDEN = re.compile(rb"\x1b\[(?:\d+;)*[58](?:;\d+)*m\Z")


def sequences(raw: bytes) -> tuple[set[bytes], bytes]:
    """(every sequence that is no colour, place on the screen or title of ours; the bytes outside of sequences)."""
    special: set[bytes] = set()
    for found in SEQUENCE.findall(raw):
        place = CURSOR.match(found)
        if place is not None and int(place[1]) <= 40 and int(place[2]) <= 120:
            continue
        if TITLE.match(found) and found.endswith(b"specconsole\x1b\\"):
            continue
        if COLOUR.match(found):
            # Colours are 38;5;n, 48;5;n or 38;2;r;g;b: a bare 5 (blink) or 8 (hidden) is not ours.
            bare = re.sub(rb"[34]8;(?:5;\d+|2;\d+;\d+;\d+)", b"", found)
            assert not BLINK_OR_HIDDEN.match(bare), found
            continue
        special.add(found)
    return special, SEQUENCE.sub(b"", raw)


def leave_search(tmux: Tmux) -> None:
    """Escape, alone: a letter right behind it would be another key."""
    tmux.keys("Escape")
    wait_until(lambda: "text ^r" not in tmux.screen(), what="the search line is gone")


@pytest.mark.parametrize("lines", [1_000_000])
def test_a_million_hostile_lines_drive_nothing(start_tmux: Callable[..., Tmux], lines: int) -> None:
    benign = start_tmux([*FLOOD, "--lines", "20000"], columns=120, rows=40, cwd=ROOT)
    benign.wait_for("flood over")
    benign.keys("k", "w", "g", "/")
    benign.type_text("Decode")
    benign.wait_for(" of ")
    leave_search(benign)
    benign.keys("q")
    benign.exit_status()
    allowed, _ = sequences(benign.raw())

    hostile = start_tmux([*FLOOD, "--lines", str(lines), "--hostile"], columns=120, rows=40, cwd=ROOT)
    hostile.wait_for("flood over", timeout_s=110)
    screen = hostile.screen()
    assert "1,000,200 lines" in screen
    hostile.keys("k", "w", "g", "/")
    hostile.type_text("text")
    hostile.wait_for(" of ")
    leave_search(hostile)
    hostile.keys("q")
    assert hostile.exit_status() == 0
    special, rest = sequences(hostile.raw())
    assert special <= allowed
    text = rest.decode("utf-8")
    controls = {character for character in text if ord(character) < 32 or 0x7F <= ord(character) < 0xA0}
    assert controls <= set("\r\n\x07")
    assert not set("\u202e\u2066\u2069\u2028\u2029\u200f") & set(text)
    assert "[bold]x[/]" in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_the_terminal_as_it_was(start_tmux: Callable[..., Tmux], number: signal.Signals) -> None:
    tmux = start_tmux([*FLOOD, "--rate", "100"], columns=120, rows=40, cwd=ROOT)
    tmux.wait_for("following")
    assert tmux.alternate_screen()
    pane = int(tmux._tmux("display-message", "-p", "#{pane_pid}"))
    child = int(Path(f"/proc/{pane}/task/{pane}/children").read_text().split()[0])
    os.kill(child, number)
    assert tmux.exit_status() == 0
    wait_until(lambda: not tmux.alternate_screen() and tmux.cursor_visible(), what="the terminal is as it was")
    assert b"\x1b[?1000l" in tmux.raw()[-2000:]


def test_a_terminal_that_is_taken_away_ends_the_window(start_tmux: Callable[..., Tmux]) -> None:
    tmux = start_tmux([*FLOOD, "--rate", "100"], columns=120, rows=40, cwd=ROOT)
    tmux.wait_for("following")
    pane = int(tmux._tmux("display-message", "-p", "#{pane_pid}"))
    child = int(Path(f"/proc/{pane}/task/{pane}/children").read_text().split()[0])
    tmux._tmux("kill-server")
    wait_until(lambda: not is_alive(child), what="the window has ended", timeout_s=60)


def test_resizing_at_any_moment_and_few_colours(start_tmux: Callable[..., Tmux]) -> None:
    few = {"TERM": "xterm", "COLORTERM": "", "TEXTUAL_COLOR_SYSTEM": "standard"}
    tmux = start_tmux([*FLOOD, "--rate", "2000"], columns=160, rows=48, cwd=ROOT, environment=few)
    tmux.wait_for("following")
    for columns, rows in ((80, 24), (200, 60), (40, 12), (120, 30), (80, 24)):
        tmux.resize(columns, rows)
        wait_until(lambda: "eagle3-topk1" in tmux.screen(), what="the phase line is there")
    tmux.wait_for("1 log")
    wait_until(lambda: "weights" in tmux.screen(), what="the screen is drawn at its new size", timeout_s=60)
    assert not re.search(rb"\x1b\[[\d;]*[34]8;[25];", tmux.raw())
    tmux.keys("q")
    assert tmux.exit_status() == 0
