"""The form without a screen: settings with undo, and for every state of them what is to be shown. Pure.

One state is one TOML table over the parents (`form_layer`); a step makes another table, so undo is a list of tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from specconsole.core.launching import form_layer
from specconsole.core.launching.form_command import changes, command_units
from specconsole.core.launching.form_fields import FieldPath, FormField, form_fields
from specconsole.core.launching.form_layer import Base, Table
from specconsole.core.launching.form_remarks import LEVELS, Learned, Remark, remarks
from specconsole.core.launching.form_values import read_value, stepped, value_text
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.profile_table import escaped
from specconsole.core.views.form import FieldView, FormView, Origin
from specconsole.errors import SpecconsoleError

_STEPS_KEPT = 500
_NOT_OF_A_LAUNCH = ("port", "host", "description", "tags", "engine_version")
"""What a launch's record does not say as it was asked: its port may have been picked, its host is where it is."""


@dataclass(frozen=True, slots=True)
class LastLaunch:
    """The newest launch of the same profile."""

    launch_id: str
    profile: Profile
    """As it was launched."""
    host: str
    started_at_s: float | None = None
    """Host's wall clock; None while unknown."""
    effective: Mapping[str, Any] | None = None
    """Settings as the server resolved them; None where it did not say."""


@dataclass(frozen=True, slots=True)
class Step:
    """One state in the list of undo."""

    own: Table
    what: str
    """What led to it: one line."""


