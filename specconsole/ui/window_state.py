"""What the window remembers from one run to the next: selection, tabs, scroll, theme, switches."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VERSION = 1


@dataclass(slots=True)
class TabState:
    """One log tab."""

    launch_id: str
    top_line: int | None = None
    """The first line on the screen; None when it follows the end."""


@dataclass(slots=True)
class WindowState:
    """Written on leaving and now and then; a broken or strange file is as good as none."""

    theme: str = ""
    selected_launch: str = ""
    selected_host: str = ""
    pane: str = "log"
    wrap: bool = False
    fold: bool = False
    least_level: str = "debug"
    tabs: list[TabState] = field(default_factory=list)


def read_state(path: Path) -> WindowState:
    """The state, or a fresh one when there is no file that can be read."""
    try:
        data: Any = json.loads(path.read_text("utf-8"))
        if data.get("version") != VERSION:
            return WindowState()
        state = WindowState(**{key: data[key] for key in WindowState.__slots__ if key in data and key != "tabs"})
        state.tabs = [TabState(str(tab["launch_id"]), tab.get("top_line")) for tab in data.get("tabs", [])]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return WindowState()
    return state


def write_state(path: Path, state: WindowState) -> None:
    """Writes beside and renames over; a disk that refuses costs the memory, not the window."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}.new")
        beside.write_text(json.dumps({"version": VERSION, **asdict(state)}), "utf-8")
        beside.replace(path)
