"""Ollama's server log, 0.3 to 0.12: Go's slog lines, Gin's access lines, the runner's llama.cpp lines between them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from specconsole.core.reading.events import Busy, Count, Enter, Event, Facts, Heartbeat, Idle, Leave, Ready, Started
from specconsole.core.reading.generic_table import Row, TableDialect, number, row


def _listening(match: re.Match[str]) -> Sequence[Event]:
    return (Started(), Facts(version=match[2], port=int(match[1])), Ready())


_ROWS: tuple[Row, ...] = (
    # `time=... level=INFO source=routes.go:1259 msg="Listening on 127.0.0.1:11434 (version 0.5.7)"`
    row("Listening on", r"Listening on .*?:(\d{1,5}) \(version ([^)]+)\)", make=_listening),
    # `msg="downloading 6a0746a1ec1a in 16 292 MB part(s)"` (download.go)
    row("downloading", r"downloading \w+ in \d+ [\d.]+ [KMGT]?B part", Enter("download")),
    # `msg="starting llama server" cmd="/usr/lib/ollama/runner --model /root/.ollama/models/blobs/sha256-... --port
    # 40123"` / `"starting runner"`
    row("starting ", r"starting (?:llama server|runner|ollama engine)", Enter("weights", "target")),
    # `msg="waiting for llama runner to start responding"` / `msg="waiting for server to become available"
    # status="llm server loading model"`
    row(
        "waiting for",
        r"waiting for (?:llama runner to start responding|server to become available)",
        Heartbeat(),
        Enter("weights", "target", stay=True),
    ),
    # `msg="model load progress 0.45"` (llm/server.go, debug)
    row(
        "model load progress",
        r"model load progress ([01]\.\d{1,4})",
        make=lambda m: (Count(round((number(m[1]) or 0.0) * 100), 100, "percent", "weights", "target"),),
    ),
    # `msg="llama runner started in 5.01 seconds"`
    row(
        "llama runner started in",
        r"llama runner started in ([\d.]+) seconds",
        make=lambda m: (Leave("weights", seconds=number(m[1])), Ready()),
    ),
    # `[GIN] 2025/01/10 - 10:00:00 | 200 |  2.219s |       127.0.0.1 | POST     "/api/generate"` (printed when the
    # request is over)
    row("[GIN]", r"\| 200 \|.*\| POST +\"/(?:api/(?:generate|chat|embed)|v1/)", Busy(), Idle()),
)

DIALECT = TableDialect(
    engine="ollama",
    rows=_ROWS,
    sure=("source=routes.go", "source=sched.go", "source=server.go", "OLLAMA_", "[GIN]", "ollama"),
    hints=("llama runner",),
)
