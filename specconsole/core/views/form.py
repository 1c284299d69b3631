"""What the form shows: one immutable view for each state of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from specconsole.core.launching.form_command import Change, Unit
    from specconsole.core.launching.form_fields import FieldPath, FormField
    from specconsole.core.launching.form_remarks import Remark
    from specconsole.core.launching.profile import Profile
    from specconsole.errors import SpecconsoleError

Origin = Literal["own", "parent", "taken-away", "default"]
"""`own`: the form's layer says it. `parent`: inherited. `taken-away`: a parent sets it and the layer empties it.
`default`: nobody sets it, the server decides."""


@dataclass(frozen=True, slots=True)
class FieldView:
    """One field with its value."""

    field: FormField
    value: Any
    """As the server gets it; None: it is not given."""
    text: str
    """What is edited: the value as the layer has it, variables and all."""
    origin: Origin
    parent_value: Any = None
    last_value: Any = None
    """In its last launch; None where it was not given, or there is none."""
    differs_from_last: bool = False
    ran: str = ""
    """What the server resolved it to in the last launch, which did not give it either; "" where that is not known."""
    becomes: str = ""
    """What the server makes of it whatever is asked; "" where no rule says so."""
    level: str = ""
    """The gravest remark on it: `error`, `overridden`, `warning`, `note`, or ""."""


@dataclass(frozen=True, slots=True)
class FormView:
    """The form in one state."""

    fields: tuple[FieldView, ...]
    profile: Profile | None
    """None where the settings make no profile: see `error`."""
    remarks: tuple[Remark, ...] = ()
    units: tuple[Unit, ...] = ()
    against_parent: tuple[Change, ...] = ()
    against_last: tuple[Change, ...] = ()
    error: SpecconsoleError | None = None
    by_path: Mapping[FieldPath, FieldView] = field(default_factory=dict)

    def remarks_on(self, path: FieldPath) -> tuple[Remark, ...]:
        return tuple(one for one in self.remarks if path in one.paths)
