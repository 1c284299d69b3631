"""What stands in the form, line by line. Pure: views in, lines out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from specconsole.core.launching.form_command import Mark
from specconsole.core.launching.form_layout import SECTIONS
from specconsole.core.launching.form_values import value_text
from specconsole.ui.formatters import fit, row, safe, spread, styled

if TYPE_CHECKING:
    from specconsole.core.launching.form_command import Change, Unit
    from specconsole.core.launching.form_remarks import Remark
    from specconsole.core.views.form import FieldView

LEVEL_MARKS: Mapping[str, tuple[str, str]] = {
    "error": ("✗", "bold $error"), "overridden": ("↻", "bold $warning"), "warning": ("!", "bold $warning"),
    "note": ("·", "$accent"), "ok": ("✓", "$success"), "": (" ", ""),
}  # fmt: skip
ORIGIN_MARKS: Mapping[str, tuple[str, str]] = {
    "own": ("●", "bold $primary"), "taken-away": ("○", "bold $primary"), "parent": (" ", ""), "default": (" ", ""),
}  # fmt: skip
MARK_CELLS = 5
"""Cursor, level, blank, origin, blank: what stands before a name."""
_NOTES_CELLS = 56
UNKNOWN_DEFAULT = "left to the server"


def label_cells(views: Sequence[FieldView], width: int) -> int:
    """How wide the names are, so that at least half of the line is left to values."""
    longest = max((len(view.field.label) for view in views), default=12)
    return max(10, min(longest, 36, (width - MARK_CELLS) * 3 // 5))


def section_line(name: str, views: Sequence[FieldView], width: int) -> Content:
    """The head of a section, with how many of its settings are this profile's own."""
    own = sum(view.origin in ("own", "taken-away") for view in views)
    given = sum(view.value is not None for view in views)
    count = f"{given} set" + (f", {own} own" if own else "") if views else "nothing yet; / adds a flag"
    head = row((f" {name} ", "bold $primary"), ("─" * max(0, width - len(name) - len(count) - 4), "$rule"))
    return spread(head, styled(f"{count} ", "$muted"), width)


def field_line(view: FieldView, width: int, label: int, *, cursor: bool, focused: bool) -> Content:
    """One setting: marks, name, value, and what else is to be known of it."""
    level, level_style = LEVEL_MARKS[view.level]
    origin, origin_style = ORIGIN_MARKS[view.origin]
    name = _name(view.field.label, label)
    name_style = "$error" if not view.field.known else "$warning" if view.field.deprecated else ""
    head = row(
        ("▸" if cursor else " ", "bold $primary"), (level, level_style), (origin, origin_style),
        ("  ", ""), (f"{name:<{label}}  ", f"bold {name_style}" if cursor else name_style),
    )  # fmt: skip
    room = max(0, width - head.cell_length)
    notes = _notes(view)
    value = _value(view, room)
    if notes.cell_length and value.cell_length + notes.cell_length + 2 <= room:
        # On a wide screen they stay near the value.
        tail = spread(value, notes, max(value.cell_length + notes.cell_length + 2, min(room - 1, _NOTES_CELLS)))
    else:
        tail = value if value.cell_length >= room - 8 else row(value, "  ", notes)
    line = fit(head + tail, width)
    if cursor:
        return line.stylize("on $selection" if focused else "on $panel")
    return line


def _name(label: str, cells: int) -> str:
    """A long name is cut where it says least: its end tells it from its neighbours."""
    short = "spec…" + label.removeprefix("speculative_")
    if len(label) > cells >= len(short) and label.startswith("speculative_"):
        return short
    return label if len(label) <= cells else f"{label[: cells // 2]}…{label[-(cells - cells // 2 - 1) :]}"


def _value(view: FieldView, room: int) -> Content:
    if view.origin == "default" or view.value is None:
        return styled(default_text(view), "$muted italic" if view.origin != "taken-away" else "$muted italic strike")
    text = value_text(view.value) or "''"
    if view.field.kind == "path" and len(text) > room > 8:
        text = "…" + text[-(room - 2) :]  # a path's end tells more than its beginning
    return styled(text, "bold $primary" if view.origin == "own" else "")


