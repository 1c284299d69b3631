"""What the form writes: one layer of a profile, the TOML table that goes over its parents. Pure, every step makes a new
table.

What is shown is what `inherit.resolve` makes of this table and the parents: the same that a launch of the saved file
would be. Where a parent sets a value for the host in the form alone, the form's value goes into that host's part too:
anywhere else it would change nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specconsole.core.launching.form_fields import FieldPath
from specconsole.core.launching.inherit import Layer, resolve
from specconsole.core.launching.profile import Profile
from specconsole.core.launching.profile_table import escaped, profile_table

Table = Mapping[str, Any]

NEVER_INHERITED = ("name", "extends", "hosts")


@dataclass(frozen=True, slots=True)
class Base:
    """What the form's layer goes over, for one host."""

    name: str
    """What a launch of it is called until it is saved."""
    host: str
    parents: tuple[Layer, ...] = ()
    """The nearest first; () for a profile that stands alone."""
    profile: Profile | None = field(default=None, compare=False)
    """The parents as a profile, on this host; None without any."""

    def set_on_host(self, path: FieldPath) -> bool:
        """Whether a parent's part for this host sets it."""
        return any(layer.has(("hosts", self.host, *path)) for layer in self.parents)


def base_of(name: str, host: str, parents: Sequence[Layer]) -> Base:
    """Raises BadInputError where the parents are no profile."""
    profile = resolve(parents).on(host) if parents else None
    return Base(name, host, tuple(parents), profile)


def seen(base: Base, own: Table) -> Profile:
    """The profile that the layer makes on the base's host. Raises BadInputError."""
    layer = Layer(base.name, own, "", "the form")
    return resolve([layer, *base.parents]).on(base.host)


def value_in(profile: Profile | None, path: FieldPath) -> Any:
    """The value of a field in a profile; None where it is not set."""
    if profile is None:
        return None
    table = profile_table(profile)
    if path == ("bind",):
        return profile.bind if profile.bind != "127.0.0.1" else None
    node: Any = table
    for part in path:
        if not isinstance(node, Mapping) or part not in node:
            return None
        node = node[part]
    return node


def own_value(base: Base, own: Table, path: FieldPath) -> Any:
    """What the layer itself says, as it is written there; None where it says nothing."""
    for full in (("hosts", base.host, *path), path):
        node: Any = own
        for part in full:
            node = node.get(part) if isinstance(node, Mapping) else None
        if node is not None:
            return node
    return None


def is_unset(base: Base, own: Table, path: FieldPath) -> bool:
    """Whether the layer takes a parent's value away."""
    item = ".".join(path[:2])
    host_part = own.get("hosts", {}).get(base.host, {})
    return item in own.get("unset", ()) or item in host_part.get("unset", ())


def put(base: Base, own: Table, path: FieldPath, value: Any) -> dict[str, Any]:
    """The layer with a value set. `value` as it is to stand in the file (variables in it are variables)."""
    if len(path) > 2:
        return _put_inside(base, own, path, value)
    cleared = _without_unset(base, own, path)
    if base.set_on_host(path):
        return _deep_put(cleared, ("hosts", base.host, *path), value)
    return _deep_put(cleared, path, value)


def _put_inside(base: Base, own: Table, path: FieldPath, value: Any) -> dict[str, Any]:
    """A key inside a setting that is a table: settings are inherited whole, so the layer holds the whole table."""
    head = path[:2]
    inside = dict(_table_at(base, own, head))
    if value is None:
        inside.pop(path[2], None)
    else:
        inside[path[2]] = value
    inherited = value_in(base.profile, head)
    if inside == (escaped(inherited) if inherited is not None else {}):
        return drop(base, own, head)
    if not inside:
        return take_away(base, own, head)
    return put(base, own, head, inside)


