"""Rows of the log are painted only when they differ; what stands there is what a whole repaint would show."""

from __future__ import annotations

import pytest
from textual.geometry import Region

from specconsole.ui.app import ConsoleApp
from specconsole.ui.log.view import LogView
from tests.ui.conftest import make_app, until
from tests.ui.fakes import BytesLines, FakeCommands, log_bytes

STEPS = (
    "k", "k", "j", "pageup", "f", "f", "g", "space", "s", "j", "j", "k", "escape", "right", "left", "w", "k", "w",
    "exclamation_mark", "p", "u", "v", "k", "v", "end", "c", "k", "c", "2", "1", "end",
)  # fmt: skip


def shown(app: ConsoleApp) -> list[list[tuple[str, str]]]:
    """The log pane cell by cell as Textual keeps it: what stands there, and in which colours."""
    app.screen._compositor.update_widgets({app.screen})
    region = app.screen_of_all.log_pane.region
    strips = app.screen._compositor.render_strips()[region.y : region.bottom]
    return [
        [
            (cell, f"{style.color} {style.bgcolor} {style.bold}" if style is not None else "")
            for text, style, _ in strip.crop(region.x, region.right)
            for cell in text
        ]
        for strip in strips
    ]


def scans(app: ConsoleApp) -> bool:
    session = app.screen_of_all.log_pane.session
    return session is not None and session.rows.scanning


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_what_is_painted_in_parts_is_what_a_whole_repaint_shows(size: tuple[int, int]) -> None:
    app = make_app()
    commands = app.desk.commands
    assert isinstance(commands, FakeCommands)
    source = BytesLines(log_bytes())
    commands.sources["L3"] = source
    async with app.run_test(size=size) as pilot:
        app.desk.select("L3")
        app.screen_of_all.refresh_facts()
        await until(lambda: app.screen_of_all.log_pane.session is not None)
        view = app.screen_of_all.log_pane.view
        for number, step in enumerate(STEPS):
            await pilot.press(step)
            if number % 5 == 4:
                source.append(b"[2026-11-29 14:20:%02d TP1] one more line\n" % number)
            app.tick()
            before = None
            while before != (now := (view.size.height, scans(app))):  # a card came or went, a filter is worked out
                before = now if not now[1] else None
                await pilot.pause()
            kept = shown(app)
            view.drawn.clear()
            view.refresh()
            app.screen_of_all.log_pane.refresh()
            await pilot.pause()
            assert shown(app) == kept, step


async def test_a_key_that_moves_nothing_paints_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(lambda: app.screen_of_all.log_pane.session is not None)
        pane = app.screen_of_all.log_pane
        await pilot.pause()
        painted: list[Region] = []
        whole = pane.view.region
        refresh = LogView.refresh

        def look(self: LogView, *rows: Region, **how: bool) -> LogView:
            painted.extend(rows or [whole])
            return refresh(self, *rows, **how)

        monkeypatch.setattr(LogView, "refresh", look)
        await pilot.press("f")
        await until(lambda: "at line" in str(pane.border_title))
        assert sum(region.height for region in painted) == 0
        await pilot.press("k")
        await until(lambda: painted)
        assert sum(region.height for region in painted) >= whole.height - 2
