"""The window's speed, in one run: first paint beside a bare Textual app, `--help` beside bare Python, the CPU it takes
while a log grows, and the time from a key to its paint, beside a bare app's.

Everything is the real command in a pseudo-terminal of 120 x 40, watching a real launch on this machine through the
same follower, spool and reader as any other; only the server is a program that prints lines. Byte code is on disk for
both sides, as it is once a package is installed or has run once. Medians and p99 over the runs named in the output;
runs of the two sides alternate, so that what else the machine does meets both. `--quick` for a look.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sys.executable
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
COLUMNS, ROWS = 120, 40

BARE_APP = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("first painted")
    def on_key(self, event):
        shown = self.query_one(Static)
        shown.update("following" if event.key == "f" else "at line")
Bare().run()
"""


def environment(home: Path) -> dict[str, str]:
    """A home of its own, and a folder for byte code that both sides fill with their first run."""
    found = {**os.environ, "HOME": str(home), "TERM": "xterm-256color", "COLORTERM": "truecolor",
             "PYTHONPYCACHEPREFIX": str(home / "bytecode")}  # fmt: skip
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TMUX", "NO_COLOR", "PYTHONDONTWRITEBYTECODE"):
        found.pop(name, None)
    return found


class Screen:
    """A program in a pseudo-terminal; what it writes is read and kept."""

    def __init__(self, argv: Sequence[str], home: Path) -> None:
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.chdir(ROOT)
            os.execve(argv[0], list(argv), environment(home))
        self.seen = b""

    def read(self, timeout_s: float) -> bool:
        """Takes what is there, waiting at most so long; False when nothing came."""
        ready, _, _ = select.select([self.fd], [], [], timeout_s)
        if not ready:
            return False
        try:
            self.seen += os.read(self.fd, 1 << 16)
        except OSError:
            return False
        return True

    def wait(self, text: bytes, timeout_s: float = 60.0) -> float:
        """Seconds from the program's start to `text` in its output since the last `forget`."""
        deadline = time.perf_counter() + timeout_s
        while text not in self.seen:
            if time.perf_counter() > deadline:
                raise SystemExit(f"{text!r} did not come:\n{self.seen[-3000:]!r}")
            self.read(0.5)
        return time.perf_counter() - self.began

    def forget(self) -> None:
        while self.read(0.0):
            pass
        self.seen = b""

    def key(self, key: bytes, paints: bytes) -> float:
        """Seconds from a key to the output that shows its effect."""
        self.forget()
        at = time.perf_counter()
        os.write(self.fd, key)
        while paints not in self.seen:
            if time.perf_counter() - at > 20:
                raise SystemExit(f"{key!r} paints no {paints!r}")
            self.read(0.2)
        return time.perf_counter() - at

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def close(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        deadline = time.perf_counter() + 20
        while time.perf_counter() < deadline and os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            self.read(0.1)
        os.close(self.fd)


def seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def specconsole(home: Path, *words: str) -> str:
    done = subprocess.run([PYTHON, "-m", "specconsole", *words], cwd=ROOT, env=environment(home), capture_output=True,
                          text=True, check=False)  # fmt: skip
    if done.returncode not in (0, 1):
        raise SystemExit(f"specconsole {' '.join(words)}: {done.stderr}")
    return done.stdout


@contextmanager
def launched(home: Path, rate: int) -> Iterator[None]:
    """A launch on this machine whose program prints `rate` lines a second."""
    folder = home / ".config" / "specconsole" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    writer = ROOT / "benchmarks" / "_line_writer.py"
    (folder / f"lines-{rate}.toml").write_text(
        f'engine = "sglang"\nhost = "local"\ncommand = ["{PYTHON}", "{writer}", "{rate}"]\n'
        'model = "none"\ngrace_s = 1\n[args]\n'
    )
    specconsole(home, "launch", f"lines-{rate}")
    try:
        yield
    finally:
        specconsole(home, "stop", "--all")


def first_paint(home: Path, runs: int) -> None:
    bare, ours = [], []
    for run in range(-1, runs):
        if run == 0:
            # The first of each side wrote its byte code.
            bare, ours = [], []
        app = Screen([PYTHON, "-c", BARE_APP], home)
        bare.append(app.wait(b"first painted"))
        app.close()
        window = Screen([PYTHON, "-m", "specconsole"], home)
        ours.append(window.wait(b"launches"))
        window.close()
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"first paint: {ratio:.2f} x a bare Textual app (goal 1.5) - {statistics.median(ours) * 1e3:.0f} against "
          f"{statistics.median(bare) * 1e3:.0f} ms, medians of {runs}")  # fmt: skip


