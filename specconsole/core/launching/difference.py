"""What differs between two launches: a list of rows, each one fact of the left and of the right.

A fact that one side does not have (`--draft` not given) is not the same as one that nobody knows (its host is gone):
the first is a difference, the second can't be told. Durations and memory are never equal to the digit; they count as
different from a stated size on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from specconsole.core.launching.difference_side import LaunchSide
from specconsole.core.launching.effective import same_value

Section = Literal["launch", "flags", "settings", "versions", "environment", "phases", "memory", "results"]
SECTIONS: tuple[Section, ...] = get_args(Section)

PHASE_LEAST_S, PHASE_RATIO = 0.5, 0.1
"""Two durations differ from half a second *and* a tenth of the longer one on."""
MEMORY_LEAST_BYTES = 256 << 20
Unit = Literal["", "s", "bytes", "tok/s", "ms", "tokens/step"]


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One fact of both."""

    section: Section
    key: str
    left: Any
    """JSON value; None: it has none (`left_known`) or nobody knows."""
    right: Any
    left_known: bool = True
    right_known: bool = True
    differs: bool | None = None
    """None: can't be told, because one side is unknown."""
    unit: Unit = ""
    remark: str = ""
    """What the difference means: `1.8 times`, `within the noise`."""


@dataclass(frozen=True, slots=True)
class Difference:
    """All rows, in the order of `SECTIONS`."""

    left: LaunchSide
    right: LaunchSide
    rows: tuple[DifferenceRow, ...]
    notes: tuple[str, ...] = ()
    """What stands over the whole: hosts that could not be asked, no common workload."""

    def shown(self, *, everything: bool = False) -> tuple[DifferenceRow, ...]:
        """Those that differ or can't be told; with `everything` all."""
        return tuple(row for row in self.rows if everything or row.differs is not False)

    def to_json(self) -> dict[str, Any]:
        """The object of `diff --json` (docs/json.md)."""
        return {
            "schema": 1,
            "left": self.left.to_json(),
            "right": self.right.to_json(),
            "notes": list(self.notes),
            "rows": [asdict(row) for row in self.rows],
        }


@dataclass(slots=True)
class Table:
    """Collects rows of one section; a key of either side is one row."""

    section: Section
    rows: list[DifferenceRow] = field(default_factory=list)

    def add(
        self,
        key: str,
        left: Any,
        right: Any,
        known: tuple[bool, bool] = (True, True),
        *,
        same: Callable[[Any, Any], bool] | None = None,
        unit: Unit = "",
        remark: str = "",
    ) -> None:
        differs: bool | None = None
        if all(known):
            differs = not (left == right or (same is not None and None not in (left, right) and same(left, right)))
        self.rows.append(DifferenceRow(self.section, key, left, right, *known, differs, unit, remark))

    def add_all(
        self,
        left: Mapping[str, Any] | None,
        right: Mapping[str, Any] | None,
        *,
        same: Callable[[Any, Any], bool] | None = None,
        unit: Unit = "",
        complete: bool = True,
    ) -> None:
        """`None`: unknown as a whole. `complete` False: what a side does not name is unknown, not absent."""
        for key in dict.fromkeys((*(left or {}), *(right or {}))):
            known = (
                left is not None and (complete or key in left),
                right is not None and (complete or key in right),
            )
            self.add(key, (left or {}).get(key), (right or {}).get(key), known, same=same, unit=unit)


def difference(
    left: LaunchSide, right: LaunchSide, results: Sequence[DifferenceRow] = (), notes: Sequence[str] = ()
) -> Difference:
    """`results`: rows of the section of that name (`core.measuring.difference_results`)."""
    found: list[DifferenceRow] = []
    for table in (
        _launch(left, right), _flags(left, right), _settings(left, right), _versions(left, right),
        _environment(left, right), _phases(left, right), _memory(left, right),
    ):  # fmt: skip
        found += table.rows
    unknown = [text for side in (left, right) for text in side.unknown]
    return Difference(left, right, (*found, *results), tuple(dict.fromkeys((*notes, *unknown))))


