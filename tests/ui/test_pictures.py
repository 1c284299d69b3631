"""Pictures of every screen in two sizes and every theme, compared with those that were looked at.

`SPECCONSOLE_UPDATE_PICTURES=1 pytest tests/ui/test_pictures.py` writes them anew: look at each before committing.
A picture belongs to the Textual version that made it.
"""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest
import textual
from textual.pilot import Pilot
from textual.widgets import Input

from specconsole.core.views.host import HostView
from specconsole.core.views.question import Question
from specconsole.services.board import Board
from specconsole.services.commands import FoundServer
from specconsole.services.looking_only import LookingOnly
from specconsole.ui.app import ConsoleApp
from specconsole.ui.forms.bench_form import BenchForm
from tests.ui.conftest import THEMES, make_app, until
from tests.ui.fakes import BytesLines, FakeCommands, log_bytes, results, stalled

PICTURES = Path(__file__).parent / "pictures"
MADE_WITH = "8.2.8"
UPDATE = bool(os.environ.get("SPECCONSOLE_UPDATE_PICTURES"))
SIZES = ((80, 24), (160, 48))
OWN_THEMES = sorted(theme.name for theme in THEMES)

pytestmark = pytest.mark.skipif(textual.__version__ != MADE_WITH, reason=f"pictures were made with Textual {MADE_WITH}")


def picture(app: ConsoleApp) -> str:
    """The screen as SVG, without the ids that differ from run to run."""
    return re.sub(r"terminal-\d+", "terminal", app.export_screenshot(simplify=True))


class Album:
    """Compares pictures one by one and says at the end which differ; a differing one is kept beside for looking."""

    def __init__(self, kept: Path) -> None:
        self._kept = kept
        self.differ: list[str] = []

    def add(self, name: str, app: ConsoleApp) -> None:
        path = PICTURES / f"{name}.svgz"
        seen = picture(app)
        if UPDATE:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(gzip.compress(seen.encode(), mtime=0))
        elif not path.exists() or gzip.decompress(path.read_bytes()).decode() != seen:
            (self._kept / f"{name}.svg").write_text(seen, "utf-8")
            self.differ.append(name)