def help_time(home: Path, runs: int) -> None:
    bare, ours = [], []
    for run in range(-1, runs):
        if run == 0:
            bare, ours = [], []
        bare.append(seconds(lambda: subprocess.run([PYTHON, "-c", "pass"], check=True, env=environment(home))))
        ours.append(seconds(lambda: subprocess.run([PYTHON, "-m", "specconsole", "--help"], check=True, cwd=ROOT,
                                                   env=environment(home), stdout=subprocess.DEVNULL)))  # fmt: skip
    more = (statistics.median(ours) - statistics.median(bare)) * 1e3
    print(f"--help: {more:.0f} ms more than bare Python (goal 100) - {statistics.median(ours) * 1e3:.0f} against "
          f"{statistics.median(bare) * 1e3:.0f} ms, medians of {runs}")  # fmt: skip


def cpu(home: Path, rate: int, window_s: float, goal_pct: float) -> None:
    with launched(home, rate):
        window = Screen([PYTHON, "-m", "specconsole"], home)
        window.wait(b"following")
        settle = time.perf_counter() + 4
        while time.perf_counter() < settle:
            window.read(0.2)
        before, began = window.cpu_s(), time.perf_counter()
        while time.perf_counter() - began < window_s:
            window.read(0.5)
        share = (window.cpu_s() - before) / (time.perf_counter() - began)
        window.close()
    what = f"{rate:,} lines/s" if rate else "idle"
    print(f"CPU, {what}: {share:.1%} of a core (goal {goal_pct:g} %), over {window_s:g} s")


def keys(home: Path, rate: int, presses: int, goal_ms: float) -> None:
    """Presses by turns in the window and in a bare app beside it, each with the same rest before the next."""
    took, beside = [], []
    with launched(home, rate):
        window = Screen([PYTHON, "-m", "specconsole"], home)
        window.wait(b"following")
        bare = Screen([PYTHON, "-c", BARE_APP], home)
        bare.wait(b"first painted")
        settle = time.perf_counter() + 3
        while time.perf_counter() < settle:
            window.read(0.1)
        for number in range(presses):
            paints = b"following" if number % 2 else b"at line"
            took.append(window.key(b"f", paints))
            beside.append(bare.key(b"f" if number % 2 else b"g", paints))
            time.sleep(0.03)
        bare.close()
        window.close()
    what = f"under {rate:,} lines/s" if rate else "idle"
    ratio = percentile(took, 0.99) / percentile(beside, 0.99)
    print(f"key to paint, {what}: p99 {percentile(took, 0.99) * 1e3:.0f} ms (goal {goal_ms:g}), p50 "
          f"{percentile(took, 0.5) * 1e3:.0f} ms; a bare app by turns: p99 {percentile(beside, 0.99) * 1e3:.0f}, "
          f"p50 {percentile(beside, 0.5) * 1e3:.0f} ms; p99 {ratio:.2f} x; {presses} presses")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    home = Path(tempfile.mkdtemp(prefix="window-bench-"))
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}: what else runs here is in every number")
    try:
        help_time(home, 5 if quick else 15)
        first_paint(home, 3 if quick else 9)
        seconds_each = 5.0 if quick else 20.0
        cpu(home, 0, seconds_each, 2)
        cpu(home, 100, seconds_each, 15)
        cpu(home, 5000, seconds_each, 15)
        presses = 40 if quick else 300
        keys(home, 0, presses, 30)
        keys(home, 20_000, presses, 80)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