def default_text(view: FieldView) -> str:
    """What it is when nothing is given: by the help, else as the last launch ran; never guessed."""
    default = view.field.default
    if view.field.kind == "switch" and default is None:
        return "off"
    if view.ran and default in (None, "None", ""):
        return f"{view.ran} the last time"
    if len(view.field.path) == 1 and default is None:
        return "not set"
    if default in (None, "None", ""):
        return UNKNOWN_DEFAULT
    return str(default)


def _notes(view: FieldView) -> Content:
    parts: list[Content] = []
    if view.becomes:
        parts.append(styled(f"becomes {view.becomes}", "$warning"))
    if view.origin == "own" and view.parent_value is not None:
        parts.append(styled(f"was {_short(value_text(view.parent_value))}", "$muted"))
    if view.origin == "taken-away":
        parts.append(styled(f"was {_short(value_text(view.parent_value))}", "$muted"))
    if view.differs_from_last and not (view.origin == "own" and view.last_value == view.parent_value):
        parts.append(styled(f"last {_short(value_text(view.last_value)) or '–'}", "$muted"))
    if not view.field.known:
        parts.append(styled("unknown flag", "$error"))
    elif view.field.deprecated:
        parts.append(styled("deprecated", "$warning"))
    return Content("  ").join(parts) if parts else Content("")


def _short(text: str, most: int = 24) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def detail_lines(
    view: FieldView | None, remarks: Sequence[Remark], width: int, height: int, *, wrong: str = ""
) -> list[Content]:
    """The field in focus: what is wrong with it, what is said about it, and the server's own help.

    `wrong`: what can't be taken of what is being typed.
    """
    if view is None:
        return []
    field = view.field
    lines: list[Content] = []
    kind = f"{'one of ' if field.closed else ''}{_choices(field.choices)}" if field.choices else _KINDS[field.kind]
    facts = [kind]
    if field.default not in (None, "None"):
        facts.append(f"default {field.default}")
    elif field.flag and field.kind != "switch":
        facts.append("the help says no default")
    if view.ran:
        facts.append(f"the last launch ran with {view.ran}")
    name = field.flag or field.field_id
    first, *rest = textwrap.wrap(f"{name}  {' · '.join(facts)}", max(20, width), subsequent_indent="  ") or [name]
    lines.append(row((first[: len(name)], "bold"), (first[len(name) :], "$muted")))
    lines += [styled(line, "$muted") for line in rest]
    if wrong:
        lines += _wrapped(f"✗ {wrong}", width, "bold $error")
    for one in remarks:
        mark, style = LEVEL_MARKS[one.level]
        key = "  [f fixes it]" if one.fix else ""
        lines += _wrapped(f"{mark} {one.text}{key}", width, style if one.level in ("error",) else "")
    if field.deprecated and not remarks:
        lines += _wrapped(f"deprecated{f': use {field.replacement}' if field.replacement else ''}", width, "$warning")
    lines += _wrapped(
        field.help or "the server's help says nothing about it", width, "$muted" if not field.help else ""
    )
    return [fit(line, width) for line in lines[:height]]


_KINDS = {
    "switch": "a switch", "on-off": "on or off", "choice": "a choice", "int": "a whole number", "float": "a number",
    "text": "text or a number", "path": "a path on the host", "list": "values with blanks between them",
    "table": "a table as JSON",
}  # fmt: skip


def _choices(choices: Sequence[str]) -> str:
    more = f", … {len(choices) - 6} more" if len(choices) > 6 else ""
    return ", ".join(choices[:6]) + more


def _wrapped(text: str, width: int, style: str = "") -> list[Content]:
    lines = textwrap.wrap(safe(text), max(10, width), subsequent_indent="  ")
    return [styled(line, style) for line in lines]


_MARK_STYLES: Mapping[tuple[Mark, Mark], str] = {
    ("same", "same"): "", ("new", "same"): "bold $success", ("new", "new"): "bold $success underline",
    ("new", "changed"): "bold $success underline", ("changed", "same"): "bold $warning",
    ("changed", "changed"): "bold $warning underline", ("changed", "new"): "bold $warning underline",
    ("same", "new"): "underline", ("same", "changed"): "underline",
}  # fmt: skip