def _table_at(base: Base, own: Table, path: FieldPath) -> Table:
    mine = own_value(base, own, path)
    if isinstance(mine, Mapping):
        return mine
    if is_unset(base, own, path):
        return {}
    inherited = value_in(base.profile, path)
    shape: Table = escaped(inherited) if isinstance(inherited, Mapping) else {}
    return shape


def drop(base: Base, own: Table, path: FieldPath) -> dict[str, Any]:
    """The layer without a word about a field: back to the parent's value."""
    if len(path) > 2:
        inherited = value_in(base.profile, path)
        return _put_inside(base, own, path, escaped(inherited) if inherited is not None else None)
    cleared = _without_unset(base, own, path)
    for full in (("hosts", base.host, *path), path):
        cleared = _deep_drop(cleared, full)
    return cleared


def take_away(base: Base, own: Table, path: FieldPath) -> dict[str, Any]:
    """The layer in which a field is empty: not set here, and not inherited."""
    if len(path) > 2:
        return _put_inside(base, own, path, None)
    cleared = drop(base, own, path)
    if value_in(base.profile, path) is None or path[0] in NEVER_INHERITED:
        return cleared
    item = ".".join(path)
    where: FieldPath = ("hosts", base.host, "unset") if base.set_on_host(path) else ("unset",)
    node: Any = cleared
    for part in where:
        node = node.get(part, {}) if isinstance(node, Mapping) else {}
    return _deep_put(cleared, where, [*(node or ()), item])


def _without_unset(base: Base, own: Table, path: FieldPath) -> dict[str, Any]:
    item = ".".join(path[:2])
    found = dict(own)
    for where in (("unset",), ("hosts", base.host, "unset")):
        node: Any = found
        for part in where:
            node = node.get(part) if isinstance(node, Mapping) else None
        if node and item in node:
            left = [one for one in node if one != item]
            found = _deep_put(found, where, left) if left else _deep_drop(found, where)
    return found


def _deep_put(table: Table, path: FieldPath, value: Any) -> dict[str, Any]:
    found = dict(table)
    if len(path) == 1:
        found[path[0]] = value
    else:
        inner = found.get(path[0], {})
        found[path[0]] = _deep_put(inner if isinstance(inner, Mapping) else {}, path[1:], value)
    return found


def _deep_drop(table: Table, path: FieldPath) -> dict[str, Any]:
    """Without a key, and without the tables that it leaves empty."""
    found = dict(table)
    if path[0] not in found:
        return found
    if len(path) == 1:
        del found[path[0]]
        return found
    inner = found[path[0]]
    if isinstance(inner, Mapping):
        left = _deep_drop(inner, path[1:])
        if left:
            found[path[0]] = left
        else:
            del found[path[0]]
    return found


def layer_of(base: Base, wanted: Profile) -> dict[str, Any]:
    """The layer over the base that makes `wanted`: what they do not share. Secrets are left as the parents have them:
    where a value comes from is never taken over from a launch."""
    theirs = profile_table(base.profile) if base.profile is not None else {}
    mine = profile_table(wanted)
    own: dict[str, Any] = {"extends": base.parents[0].name} if base.parents else {}
    for key in dict.fromkeys([*theirs, *mine]):
        if key in ("name", "secrets", "host"):
            continue
        if key in ("args", "env", "health"):
            for inner in dict.fromkeys([*theirs.get(key, {}), *mine.get(key, {})]):
                own = _taken_over(base, own, (key, inner), theirs.get(key, {}).get(inner), mine.get(key, {}).get(inner))
        else:
            own = _taken_over(base, own, (key,), theirs.get(key), mine.get(key))
    return own


def _taken_over(base: Base, own: Table, path: FieldPath, theirs: Any, mine: Any) -> dict[str, Any]:
    if theirs == mine:
        return dict(own)
    # Alone it has to say it all; over a parent, a description of old is no change.
    if path[0] in ("description", "tags", "engine_version") and base.parents:
        return dict(own)
    return take_away(base, own, path) if mine is None else put(base, own, path, escaped(mine))
