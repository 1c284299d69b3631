"""A real terminal for the window: a private tmux server, with every raw byte that the program wrote kept."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.waiting import PATIENCE_S, wait_until


class Tmux:
    """One pane of `columns` x `rows` that runs `argv`; its socket and files live in `folder`."""

    def __init__(
        self,
        folder: Path,
        argv: Sequence[str],
        *,
        columns: int = 120,
        rows: int = 40,
        environment: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._socket = folder / "tmux.sock"
        self.raw_path = folder / "tmux.raw"
        """Everything the program sent to the terminal, byte for byte."""
        self.status_path = folder / "tmux.status"
        assert len(os.fsencode(self._socket)) < 100, "a socket's path is limited to about 100 bytes"
        self._environment = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
        for name in ("TMUX", "TMUX_PANE"):
            self._environment.pop(name, None)
        # The pane waits for a token before it starts the program, so that pipe-pane misses nothing; it stays
        # open afterwards, so that the last screen and the exit status can be read.
        go = shlex.quote(f"{self._socket}.go")
        program = shlex.join(argv)
        script = (
            f"tmux -S {shlex.quote(str(self._socket))} wait-for {go}; {program}; "
            f"echo $? > {shlex.quote(str(self.status_path))}; sleep 3600"
        )
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                   "-c", str(cwd or folder), "/bin/sh", "-c", script)  # fmt: skip
        self._tmux("pipe-pane", "-O", f"cat >> {shlex.quote(str(self.raw_path))}")
        self._tmux("wait-for", "-S", f"{self._socket}.go")

    def _tmux(self, *arguments: str) -> str:
        ended = subprocess.run(
            ["tmux", "-S", str(self._socket), *arguments],
            env=self._environment, capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, f"tmux {arguments}: {ended.stderr}"
        return ended.stdout

    def keys(self, *names: str) -> None:
        """Keys by tmux's names (`Enter`, `Escape`, `C-c`, `Up`, or a letter)."""
        self._tmux("send-keys", *names)

    def type_text(self, text: str) -> None:
        """Text letter by letter, nothing in it read as the name of a key."""
        self._tmux("send-keys", "-l", "--", text)

    def screen(self) -> str:
        """What a person sees now, trailing blanks cut."""
        return self._tmux("capture-pane", "-p")

    def screen_with_colours(self) -> str:
        return self._tmux("capture-pane", "-p", "-e")

    def cursor_visible(self) -> bool:
        return self._tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"

    def alternate_screen(self) -> bool:
        return self._tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def raw(self) -> bytes:
        return self.raw_path.read_bytes() if self.raw_path.exists() else b""

    def wait_for(self, text: str, *, timeout_s: float = PATIENCE_S) -> str:
        """The first screen that shows `text`; AssertionError with the last one after `timeout_s`."""
        seen = ""

        def shows() -> bool:
            nonlocal seen
            seen = self.screen()
            return text in seen

        try:
            wait_until(shows, timeout_s=timeout_s)
        except AssertionError:
            raise AssertionError(f"{text!r} not on the screen within {timeout_s:g} s:\n{seen}") from None
        return seen

    def exit_status(self, *, timeout_s: float = PATIENCE_S) -> int:
        """Waits for the program's end."""
        written = wait_until(
            lambda: self.status_path.exists() and self.status_path.read_text(), timeout_s=timeout_s,
            what="the program in tmux has ended",
        )  # fmt: skip
        return int(written)

    def close(self) -> None:
        """Ends the pane (the program gets SIGHUP) and the private server."""
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self._tmux("kill-server")
