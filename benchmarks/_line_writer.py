"""Prints lines as a serving SGLang prints them, at a rate: `python _line_writer.py LINES_PER_SECOND`.

It holds no GPU and serves nothing; benchmarks launch it as they would a server. 0 lines a second: silence.
"""

from __future__ import annotations

import sys
import time

STEP_S = 0.02


def main() -> None:
    rate = float(sys.argv[1])
    out = sys.stdout.buffer
    out.write(b"[2026-11-29 14:12:42] Init torch distributed begin.\n")
    out.flush()
    began, written = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - began) * rate)
        lines = []
        while written < due:
            lines.append(
                b"[2026-11-29 14:13:%02d TP%d] Decode batch, #running-req: 8, #token: %d, token usage: 0.02, "
                b"accept len: 2.%02d, cuda graph: True, gen throughput (token/s): %d.10, #queue-req: 0\n"
                % (written // 1000 % 60, written % 8, written, written % 90, 900 + written % 77)
            )
            written += 1
        if lines:
            out.write(b"".join(lines))
            out.flush()
        time.sleep(STEP_S)


if __name__ == "__main__":
    main()