def _launch(left: LaunchSide, right: LaunchSide) -> Table:
    table = Table("launch")
    table.add("profile", left.profile, right.profile)
    table.add("host", left.host, right.host)
    table.add("engine", left.engine, right.engine)
    table.add("outcome", left.outcome or None, right.outcome or None, (bool(left.outcome), bool(right.outcome)))
    if left.cause or right.cause:
        table.add("cause", left.cause or None, right.cause or None)
    if left.exit_status is not None or right.exit_status is not None:
        known = (left.exit_status is not None or left.runs, right.exit_status is not None or right.runs)
        table.add("exit status", left.exit_status, right.exit_status, known)
    table.add("owner", left.owner or None, right.owner or None, (bool(left.owner), bool(right.owner)))
    table.add("tags", " ".join(left.tags) or None, " ".join(right.tags) or None)
    if left.note or right.note:
        table.add("note", left.note or None, right.note or None)
    return table


def _whole(
    title: Section,
    blank: str,
    left: Mapping[str, Any] | None,
    right: Mapping[str, Any] | None,
    *,
    same: Callable[[Any, Any], bool] | None = None,
    complete: bool = True,
) -> Table:
    """A table of two mappings; `blank` is its one row where neither side knows anything."""
    table = Table(title)
    if left is None and right is None:
        table.add(blank, None, None, (False, False))
    table.add_all(left, right, same=same, complete=complete)
    return table


def _flags(left: LaunchSide, right: LaunchSide) -> Table:
    return _whole("flags", "command line", left.flags, right.flags)


def _settings(left: LaunchSide, right: LaunchSide) -> Table:
    complete = left.settings_complete and right.settings_complete
    account = "by the server's own account"
    return _whole("settings", account, left.settings, right.settings, same=same_value, complete=complete)


def _versions(left: LaunchSide, right: LaunchSide) -> Table:
    return _whole("versions", "version", left.versions or None, right.versions or None, complete=False)


def _environment(left: LaunchSide, right: LaunchSide) -> Table:
    return _whole("environment", "variables", left.environment, right.environment)


def _phases(left: LaunchSide, right: LaunchSide) -> Table:
    table = Table("phases")
    ours, theirs = left.phases_s, right.phases_s
    if ours is None and theirs is None:
        table.add("durations", None, None, (False, False), unit="s")
    for name in dict.fromkeys((*(ours or {}), *(theirs or {}))):
        # A phase that a whole reading does not have did not happen; a stay of unknown length is unknown.
        known = tuple(side is not None and not (name in side and side[name] is None) for side in (ours, theirs))
        one, other = (ours or {}).get(name), (theirs or {}).get(name)
        table.add(name, one, other, (known[0], known[1]), same=about_as_long, unit="s", remark=longer(one, other))
    one, other = left.answered_after_s, right.answered_after_s
    table.add(
        "until it answered", one, other, (one is not None, other is not None), same=about_as_long, unit="s",
        remark=longer(one, other),
    )  # fmt: skip
    return table


def _memory(left: LaunchSide, right: LaunchSide) -> Table:
    table = Table("memory")
    ours, theirs = left.memory_bytes, right.memory_bytes
    if ours is None and theirs is None:
        table.add("GPU memory", None, None, (False, False), unit="bytes")
    for name in sorted({*(ours or {}), *(theirs or {})}):
        one, other = (ours or {}).get(name), (theirs or {}).get(name)
        table.add(
            name, one, other, (one is not None, other is not None),
            same=lambda a, b: abs(a - b) < MEMORY_LEAST_BYTES, unit="bytes",
        )  # fmt: skip
    return table


def about_as_long(left: float, right: float) -> bool:
    """Whether two durations are one, as far as starts of one profile differ among themselves."""
    return abs(left - right) < max(PHASE_LEAST_S, PHASE_RATIO * max(left, right))


def longer(left: float | None, right: float | None) -> str:
    """`12.0 s longer`; "" where there is nothing to say."""
    if left is None or right is None or about_as_long(left, right):
        return ""
    return f"{abs(right - left):.1f} s {'longer' if right > left else 'shorter'}"
