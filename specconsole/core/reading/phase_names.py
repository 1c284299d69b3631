"""The phases of a server's life, by name: all that a theme or an empty window has to know of a reading."""

from __future__ import annotations

from typing import Literal

Phase = Literal[
    "starting", "distributed", "download", "weights", "kv-cache", "compile", "graph-capture", "warm-up",
    "ready", "serving", "stopping", "stopped", "failed",
]  # fmt: skip
PHASES: tuple[Phase, ...] = (
    "starting", "distributed", "download", "weights", "kv-cache", "compile", "graph-capture", "warm-up",
    "ready", "serving", "stopping", "stopped", "failed",
)  # fmt: skip
START_PHASES: tuple[Phase, ...] = PHASES[:8]
