"""Themes as data: `themes/*.toml`, ours and the person's, checked when they are read.

A file has `name`, `dark`, `[colors]` (Textual's theme colours) and `[phases]` (one colour a start-up phase, for
the gutter and the strip). Textual accepts a bad colour until CSS is built, so every theme is built once here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import Theme

from specconsole.core.reading.phase_names import PHASES
from specconsole.errors import BadInputError
from specconsole.ui.widgets.gpu_lines import GpuLevels

COLORS = (
    "primary", "secondary", "warning", "error", "success", "accent", "foreground", "background", "surface", "panel",
)  # fmt: skip
PHASE_VARIABLES = tuple(f"phase-{phase}" for phase in PHASES)
DEFAULT_THEME = "night"
"""Used until the person chooses one."""

VARIABLE_DEFAULTS: dict[str, str] = {
    **dict.fromkeys(PHASE_VARIABLES, "#7a8a99"),
    "muted": "#8a8f98",
    "match": "#e5c07b",
    "selection": "#33415c",
    "rule": "#3b4252",
}
"""Given to Textual's own themes, so that switching to one of them works."""


def read_theme(path: Path) -> Theme:
    """One theme. Raises BadInputError with the file and the key at fault."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"not TOML: {error}", where=str(path)) from error
    except OSError as error:
        raise BadInputError(error.strerror or "can't be read", where=str(path)) from error
    unknown = set(data) - {"name", "dark", "luminosity_spread", "text_alpha", "colors", "phases", "variables", "levels"}
    if unknown:
        raise BadInputError(f"unknown key {min(unknown)!r}", where=str(path))
    name = data.get("name")
    if not isinstance(name, str) or not name.replace("-", "").isalnum():
        raise BadInputError("`name` must be letters, digits and dashes", where=str(path))
    colors = _colors(data.get("colors", {}), COLORS, "colors", path)
    phases = _colors(data.get("phases", {}), PHASES, "phases", path)
    extra = _colors(data.get("variables", {}), tuple(VARIABLE_DEFAULTS), "variables", path)
    levels = _levels(data.get("levels", {}), path)
    if "primary" not in colors:
        raise BadInputError("[colors] needs at least `primary`", where=str(path))
    theme = Theme(
        name=name,
        dark=bool(data.get("dark", True)),
        luminosity_spread=float(data.get("luminosity_spread", 0.15)),
        text_alpha=float(data.get("text_alpha", 0.95)),
        variables={f"phase-{phase}": color for phase, color in phases.items()}
        | extra
        | levels
        | _widget_variables(extra, colors),
        primary=colors.pop("primary"),
    )
    for key, color in colors.items():
        setattr(theme, key, color)
    try:
        theme.to_color_system().generate()
    except (ColorParseError, ValueError) as error:
        raise BadInputError(f"can't be built: {error}", where=str(path)) from error
    return theme


def _widget_variables(extra: dict[str, str], colors: dict[str, str]) -> dict[str, str]:
    # Textual's own widgets (inputs, option lists, scroll bars) follow ours.
    found = {"input-selection-background": extra["selection"]} if "selection" in extra else {}
    if "muted" in extra and "panel" in colors:
        found |= {"scrollbar": extra["muted"], "scrollbar-hover": colors["primary"],
                  "scrollbar-active": colors["primary"],
                  **dict.fromkeys(("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active",
                                   "scrollbar-corner-color"), colors["panel"])}  # fmt: skip
    return found


def _levels(table: Any, path: Path) -> dict[str, str]:
    """`[levels]`: from where a GPU's figure is a warning or an error, as `hot-c = 85`."""
    names = [name.replace("_", "-") for name in GpuLevels._fields]
    if not isinstance(table, dict):
        raise BadInputError("[levels] must be a table", where=str(path))
    for key, value in table.items():
        if key not in names:
            raise BadInputError(f"[levels] has no {key!r}", where=str(path), try_=", ".join(names))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadInputError(f"[levels] {key}: a number is wanted", where=str(path))
    return {f"gpu-{key}": str(value) for key, value in table.items()}


def _colors(table: Any, allowed: Iterable[str], section: str, path: Path) -> dict[str, str]:
    if not isinstance(table, dict):
        raise BadInputError(f"[{section}] must be a table", where=str(path))
    found: dict[str, str] = {}
    for key, value in table.items():
        if key not in allowed:
            raise BadInputError(f"[{section}] has no {key!r}", where=str(path), try_=", ".join(allowed))
        if not isinstance(value, str):
            raise BadInputError(f"[{section}] {key}: a colour is wanted", where=str(path))
        try:
            Color.parse(value)
        except ColorParseError as error:
            raise BadInputError(f"[{section}] {key}: {value!r} is no colour", where=str(path)) from error
        found[key] = value
    return found


def read_themes(folders: Iterable[Path]) -> tuple[list[Theme], list[BadInputError]]:
    """All themes of the folders, a later one of the same name replacing an earlier one, and what was wrong."""
    themes: dict[str, Theme] = {}
    problems: list[BadInputError] = []
    for folder in folders:
        if not folder.is_dir():
            continue
        for path in sorted(folder.glob("*.toml")):
            try:
                theme = read_theme(path)
            except BadInputError as error:
                problems.append(error)
            else:
                themes[theme.name] = theme
    return list(themes.values()), problems


def read_named(folders: Iterable[Path], name: str) -> Theme | None:
    """The theme `name` by its file's name, for a window that shows it before it reads the others; a later folder's
    wins. None when no file of that name holds that theme whole: `read_themes` says why.
    """
    for folder in reversed(list(folders)):
        try:
            theme = read_theme(folder / f"{name}.toml")
        except BadInputError:
            continue
        if theme.name == name:
            return theme
    return None