class FormModel:
    """`own` is the layer that is edited; `saved` what stands in its file ({} over parents: nothing of its own)."""

    def __init__(
        self, base: Base, own: Table, *, saved: Table | None = None, last: LastLaunch | None = None,
        python: str | None = None,
    ) -> None:  # fmt: skip
        self.base = base
        self.last = last
        self.python = python
        self.learned = Learned()
        self._saved: Table = own if saved is None else saved
        self._steps = [Step(own, "as it was opened")]
        self._at = 0
        self._shown: list[FieldPath] = []
        """Fields that the person has added and not filled yet."""
        self._view: FormView | None = None

    # ---------------------------------------------------------------- state

    @property
    def own(self) -> Table:
        return self._steps[self._at].own

    @property
    def unsaved(self) -> bool:
        """Whether what is shown is more than what the file says."""
        return self.own != self._saved

    @property
    def view(self) -> FormView:
        if self._view is None:
            self._view = self.view_of(self.own)
        return self._view

    def learn(self, learned: Learned) -> None:
        """What was read of the server's flags and the models' files."""
        self.learned = learned
        self._view = None

    def move_to(self, base: Base) -> None:
        """The same layer over another base: another host, or other parents."""
        self.base = base
        self._view = None

    def note_saved(self) -> None:
        self._saved = self.own

    # ---------------------------------------------------------------- steps

    def replace(self, own: Table, what: str) -> bool:
        """A new state; False where it is the one that there is."""
        if own == self.own:
            return False
        del self._steps[self._at + 1 :]
        self._steps.append(Step(own, what))
        del self._steps[:-_STEPS_KEPT]
        self._at = len(self._steps) - 1
        self._view = None
        return True

    def undo(self) -> str:
        """Goes one step back; what was undone, or "" at the beginning."""
        if self._at == 0:
            return ""
        what = self._steps[self._at].what
        self._at -= 1
        self._view = None
        return what

    def redo(self) -> str:
        """Goes one step forward again; what was done, or ""."""
        if self._at + 1 == len(self._steps):
            return ""
        self._at += 1
        self._view = None
        return self._steps[self._at].what

    def show(self, path: FieldPath) -> None:
        """Puts a setting or a variable into the form that is not set yet."""
        if path not in self._shown:
            self._shown.append(path)
            self._view = None

    # ---------------------------------------------------------------- edits

    def with_text(self, field: FormField, text: str) -> tuple[Table, str]:
        """The layer with a text typed into a field, and what is wrong with the text ("" for nothing)."""
        read = read_value(field, text)
        if read.error:
            hint = f"; did you mean {read.instead}?" if read.instead else ""
            return self.own, f"{read.error}{hint}"
        return self._with(field, read.value), ""

    def _with(self, field: FormField, value: Any) -> Table:
        """`value` None leaves the field empty: back to the parent's where the layer says something, else to nothing."""
        base, own = self.base, self.own
        if value is None:
            return form_layer.take_away(base, own, field.path)
        if field.off_name:
            # `--x` and `--no-x` are two settings of which one is given.
            opposite = ("args", field.off_name if value is not False else field.name)
            mine = ("args", field.name if value is not False else field.off_name)
            return form_layer.put(base, form_layer.take_away(base, own, opposite), mine, True)
        if value is False and field.kind == "switch" and len(field.path) == 2:
            return form_layer.take_away(base, own, field.path)  # a bare flag is off by being left out
        if self._is_parents(field.path, value):
            return form_layer.drop(base, own, field.path)
        return form_layer.put(base, own, field.path, value)

    def _is_parents(self, path: FieldPath, value: Any) -> bool:
        inherited = form_layer.value_in(self.base.profile, path)
        return inherited is not None and type(inherited) is type(value) and inherited == value

    def set_text(self, field: FormField, text: str) -> str:
        """Takes a typed text; what is wrong with it, or ""."""
        own, wrong = self.with_text(field, text)
        if not wrong:
            self.replace(own, f"{field.label} {text.strip() or 'emptied'}")
        return wrong

    def step(self, field: FormField, by: int) -> bool:
        """The next choice, the other switch, the next number; False where there is none."""
        value = stepped(field, self._value(field), by)
        if value is None:
            return False
        return self.replace(self._with(field, value), f"{field.label} {value_text(value)}")

    def _value(self, field: FormField) -> Any:
        now = self.view.by_path.get(field.path)
        return now.value if now is not None else None

    def put_back(self, field: FormField) -> str:
        """One step towards nothing: the layer's word goes, then the parent's; then the parent's comes back."""
        own, base = self.own, self.base
        paths = [field.path, *([("args", field.off_name)] if field.off_name else [])]
        if any(form_layer.is_unset(base, own, path) or _says(base, own, path) for path in paths):
            left = own
            for path in paths:
                left = form_layer.drop(base, left, path)
            what = f"{field.label} back to its parent's" if base.parents else f"{field.label} left to the server"
        else:
            left = own
            for path in paths:
                left = form_layer.take_away(base, left, path)
            what = f"{field.label} taken away"
        return what if self.replace(left, what) else ""

    def apply(self, remark: Remark) -> bool:
        """Makes the change that a remark proposes."""
        own = self.own
        for path, value in remark.fix.items():
            if value is None:
                own = form_layer.take_away(self.base, own, path)
            else:
                own = form_layer.put(self.base, own, path, escaped(value) if path[0] != "env" else value)
        return bool(remark.fix) and self.replace(own, f"fix: {remark.text[:60]}")

    # ---------------------------------------------------------------- views

    def view_of(self, own: Table) -> FormView:
        """What would be shown for a layer; the present one's is `view`."""
        try:
            profile = form_layer.seen(self.base, own)
        except SpecconsoleError as broken:
            return self._broken(own, broken)
        fields = form_fields(profile, self.learned.index, self._more(profile))
        values = {one.path: _value_of(profile, one) for one in fields}
        found = remarks(profile, fields, self.learned, values)
        last = self.last.profile if self.last is not None else None
        error = None
        try:
            units = command_units(profile, self.base.profile, last, self.python)
        except SpecconsoleError as refused:
            units, error = (), refused
        views = tuple(self._field_view(own, one, values[one.path], found) for one in fields)
        return FormView(
            views, profile, found, units, changes(self.base.profile, profile),
            changes(last, profile, without=_NOT_OF_A_LAUNCH), error, {one.field.path: one for one in views},
        )  # fmt: skip

    def _broken(self, own: Table, error: SpecconsoleError) -> FormView:
        """Settings that make no profile: the parent's fields, so that what is wrong can be mended."""
        profile = self.base.profile or Profile(self.base.name, str(own.get("engine", "other")))
        more = [*self._more(profile), *(("args", name) for name in own.get("args", {})),
                *(("env", name) for name in own.get("env", {}))]  # fmt: skip
        fields = form_fields(profile, self.learned.index, more)
        views = tuple(
            self._field_view(own, one, form_layer.own_value(self.base, own, one.path) or _value_of(profile, one), ())
            for one in fields
        )
        return FormView(views, None, (), (), (), (), error, {one.field.path: one for one in views})

    def _more(self, profile: Profile) -> list[FieldPath]:
        parent = self.base.profile
        theirs = [("args", name) for name in parent.args] if parent is not None else []
        theirs += [("env", name) for name in parent.env] if parent is not None else []
        mine = {name.lstrip("-").replace("-", "_") for name in profile.args}
        return [path for path in (*theirs, *self._shown) if path[0] != "args" or path[1].replace("-", "_") not in mine]

    def _field_view(self, own: Table, field: FormField, value: Any, found: tuple[Remark, ...]) -> FieldView:
        base, last = self.base, self.last
        mine = form_layer.own_value(base, own, field.path)
        inherited = _value_of(base.profile, field) if base.profile is not None else None
        origin: Origin = "default"
        if len(field.path) > 2:
            origin = "default" if value is None else "parent" if value == inherited else "own"
            if value is None and inherited is not None:
                origin = "taken-away"
        elif mine is not None or (field.off_name and _says(base, own, ("args", field.off_name))):
            origin = "own"
        elif value is not None:
            origin = "parent"
        elif inherited is not None:
            origin = "taken-away"
        was = _value_of(last.profile, field) if last is not None else None
        levels = [one.level for one in found if field.path in one.paths]
        becomes = next((one.becomes[field.path] for one in found if field.path in one.becomes), "")
        text = value_text(mine if origin == "own" and len(field.path) < 3 and mine is not None else escaped(value))
        return FieldView(
            field, value, text, origin, inherited, was,
            last is not None and was != value and field.path[0] not in _NOT_OF_A_LAUNCH,
            self._ran(field, was), becomes, min(levels, key=LEVELS.index) if levels else "",
        )  # fmt: skip

    def _ran(self, field: FormField, was: Any) -> str:
        """By the server's own account of its settings (its Python names)."""
        effective = self.last.effective if self.last is not None else None
        if not effective or was is not None or field.path[0] != "args" or len(field.path) != 2:
            return ""
        flag = self.learned.index.find(field.flag) if self.learned.index is not None and field.flag else None
        names = [field.name, *(alias.lstrip("-").replace("-", "_") for alias in (flag.aliases if flag else ()))]
        value = next((effective[name] for name in names if effective.get(name) is not None), None)
        return value_text(value)


def _says(base: Base, own: Table, path: FieldPath) -> bool:
    return form_layer.own_value(base, own, path) is not None


def _value_of(profile: Profile | None, field: FormField) -> Any:
    value = form_layer.value_in(profile, field.path)
    if value is None and field.off_name and form_layer.value_in(profile, ("args", field.off_name)):
        return False
    return value
