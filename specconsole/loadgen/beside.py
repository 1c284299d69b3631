"""A command that is run beside the load, again and again (a GPU tool): what it prints goes into the records.

It runs in a process of its own and is never waited for while a point runs; a tool that is not there is said once.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from typing import IO, List, Optional, Tuple

MOST_BYTES = 65536
GIVE_UP_S = 20.0


class Beside:
    """`look` at any time, as often as wanted: starts it when it is due and gives what came."""

    def __init__(self, argv: List[str], every_s: float) -> None:
        self.argv = argv
        self.every_s = every_s
        self.gone = False
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._out: Optional[IO[bytes]] = None
        self._began_s = float("-inf")

    def look(self, now_s: float) -> Optional[Tuple[Optional[int], bytes]]:
        """(exit status, output) of a run that has ended, once; a status of None: it can't be run at all."""
        if self._process is None:
            if self.gone or now_s - self._began_s < self.every_s:
                return None
            return self._start(now_s)
        status = self._process.poll()
        if status is None:
            if now_s - self._began_s > GIVE_UP_S:
                self._process.kill()
            return None
        assert self._out is not None
        self._out.seek(0)
        text = self._out.read(MOST_BYTES)
        self._out.close()
        self._process = None
        return status, text

    def again(self) -> None:
        """The next look starts it at once: a new point has begun."""
        self._began_s = float("-inf")

    def wait(self) -> Optional[Tuple[Optional[int], bytes]]:
        """Waits for one that is under way, for a second at most."""
        if self._process is None:
            return None
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return self.look(time.perf_counter())

    def _start(self, now_s: float) -> Optional[Tuple[Optional[int], bytes]]:
        self._began_s = now_s
        self._out = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the run of it has ended
        try:
            self._process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=self._out, stderr=subprocess.STDOUT
            )
        except OSError as error:
            self._out.close()
            self.gone = True
            return None, str(error).encode()
        return None
