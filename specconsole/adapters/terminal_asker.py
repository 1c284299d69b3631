"""Asks on the terminal itself, never on standard input or output: those may carry data."""

from __future__ import annotations

import asyncio
import getpass
import os
import sys


class TerminalAsker:
    """`ports.Asker` on /dev/tty."""

    async def ask(self, host: str, prompt: str, *, secret: bool = True) -> str | None:
        """None when the person ends the input (Ctrl-D). One question at a time: they are asked in a thread."""
        text = f"{host}: {prompt.rstrip(': ')}: "
        try:
            return await asyncio.to_thread(getpass.getpass, text) if secret else await asyncio.to_thread(_line, text)
        except EOFError:
            return None

    def tell(self, host: str, text: str) -> None:
        sys.stderr.write(f"{host}: {text}\n")
        sys.stderr.flush()


def _line(prompt: str) -> str:
    with open("/dev/tty", "r+", encoding="utf-8", buffering=1) as tty:
        tty.write(prompt)
        tty.flush()
        answer = tty.readline()
    if not answer:
        raise EOFError
    return answer.rstrip("\n")


def terminal_asker() -> TerminalAsker | None:
    """None where nobody sits at a terminal (cron, CI, a pipe without one): then nothing is asked."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return None
    return TerminalAsker() if sys.stderr.isatty() else None
