"""When to try a host again: 1, 2, 4 ... 60 s, each moved by up to a quarter so that consoles don't march in step."""

from __future__ import annotations

FIRST_S = 1.0
LONGEST_S = 60.0


def delay_s(attempt: int, jitter: float) -> float:
    """Seconds before retry number `attempt` (0 is the one right after a loss: at once).

    `jitter` is a random number from 0 to 1; the result stays within 1 and 60 s.
    """
    if attempt <= 0:
        return 0.0
    base = min(LONGEST_S, FIRST_S * 2.0 ** min(attempt - 1, 10))
    return min(LONGEST_S, max(FIRST_S, base * (0.75 + 0.5 * jitter)))
