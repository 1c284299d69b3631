"""The few things that we say to the terminal itself: its title, its clipboard, its bell. Only ever our own words."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import signal
from collections.abc import Callable

from specconsole.ui.formatters import safe

CLIPBOARD_LIMIT_BYTES = 74_994
"""xterm takes 100,000 bytes of base64, sequence included (OSC 52); longer ones are dropped there without a word."""

PUSH_TITLE = "\x1b[22;2t"
POP_TITLE = "\x1b[23;2t"


def title_sequence(title: str) -> str:
    """OSC 2: the terminal's title, at most 120 characters of it."""
    return f"\x1b]2;{safe(title)[:120]}\x1b\\"


def clipboard_sequence(text: str) -> tuple[str, bool]:
    """(OSC 52 that puts `text` on the clipboard, whether it had to be cut)."""
    data = text.encode("utf-8", "replace")
    cut = len(data) > CLIPBOARD_LIMIT_BYTES
    encoded = base64.b64encode(data[:CLIPBOARD_LIMIT_BYTES]).decode("ascii")
    return f"\x1b]52;c;{encoded}\x1b\\", cut


def on_end_signals(leave: Callable[[], object]) -> None:
    """SIGTERM and SIGHUP leave the window in order, so that the terminal is restored; Textual installs neither."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Not in a main thread (a test) or not on this platform: the default stays.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, leave)
