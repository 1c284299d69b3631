"""What a server really runs with, by its own account, beside what was asked.

The account comes from the server's arguments line, its information endpoint, its configuration lines and metrics (each
engine's `effective` module knows which); here is the common shape and the comparison. None is "the server did not say".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

SettingState = Literal["as-asked", "overridden", "ignored", "defaulted", "unknown"]
"""`overridden`: asked, and the server runs with another value; `ignored`: asked, and the server knows no such setting;
`defaulted`: not asked, chosen by the server; `unknown`: asked, and the server does not say."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """Whether and how the server drafts."""

    on: bool | None
    algorithm: str | None = None
    num_steps: int | None = None
    """Draft steps a target step: at most `num_steps + 1` tokens come of one."""
    topk: int | None = None
    draft_tokens: int | None = None
    draft_model: str | None = None
    simulated: str = ""
    """Not "": acceptance is made up, and by which setting."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Effective:
    """A running server by its own account."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    """Resolved settings under the engine's Python names, secrets masked."""
    speculation: Speculation = field(default_factory=lambda: Speculation(None))
    attention_backend: str | None = None
    draft_attention_backend: str | None = None
    cuda_graphs: bool | None = None
    context: int | None = None
    kv_tokens: int | None = None
    running_cap: int | None = None
    """Most requests that run at once, per data-parallel rank."""
    dp_size: int | None = None
    build: Mapping[str, str] = field(default_factory=dict)
    """`version`, `commit`, `torch`, `cuda`, `nccl`, `flashinfer`, `driver`: whatever was said."""
    startup_s: Mapping[str, float] = field(default_factory=dict)
    """The server's own times of its start, by part."""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SettingReport:
    key: str
    asked: Any
    effective: Any
    state: SettingState


def compare_settings(
    asked: Mapping[str, Any], effective: Mapping[str, Any], *, defaults: Mapping[str, Any] | None = None
) -> tuple[SettingReport, ...]:
    """Every setting that was asked for, and those that the server chose otherwise than its default.

    `asked` under the engine's Python names. `effective` empty: nothing was learned, so all are `unknown`. `defaults`
    (from the server's help) lets `defaulted` show what differs from them; without them nothing is listed as defaulted.
    """
    found: list[SettingReport] = []
    for key, value in asked.items():
        if not effective:
            found.append(SettingReport(key, value, None, "unknown"))
        elif key not in effective:
            found.append(SettingReport(key, value, None, "ignored"))
        else:
            state: SettingState = "as-asked" if same_value(value, effective[key]) else "overridden"
            found.append(SettingReport(key, value, effective[key], state))
    for key, default in (defaults or {}).items():
        if key not in asked and key in effective and not same_value(default, effective[key]):
            found.append(SettingReport(key, None, effective[key], "defaulted"))
    order = {"overridden": 0, "ignored": 1, "unknown": 2, "defaulted": 3, "as-asked": 4}
    return tuple(sorted(found, key=lambda r: order[r.state]))


def same_value(asked: Any, effective: Any) -> bool:
    """Whether two writings are one value: `"3"` and 3, `0.90` and 0.9, a list of one and its element, any case."""
    if isinstance(asked, list) and len(asked) == 1 and not isinstance(effective, list):
        return same_value(asked[0], effective)
    if isinstance(effective, list) and len(effective) == 1 and not isinstance(asked, list):
        return same_value(asked, effective[0])
    if isinstance(asked, Sequence) and not isinstance(asked, str) and isinstance(effective, Sequence):
        return len(asked) == len(effective) and all(map(same_value, asked, effective))
    if isinstance(asked, Mapping) and isinstance(effective, Mapping):
        return all(key in effective and same_value(value, effective[key]) for key, value in asked.items())
    if isinstance(asked, bool) or isinstance(effective, bool):
        return str(asked).lower() == str(effective).lower()
    try:
        return float(asked) == float(effective)
    except (TypeError, ValueError):
        return str(asked).lower() == str(effective).lower()


def whole(value: Any) -> int | None:
    """A whole number, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def speculation_is_off(asked: bool, found: Speculation) -> bool:
    """A draft was asked for, and the server says that it does not draft."""
    return asked and found.on is False
