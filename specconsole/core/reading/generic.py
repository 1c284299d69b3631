"""Thin stand-in for the engine-independent rules until the real ones are in."""

from __future__ import annotations

from collections.abc import Sequence

from specconsole.core.reading.events import Event, Line, Trouble

LITERALS: tuple[bytes, ...] = (b"Traceback (most recent call last)", b"out of memory", b"Killed")


def parse(line: Line) -> Sequence[Event]:
    """Only running out of GPU memory and a shell's `Killed`."""
    if "CUDA out of memory" in line.text:
        return (Trouble("fatal", "gpu-oom"),)
    if line.text == "Killed":
        return (Trouble("fatal", "killed"),)
    return ()
