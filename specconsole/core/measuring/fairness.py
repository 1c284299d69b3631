"""May two results be compared? Checked first on each comparison, and said before any ratio is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from specconsole.core.measuring.gpu_clocks import CLOCKS_APART_RATIO, clock_mhz
from specconsole.core.measuring.result import Conditions, Result

Weight = Literal["refuses", "warns", "notes"]
"""`refuses`: a ratio would mislead and is not made; `warns`: shown with the difference; `notes`: for the record."""

SPECULATION_KEYS = ("spec", "draft", "eagle", "mtp", "ngram")
"""Settings that are expected to differ between a baseline and a draft."""


@dataclass(frozen=True, slots=True)
class Difference:
    weight: Weight
    what: str
    a: Any
    b: Any
    why: str = ""


def differences(a: Result, b: Result) -> tuple[Difference, ...]:
    """Everything that makes `a` and `b` differ other than what is being compared, gravest first."""
    ca, cb = a.conditions, b.conditions
    found: list[Difference] = []

    def unequal(weight: Weight, what: str, left: Any, right: Any, why: str = "") -> None:
        if left != right:
            found.append(Difference(weight, what, left, right, why))

    unequal("refuses", "workload", ca.workload_hash or ca.workload, cb.workload_hash or cb.workload,
            "other prompts, lengths or order")  # fmt: skip
    unequal("refuses", "sampling", dict(ca.sampling), dict(cb.sampling), "acceptance depends on it")
    unequal("refuses", "prefix cache", ca.cache, cb.cache, "warm prefixes make prefill up to 66 times faster")
    unequal("refuses", "model", ca.model, cb.model)
    unequal("refuses", "measured by", a.imported_from, b.imported_from, "other clients define the numbers otherwise")
    unequal("warns", "host", ca.host, cb.host)
    unequal("warns", "GPUs", ca.gpu_names, cb.gpu_names)
    ours, theirs = (clock_mhz([gpu for point in one.points for gpu in point.gpus]) for one in (a, b))
    if ours and theirs and abs(ours / theirs - 1.0) > CLOCKS_APART_RATIO:
        unequal("warns", "GPU clocks", f"{ours:,.0f} MHz", f"{theirs:,.0f} MHz")
    unequal("warns", "engine", ca.engine, cb.engine)
    unequal("warns", "version", ca.version, cb.version)
    unequal("warns", "client host", ca.client_host, cb.client_host)
    unequal("warns", "through the tunnel", ca.through_tunnel, cb.through_tunnel)
    unequal("warns", "running cap", _cap(ca), _cap(cb), "48 by default under speculation on SGLang, none without")
    unequal("warns", "simulated", ca.simulated, cb.simulated)
    for key in sorted({*ca.build, *cb.build}):
        unequal("warns", f"build {key}", ca.build.get(key), cb.build.get(key))
    for key in sorted({*ca.settings, *cb.settings}):
        expected = any(word in key.lower() for word in SPECULATION_KEYS)
        left, right = ca.settings.get(key), cb.settings.get(key)
        unequal("notes" if expected else "warns", f"setting {key}", left, right)
    for result in (a, b):
        if result.launches < 2:
            why = "differences between starts are not in its range"
            found.append(Difference("notes", f"{result.name}: one start", result.launches, None, why))
    order = {"refuses": 0, "warns": 1, "notes": 2}
    return tuple(sorted(found, key=lambda d: order[d.weight]))


def comparable(found: tuple[Difference, ...]) -> bool:
    """False when a ratio of the two would mislead."""
    return not any(d.weight == "refuses" for d in found)


def _cap(conditions: Conditions) -> int | None:
    return None if conditions.running_cap is None else conditions.running_cap * conditions.dp_size