def command_lines(units: Sequence[Unit], width: int, here: frozenset[str] = frozenset()) -> tuple[list[Content], int]:
    """The command line, cut between flags, and the line that holds a flag of `here` (0 for none).

    Bold is not the parent's, underlined not the last launch's.
    """
    lines: list[Content] = []
    now = Content("")
    at = 0
    for unit in units:
        style = _MARK_STYLES[unit.against_parent, unit.against_last]
        if unit.name in here:
            style = f"{style} on $selection".strip()
        piece = styled(unit.text, style)
        if now.cell_length and now.cell_length + 1 + piece.cell_length > width:
            lines.append(now)
            now = Content("  ")
        if unit.name in here:
            at = len(lines)
        now = piece if not now.cell_length else now + piece if not str(now).strip() else now + Content(" ") + piece
        while now.cell_length > width > 2:
            lines.append(now[:width])
            now = now[width:]
    if now.cell_length:
        lines.append(now)
    return lines, at


def change_line(name: str, found: Sequence[Change], width: int, *, none: str) -> Content:
    """What differs from `name`, in one line that needs no colour."""
    parts: list[Content] = []
    for one in found:
        if not one.before:
            parts.append(row(("+ ", "bold $success"), f"{one.key} {_short(one.after)}"))
        elif not one.after:
            parts.append(row(("− ", "bold $error"), f"{one.key} {_short(one.before)}"))
        else:
            parts.append(
                row(f"{one.key} ", (_short(one.before), "$muted"), " → ", (_short(one.after), "bold $warning"))
            )
    head = styled(f"{name}: ", "$muted")
    return fit(head + (styled(" · ", "$muted").join(parts) if parts else styled(none, "$muted")), width)


def remark_lines(found: Sequence[Remark], width: int, selected: int) -> tuple[list[Content], list[int]]:
    """Every finding, and for each line the number of its finding."""
    lines: list[Content] = []
    owners: list[int] = []
    for number, one in enumerate(found):
        mark, style = LEVEL_MARKS[one.level]
        chosen = number == selected
        text = [styled(line) for line in textwrap.wrap(safe(one.text), max(10, width - 3))] or [Content("")]
        block = [row((f"{mark} ", style), text[0]), *(row("  ", line) for line in text[1:])]
        if one.fix:
            words = " ".join(f"{path[-1]}={value_text(value) or 'none'}" for path, value in one.fix.items())
            block.append(row("  ", ("f", "bold $primary"), (f" {_short(words, max(10, width - 6))}", "$muted")))
        elif one.try_:
            block += [row("  ", styled(line, "$muted")) for line in textwrap.wrap(safe(one.try_), max(10, width - 3))]
        block = [fit(line, width) for line in block]
        lines += [line.stylize("on $selection") for line in block] if chosen else block
        owners += [number] * len(block)
    return lines, owners


def counts_text(found: Sequence[Remark]) -> Content:
    """`✗ 1  ↻ 2  ! 1  · 3`, or that nothing stands against a start."""
    parts: list[Content] = []
    for level in ("error", "overridden", "warning", "note"):
        number = sum(one.level == level for one in found)
        if number:
            mark, style = LEVEL_MARKS[level]
            parts.append(row((f"{mark} {number}", style)))
    return Content("  ").join(parts) if parts else styled("✓ nothing against it", "$success")


def tabs_line(
    section: str, views: Mapping[str, Sequence[FieldView]], width: int
) -> tuple[Content, list[tuple[int, int]]]:
    """The sections with their numbers, own settings counted, and where each stands."""
    brief = width < 100
    parts: list[Content] = []
    spots: list[tuple[int, int]] = []
    at = 0
    for number, name in enumerate(SECTIONS, 1):
        own = sum(view.origin in ("own", "taken-away") for view in views.get(name, ()))
        bad = any(view.level == "error" for view in views.get(name, ()))
        word = _BRIEF.get(name, name) if brief else name
        text = f" {number} {word}{'●' if own else ''}{'✗' if bad else ''} "
        style = "bold $primary on $selection" if name == section else "$error" if bad else "$muted"
        parts.append(styled(text, style))
        spots.append((at, at + len(text)))
        at += len(text)
    return fit(Content("").join(parts), width), spots


_BRIEF = {"speculation": "spec", "parallelism": "parallel", "environment": "env", "raw flags": "raw"}
