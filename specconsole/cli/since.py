"""`--since 2d`, `--since 2026-11-28`: a moment in the past, as a person writes it."""

from __future__ import annotations

import argparse
import re
import time
from datetime import datetime, timedelta

_UNITS_S = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def since(text: str) -> float:
    """Seconds since the epoch. Raises argparse.ArgumentTypeError."""
    word = text.strip().lower()
    if found := re.fullmatch(r"(\d{1,5})([mhdw])", word):
        return time.time() - int(found[1]) * _UNITS_S[found[2]]
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    if word in ("today", "yesterday"):
        return (today - timedelta(days=word == "yesterday")).timestamp()
    try:
        return datetime.fromisoformat(text.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment: 90m, 3h, 2d, 1w, today, yesterday, 2026-11-28 or 2026-11-28T09:30"
        ) from None
