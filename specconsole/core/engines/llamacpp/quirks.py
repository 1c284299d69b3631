"""llama.cpp's oddities in its life cycle, b10434 to b11549."""

from __future__ import annotations

from specconsole.core.launching.quirk import Quirk

QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        "port-first",
        "the port opens within 25 ms, long before the model is loaded: 503 `Loading model`, then 200",
        "tools/server/server.cpp; seen: b10434",
    ),
    Quirk(
        "other-vocabulary",
        "a draft with another vocabulary is dropped with one line, and the server serves without speculation",
        "common/speculative.cpp; seen: b10434, b11434",
    ),
    Quirk(
        "open-stream-holds-the-process",
        "after TERM the port closes at once and the process stays until its clients go; nothing can drop them",
        "tools/server/server.cpp; seen: b10434",
    ),
    Quirk(
        "signal-while-loading",
        "TERM while loading ends it at once by the signal (143, -15), without a line",
        "seen: b10434",
    ),
    Quirk(
        "counters-at-the-end",
        "speculation counters on /metrics move only when a request ends",
        "tools/server/server-context.cpp; seen: b10434",
    ),
    Quirk(
        "any-model-name",
        "a wrong model name is served all the same: that a request came back proves no name",
        "tools/server/server-context.cpp; seen: b10434",
    ),
)
