"""What a server really runs with, by its own account, beside what was asked.

The account comes from the server's arguments line, its information endpoint, its configuration lines and metrics (each
engine's `effective` module knows which); here is the common shape and the comparison. None is "the server did not say".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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


@dataclass(frozen=True, slots=True)
class Said:
    """What is known of a launch before its server is asked: what an engine's account begins with."""

    args: Mapping[str, Any] = field(default_factory=dict)
    """Settings as its arguments line printed them."""
    version: str | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)
    """The launch's own settings."""
    env: Mapping[str, str] = field(default_factory=dict)
    draft_model: str | None = None
    lines: tuple[str, ...] = ()
    """Lines of its log that hold one of the engine's account words, the newest last."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How an engine's account is read and compared."""

    log_words: tuple[str, ...]
    """A line with one of these belongs to the account."""
    aliases: Mapping[str, tuple[str, ...]]
    """A setting's name -> names that the account may use for it, the first that is there counts."""
    worth_telling: tuple[str, ...]
    """Settings that are listed although nobody asked for them."""
    complete: bool
    """Whether the account names every setting there is."""


@dataclass(frozen=True, slots=True)
class Account:
    """What is kept of a launch once it answers: how it runs, and what became of what was asked."""

    effective: Effective
    reports: tuple[SettingReport, ...] = ()
    speculation_off: bool = False
    """A draft was asked for, and the server says that it does not draft."""


def compare_settings(
    asked: Mapping[str, Any],
    effective: Mapping[str, Any],
    *,
    defaults: Mapping[str, Any] | None = None,
    worth_telling: Iterable[str] = (),
    complete: bool = True,
) -> tuple[SettingReport, ...]:
    """Every setting that was asked for, and those that the server chose itself.

    `asked` under the engine's Python names. `effective` empty: nothing was learned, so all are `unknown`. `complete`
    False: the account names some settings only, so one that is not in it is `unknown`, not `ignored`. `defaults` (from
    the server's help) lets `defaulted` show what differs from them; `worth_telling` names settings that are listed as
    `defaulted` whatever their default is.
    """
    found: list[SettingReport] = []
    for key, value in asked.items():
        if not effective or (key not in effective and not complete):
            found.append(SettingReport(key, value, None, "unknown"))
        elif key not in effective:
            found.append(SettingReport(key, value, None, "ignored"))
        else:
            state: SettingState = "as-asked" if same_value(value, effective[key]) else "overridden"
            found.append(SettingReport(key, value, effective[key], state))
    for key, default in (defaults or {}).items():
        if key not in asked and key in effective and not same_value(default, effective[key]):
            found.append(SettingReport(key, None, effective[key], "defaulted"))
    told = {report.key for report in found}
    chosen = [key for key in worth_telling if key not in told and effective.get(key) not in (None, "", False)]
    found += [SettingReport(key, None, effective[key], "defaulted") for key in chosen]
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


def judge(
    asked: Mapping[str, Any],
    found: Effective,
    words: Vocabulary,
    *,
    drafts: bool,
    build: Mapping[str, str] | None = None,
) -> Account:
    """The whole account. `asked` as a profile writes it (dashes or underscores); `drafts`: speculation was asked for.

    `build` is what the host's own Python says of the installation; the server's own word on its version stays.
    """
    named: dict[str, Any] = {}
    for name, value in asked.items():
        plain = name.lstrip("-").replace("-", "_")
        key = next((alias for alias in words.aliases.get(plain, ()) if alias in found.settings), plain)
        named[key] = from_json(value)
    reports = compare_settings(
        named, found.settings, worth_telling=words.worth_telling, complete=words.complete and bool(found.settings)
    )
    merged = {**(build or {}), **found.build}
    return Account(replace(found, build=merged), reports, speculation_is_off(drafts, found.speculation))


def from_json(value: Any) -> Any:
    """A table or list that was given as JSON text; anything else as it is."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def asked_for_speculation(asked: Mapping[str, Any], draft_model: str | None) -> bool:
    """Whether a profile's settings want drafts, in the words of any engine."""
    plain = {name.lstrip("-").replace("-", "_"): value for name, value in asked.items()}
    if draft_model:
        return True
    for name in ("speculative_algorithm", "speculative_config", "spec_method", "spec_type", "model_draft", "md"):
        if plain.get(name) not in (None, "", False, "none", "NONE"):
            return True
    return False


def encode_account(account: Account) -> bytes:
    """One line of JSON; `decode_account` reads it."""
    return json.dumps({"schema": 1, **asdict(account)}, default=str).encode() + b"\n"


def decode_account(data: bytes) -> Account | None:
    """None for what is no account of this schema."""
    try:
        shape = json.loads(data)
        if shape["schema"] != 1:
            return None
        told = shape["effective"]
        told["speculation"] = Speculation(**told["speculation"])
        told["sources"] = tuple(told["sources"])
        reports = tuple(SettingReport(**report) for report in shape["reports"])
        return Account(Effective(**told), reports, bool(shape["speculation_off"]))
    except (ValueError, KeyError, TypeError):
        return None


def whole(value: Any) -> int | None:
    """A whole number, or None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def speculation_is_off(asked: bool, found: Speculation) -> bool:
    """A draft was asked for, and the server says that it does not draft."""
    return asked and found.on is False
