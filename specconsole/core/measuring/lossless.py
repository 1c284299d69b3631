"""Did a draft change what comes out? Greedy answers to the same requests, compared.

Speculation with a strict verify gives the target's own tokens; what differs is numerics (another batch size or kernel
may turn a near tie) or a bug. The answers' hashes are always kept, their text only when the run was told to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

CONTEXT = 40


@dataclass(frozen=True, slots=True)
class Divergence:
    """One request whose answers differ."""

    body: int
    """Line of the request file."""
    at: int | None
    """First character that differs; None when the texts were not kept."""
    a: str = ""
    """From a little before that place on."""
    b: str = ""


@dataclass(frozen=True, slots=True)
class Lossless:
    """Of all requests that both runs answered."""

    compared: int
    equal: int
    differing: tuple[Divergence, ...]
    unstable: int = 0
    """Requests that one run answered several times, not always with the same text: they say nothing of a draft."""


def compare_answers(a: Iterable[Mapping[str, Any]], b: Iterable[Mapping[str, Any]]) -> Lossless:
    """Request lines of two runs of one workload."""
    ours, theirs = _by_body(a), _by_body(b)
    equal = unstable = 0
    differing: list[Divergence] = []
    common = sorted(ours.keys() & theirs.keys())
    for body in common:
        left, right = ours[body], theirs[body]
        if len({one["text_sha256"] for one in left}) > 1 or len({one["text_sha256"] for one in right}) > 1:
            unstable += 1
        elif left[0]["text_sha256"] == right[0]["text_sha256"]:
            equal += 1
        else:
            differing.append(_divergence(body, left[0].get("text"), right[0].get("text")))
    return Lossless(len(common), equal, tuple(differing), unstable)


def _by_body(lines: Iterable[Mapping[str, Any]]) -> dict[int, list[Mapping[str, Any]]]:
    found: dict[int, list[Mapping[str, Any]]] = {}
    for line in lines:
        if line.get("error") is None and line.get("text_sha256"):
            found.setdefault(int(line.get("body", 0)), []).append(line)
    return found


def _divergence(body: int, left: Any, right: Any) -> Divergence:
    if not isinstance(left, str) or not isinstance(right, str):
        return Divergence(body, None)
    shorter = min(len(left), len(right))
    at = next((n for n in range(shorter) if left[n] != right[n]), shorter)
    start = max(0, at - CONTEXT)
    return Divergence(body, at, left[start : at + CONTEXT], right[start : at + CONTEXT])
