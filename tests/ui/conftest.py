"""The window on a scripted board, at a fixed time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import textual.app
import textual.pilot

from specconsole.ui.app import ConsoleApp
from specconsole.ui.desk import Desk
from specconsole.ui.theme_files import read_themes
from specconsole.ui.window_state import WindowState
from tests.ui.fakes import NOW_MONO_S, NOW_WALL_S, FakeCommands, fake_world

THEMES, PROBLEMS = read_themes([Path(__file__).parents[2] / "themes"])


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times of day in pictures are the same everywhere."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture(autouse=True)
def idle_when_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pilot goes on as soon as the loop has nothing more to run; Textual's own wait guesses that from CPU times,
    which takes several times as long and most of all on a loaded machine."""

    async def nothing_runs(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
        ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # asyncio says it nowhere else
        quiet = 0
        while quiet < 3:
            await asyncio.sleep(0)
            quiet = 0 if ready else quiet + 1

    monkeypatch.setattr(textual.app, "wait_for_idle", nothing_runs)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", nothing_runs)


def make_app(
    commands: FakeCommands | None = None, *, state: WindowState | None = None, theme: str = "", **desk: object
) -> ConsoleApp:
    """An app over the scripted world (or `commands` and an empty board)."""
    board, scripted = fake_world()
    if "board" in desk:
        board = desk.pop("board")  # type: ignore[assignment]  # a Board
    lying = Desk(
        board,
        commands or scripted,
        monotonic_s=lambda: NOW_MONO_S,
        wall_s=lambda: NOW_WALL_S,
        **desk,  # type: ignore[arg-type]  # Desk's own fields
    )
    app = ConsoleApp(lying, THEMES, state=state)
    if theme:
        app.theme = theme
    return app


async def until(condition: Callable[[], object], what: str = "condition", limit_s: float = 60.0) -> None:
    """Waits until `condition()` is true, or fails."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come"
        await asyncio.sleep(0.01)
