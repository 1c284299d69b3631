"""How fast a log is read: `specconsole log` beside grep, wc and lnav, in one run on one file.

The file is made of recorded SGLang logs (tests/core/reading/captures): one start, then the recorded serving under
load again and again with stamps that go on, until it has the size asked for. Everything reads the same file from a warm
page cache; each program runs a few times and its best time counts. Peak memory is the kernel's own figure
(ru_maxrss of the waited-for child; what is below this program's own 25 MB shows as that).

    python benchmarks/reading.py [--size-mb 500] [--runs 3] [--file EXISTING]
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "tests/core/reading/captures/logs"
SOURCES = ("sglang-spec2-topk4-draft16.log.gz", "sglang-spec1-topk1-steps3.log.gz", "sglang-smoke-baseline.log.gz")
READY = b"The server is fired up and ready to roll!"
ENDS = (b"SIGTERM received", b"Subprocess ", b"Health check failed")
STAMP = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


@dataclass(frozen=True)
class Run:
    """The best of several runs of one program."""

    name: str
    seconds: float
    cpu_s: float
    peak_mb: float
    lines: int
    size_bytes: int

    def row(self, base_s: float) -> str:
        return (
            f"{self.name:<24}{self.seconds:>9.2f}{self.cpu_s:>9.2f}{self.lines / self.seconds / 1e6:>12.3f}"
            f"{self.size_bytes / self.seconds / 1e6:>9.0f}{self.peak_mb:>9.0f}{self.cpu_s / base_s:>9.2f}"
        )


def parts(name: str) -> tuple[bytes, bytes]:
    """A recorded log's start-up, and its lines between ready and its end."""
    data = gzip.decompress((LOGS / name).read_bytes())
    ready = data.index(b"\n", data.index(READY)) + 1
    end = min((at for mark in ENDS if (at := data.find(mark, ready)) >= 0), default=len(data))
    return data[:ready], data[ready : data.rindex(b"\n", 0, end) + 1]


class Serving:
    """Recorded serving with its stamps taken out, to be written again from any moment on."""

    def __init__(self, data: bytes) -> None:
        self.texts: list[bytes] = []
        self.seconds: list[float] = []
        position = 0
        for found in STAMP.finditer(data):
            self.texts.append(data[position : found.start()])
            self.seconds.append(datetime.datetime.fromisoformat(found[1].decode() + "+00:00").timestamp())
            position = found.end()
        self.tail = data[position:]
        self.span_s = self.seconds[-1] - self.seconds[0] + 1

    def at(self, start_s: float) -> bytes:
        pieces = []
        for text, second in zip(self.texts, self.seconds, strict=True):
            moment = datetime.datetime.fromtimestamp(start_s + second - self.seconds[0], datetime.UTC)
            pieces += (text, moment.strftime("[%Y-%m-%d %H:%M:%S").encode())
        return b"".join([*pieces, self.tail])


def build(path: Path, size_bytes: int) -> None:
    """Writes the log."""
    starts, servings = zip(*(parts(name) for name in SOURCES), strict=True)
    loops = [Serving(serving) for serving in servings]
    written, turn, now_s = 0, 0, loops[0].seconds[0]
    with path.open("wb") as out:
        written += out.write(starts[0])
        while written < size_bytes:
            loop = loops[turn % len(loops)]
            written += out.write(loop.at(now_s))
            now_s += loop.span_s
            turn += 1


def measure(name: str, argv: list[str], lines: int, size_bytes: int, runs: int, env: dict[str, str]) -> Run | None:
    """The best of `runs`; None when the program is not there."""
    if shutil.which(argv[0]) is None:
        print(f"{name}: not installed, left out", file=sys.stderr)
        return None
    best: tuple[float, float, float] | None = None
    for _ in range(runs):
        begun = time.perf_counter()
        # Not /dev/null: grep sees it and stops at the first match.
        with tempfile.TemporaryFile() as sink:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=env)
            _, status, usage = os.wait4(process.pid, 0)
        took = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            print(f"{name}: exit status {process.returncode}", file=sys.stderr)
            return None
        if best is None or took < best[0]:
            best = (took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)
    assert best is not None
    return Run(name, *best, lines, size_bytes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-mb", type=int, default=500)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--file", type=Path, default=None, help="measure on this file instead")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specconsole-reading-") as folder:
        path = args.file or Path(folder) / "server.log"
        if args.file is None:
            build(path, args.size_mb * 1_000_000)
        size_bytes = path.stat().st_size
        with path.open("rb") as file:
            lines = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 22), b""))
        env = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        ours = [sys.executable, "-m", "specconsole", "log", str(path), "--json"]
        programs = [
            ("specconsole log", ours),
            ("grep -c", ["grep", "-c", "accept len", str(path)]),
            ("grep -c, ten literals", ["grep", "-c", "-E", "|".join(TEN), str(path)]),
            ("wc -l", ["wc", "-l", str(path)]),
            ("lnav -n", ["lnav", "-n", "-c", ":quit", str(path)]),
        ]
        runs = [
            run
            for name, argv in programs
            if (run := measure(name, argv, lines, size_bytes, 1 if name.startswith("lnav") else args.runs, env))
        ]
    if args.json:
        print(json.dumps([run.__dict__ for run in runs], indent=1))
    else:
        print(
            f"{size_bytes / 1e6:.0f} MB, {lines:,} lines, {size_bytes / lines:.0f} bytes a line, {os.cpu_count()} cores"
        )
        print(f"{'':<24}{'wall s':>9}{'CPU s':>9}{'M lines/s':>12}{'MB/s':>9}{'peak MB':>9}{'CPU, x':>9}")
        for run in runs:
            print(run.row(runs[0].cpu_s))
    return 0


TEN = (
    "Load weight begin", "Load weight end", "Memory pool end", "Capture .* graph", "fired up and ready",
    "out of memory", "Received sigquit", "Decode batch", "Traceback", "SIGTERM received",
)  # fmt: skip
"""A tenth of the literals that `specconsole log` looks for."""


if __name__ == "__main__":
    raise SystemExit(main())