async def settle(pilot: Pilot[None]) -> None:
    """Samples the board until two pictures in a row are the same."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    last = ""
    for _ in range(50):
        app.screen_of_all.refresh_facts()
        app.tick()
        for field in app.screen.query(Input):
            field.cursor_blink = False
            field._cursor_visible = True
        await pilot.pause()
        now = picture(app)
        if now == last and app.screen.size.width:
            return
        last = now
    pytest.fail("the picture does not come to rest")


@pytest.mark.may_block("reads and writes pictures")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_console_in_every_theme(size: tuple[int, int], tmp_path: Path) -> None:
    """One window, which changes its theme as a person does."""
    album = Album(tmp_path)
    app = make_app()
    app.desk.board.publish_launch(stalled())

    async def in_every_theme(name: str) -> None:
        for theme in OWN_THEMES:
            app.theme = theme
            await settle(pilot)
            album.add(f"{name}-{size[0]}x{size[1]}-{theme}", app)

    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await in_every_theme("loading")
        app.desk.select("L3")
        await settle(pilot)
        await pilot.press("exclamation_mark")
        await in_every_theme("failed")
        app.desk.board.publish_results(results())
        app.desk.select("L2")
        await pilot.press("3" if size[0] < 110 else "2")
        await in_every_theme("answers")
    assert not album.differ, f"differ, see {tmp_path}"


@pytest.mark.may_block("reads and writes pictures")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_other_screen(size: tuple[int, int], tmp_path: Path) -> None:
    album = Album(tmp_path)
    app = make_app()
    commands = app.desk.commands
    assert isinstance(commands, FakeCommands)
    gap = BytesLines(log_bytes())
    gap.marks = ((247, "the link was down: 18,204 bytes of the log are lost here"),)
    commands.sources["L4"] = gap
    commands.found = (FoundServer("gpu-a", 71, "vllm", 8000, "bob", "vllm serve Qwen3-32B --tp 8", "/tmp/v.log"),)
    app.desk.board.publish_launch(stalled())
    suffix = f"{size[0]}x{size[1]}"
    app_keys = {
        "launch-form": ("l",), "stop": ("K",), "add-host": ("H",), "trust-key": ("T",), "attach": ("A",),
        "help-log": ("question_mark",), "palette": ("ctrl+p",), "jump": ("semicolon",), "theme-picker": ("f2",),
        "diff": ("d", "enter"), "time": ("t",),
    }  # fmt: skip
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        for name, keys in app_keys.items():
            await pilot.press(*keys)
            await until(lambda: app.screen is not app.screen_of_all)
            await settle(pilot)
            album.add(f"{name}-{suffix}", app)
            await pilot.press("escape")
            await until(lambda: app.screen is app.screen_of_all)
        app.desk.board.ask(Question("q", "gpu-b", "passphrase for ~/.ssh/id_ed25519"))
        await until(lambda: app.screen is not app.screen_of_all)
        await settle(pilot)
        album.add(f"question-{suffix}", app)
        await pilot.press("escape")
        await pilot.press("slash", *"bs=7")
        await until(lambda: (s := app.screen_of_all.log_pane.session) and s.search and s.search.done)
        await settle(pilot)
        album.add(f"search-{suffix}", app)
        await pilot.press("escape", "r")
        await until(lambda: app.screen is not app.screen_of_all)
        await settle(pilot)
        await pilot.press("j", "j", "enter")
        await until(lambda: (s := app.screen_of_all.log_pane.session) and s.ranks and not s.rows.scanning)
        await settle(pilot)
        album.add(f"filtered-{suffix}", app)
        app.desk.select("L2")
        await pilot.press("i")
        await until(lambda: app.screen is not app.screen_of_all)
        await settle(pilot)
        album.add(f"settings-{suffix}", app)
        await pilot.press("escape")
        app.desk.select("L4")
        await settle(pilot)
        await pilot.press("f")
        await settle(pilot)
        album.add(f"stalled-{suffix}", app)
        await pilot.press("4")
        await settle(pilot)
        album.add(f"hosts-{suffix}", app)
        app.push_screen(BenchForm("baseline", ["chat", "code", "quick"]))
        await until(lambda: app.screen is not app.screen_of_all)
        await settle(pilot)
        album.add(f"bench-form-{suffix}", app)
    assert not album.differ, f"differ, see {tmp_path}"


@pytest.mark.may_block("reads and writes pictures")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_first_minute(size: tuple[int, int], tmp_path: Path) -> None:
    """Services that do not stand yet, then nothing launched on a machine without a GPU."""
    album = Album(tmp_path)
    suffix = f"{size[0]}x{size[1]}"
    board = Board()
    app = make_app(LookingOnly("the services are starting"), board=board, starting=True)  # type: ignore[arg-type]  # none yet
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        album.add(f"starting-{suffix}", app)
        app.connect(board, FakeCommands())
        board.publish_host(HostView("local", "up", gpu_note="no GPU on this host", cpu_pct=4.0))
        await settle(pilot)
        album.add(f"nothing-yet-{suffix}", app)
    assert not album.differ, f"differ, see {tmp_path}"


async def test_without_colour_everything_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR: the marks say what colour says elsewhere."""
    monkeypatch.setenv("NO_COLOR", "1")
    app = make_app()
    async with app.run_test(size=(160, 48)) as pilot:
        await settle(pilot)
        colours = {
            segment.style.color.triplet
            for strip in app.screen._compositor.render_strips()
            for segment in strip.apply_filter(app._filters[0], app.screen.background_colors[1])
            if segment.style is not None and segment.style.color is not None and segment.style.color.triplet
        }
        assert all(len(set(triplet)) == 1 for triplet in colours)
        text = app.export_screenshot().replace("&#160;", " ")
        for mark in ("●", "✓", "✗"):
            assert mark in text
