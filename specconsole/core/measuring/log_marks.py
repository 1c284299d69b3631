"""What a server's log says of a measured window: compiling, KV retractions, decode steps without a graph.

Real lines: SGLang 0.5.12 `Try DeepGEMM JIT Compiling for <...>`, `KV cache pool is full. Retract requests.
#retracted_reqs: 1, ...` (scheduler.py), `Decode batch, #running-req: 1, ..., cuda graph: False, ...`; vLLM 0.33
`torch.compile took 12.3 s in total`, `Compiling a graph for compile range`, `Triton kernel JIT compilation during
inference`; `[1/6] c++ -MMD -MF ...` is ninja under any of them.
"""

from __future__ import annotations

import re

LIMIT_BYTES = 8 * 1024 * 1024
"""A window's log beyond this is read from its start only so far."""

_COMPILING = re.compile(
    rb"DeepGEMM JIT (?:Pre-)?Compil|JIT compil|torch\.compile took|Compiling a graph for|Capturing batches"
    rb"|^\[\d+/\d+\] (?:c\+\+|nvcc|/\S*nvcc) ",
    re.MULTILINE,
)
_RETRACTED = re.compile(rb"KV cache pool is full\. Retract requests|Preempted \d+ request|is preempted by")
_DECODE = re.compile(rb"^.*Decode batch.*cuda graph: (True|False)", re.MULTILINE)


def log_marks(window: bytes) -> tuple[str, ...]:
    """Marks for the bytes that were written within one window."""
    found = []
    if _COMPILING.search(window):
        found.append("compiled-inside")
    if _RETRACTED.search(window):
        found.append("retractions")
    graphs = _DECODE.findall(window)
    # A server that runs without graphs altogether is a setting, and stands among them.
    if b"True" in graphs and graphs.count(b"False") > 0:
        found.append("no-graph")
    return tuple(found)
