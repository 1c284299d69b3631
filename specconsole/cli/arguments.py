"""Types of arguments, for argparse: a value that can't be meant is refused before anything is touched."""

from __future__ import annotations

import argparse

_MOST_S = 7 * 24 * 3600.0


def seconds(text: str) -> float:
    """From 0 to a week. Raises argparse.ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    # NaN fails this too.
    if not 0.0 <= value <= _MOST_S:
        raise argparse.ArgumentTypeError(f"{text!r} can't be a time: seconds from 0 to {_MOST_S:.0f}")
    return value
