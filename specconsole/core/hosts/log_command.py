"""Commands that print a log and go on (`docker logs -f`): how one is started again where it broke off. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

_BACK_S = 10.0
"""So much before the last byte is asked for again: clocks differ, and lines are stamped before they arrive."""


def restarted(argv: Sequence[str], last_s: float | None) -> tuple[str, ...]:
    """The command for going on after `last_s` (host's wall clock); as it stands when nothing was read yet."""
    if last_s is None or not argv:
        return tuple(argv)
    name = argv[0].rsplit("/", 1)[-1]
    since_s = max(0.0, last_s - _BACK_S)
    words = _without_since(argv)
    if name in ("docker", "podman", "nerdctl") and "logs" in words:
        at = words.index("logs") + 1
        return (*words[:at], "--since", f"{since_s:.0f}", *words[at:])
    if name == "kubectl" and "logs" in words:
        at = words.index("logs") + 1
        stamp = datetime.fromtimestamp(since_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return (*words[:at], f"--since-time={stamp}", *words[at:])
    if name == "journalctl":
        return (words[0], "--since", f"@{since_s:.0f}", *words[1:])
    return tuple(argv)


def once(argv: Sequence[str], last_s: float | None) -> tuple[str, ...]:
    """The same without going on: it prints what there is and ends."""
    kept: list[str] = []
    for word in restarted(argv, last_s):
        if word in ("-f", "--follow", "-F"):
            continue
        # `-tf` of `docker logs -tf NAME`: the other letters stay.
        short = word.startswith("-") and not word.startswith("--") and word[1:].isalpha() and "f" in word
        kept.append(word.replace("f", "", 1) if short and kept and kept[0] != "tail" else word)
    return tuple(kept)


def _without_since(argv: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in argv:
        if skip:
            skip = False
        elif word in ("--since", "--since-time", "--tail", "-n"):
            skip = True
        elif not word.startswith(("--since=", "--since-time=", "--tail=", "-n")) or word == "-n":
            kept.append(word)
    return kept
