"""A program that logs like a busy server and whose log is rotated: run as a process of its own.

    python -m tests.support.log_writer FOLDER LINES_PER_S SEED [KEEP] [MODES]

Writes `FOLDER/log` and, as the witness, every byte also to `FOLDER/truth` (never rotated). At random moments it
does one of MODES: `rename` (log -> log.1 -> log.2 ...), `copytruncate` (a copy, then cut) or `cut` (`> log`, bytes
not read by then are gone). KEEP rotated files stay. Ends on SIGTERM, with everything flushed.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path


def rotate(log: Path, keep: int, *, copy: bool) -> None:
    """Moves the numbered files up by one, drops the last, and puts the present one in front."""
    for number in range(keep, 0, -1):
        old = log.with_name(f"log.{number}")
        if old.exists():
            old.rename(log.with_name(f"log.{number + 1}"))
    log.with_name(f"log.{keep + 1}").unlink(missing_ok=True)
    if copy:
        shutil.copyfile(log, log.with_name("log.1"))
    else:
        log.rename(log.with_name("log.1"))


def main() -> None:
    folder, rate, seed = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    keep = int(sys.argv[4]) if len(sys.argv) > 4 else 6
    modes = sys.argv[5].split(",") if len(sys.argv) > 5 else ["rename", "copytruncate"]
    chance = random.Random(seed)
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    log = folder / "log"
    sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    truth = os.open(folder / "truth", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    began, number = time.monotonic(), 0
    next_rotation = began + chance.uniform(0.3, 1.2)
    while not over:
        due = int((time.monotonic() - began) * rate)
        while number < min(due, number + 400):
            number += 1
            filler = "x" * chance.randrange(120)
            # Bytes that are no UTF-8 belong to real logs; a bar has no newline.
            line = b"%d %s \xff\xfe%s" % (number, filler.encode(), b"\r" if number % 50 == 0 else b"\n")
            os.write(sink, line)
            os.write(truth, line)
        if time.monotonic() >= next_rotation:
            next_rotation = time.monotonic() + chance.uniform(0.3, 1.2)
            mode = chance.choice(modes)
            if mode == "rename":
                rotate(log, keep, copy=False)
                os.close(sink)
                sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            elif mode == "copytruncate":
                rotate(log, keep, copy=True)
                os.ftruncate(sink, 0)
            elif mode == "cut":
                os.ftruncate(sink, 0)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
