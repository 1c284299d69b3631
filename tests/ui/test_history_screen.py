"""The history in the window: filtered as one types, opened, marked and compared, noted on, launched again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from specconsole.core.launching.annotations import Annotations
from specconsole.core.views.history import HistoryPage
from specconsole.errors import SpecconsoleError
from specconsole.ui.app import ConsoleApp
from specconsole.ui.screens.difference import DifferenceScreen
from specconsole.ui.screens.history import HistoryScreen
from specconsole.ui.text.difference_text import difference_lines
from specconsole.ui.text.history_text import DETAIL_LINES, detail_lines, head_line, table_line
from tests.ui.conftest import make_app, until
from tests.ui.fakes import FakeCommands, stopped
from tests.ui.history_fakes import FakeHistory, found, rows
from tests.ui.test_keys import choose, toasts


def app_with(history: FakeHistory, **commands: object) -> ConsoleApp:
    app = make_app()
    fake = app.desk.commands
    assert isinstance(fake, FakeCommands)
    fake.history = history
    for name, value in commands.items():
        setattr(fake, name, value)
    return app


async def opened(app: ConsoleApp, pilot: Pilot[None]) -> HistoryScreen:
    await pilot.press("h")
    await until(lambda: isinstance(app.screen, HistoryScreen) and app.screen.state.rows, "the history")
    assert isinstance(app.screen, HistoryScreen)
    return app.screen


def shown(screen: HistoryScreen) -> str:
    return "\n".join(line.plain for line in screen.table._lines)


async def test_filtering_as_one_types_and_leaving_the_filter() -> None:
    app = app_with(FakeHistory())
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot)
        assert "eagle3-topk1" in shown(screen)
        assert "the draft of Tuesday" in shown(screen)
        await pilot.press("slash", *"gpu-oom")
        await until(lambda: len(screen.state.rows) == 1, "only the one that fits")
        assert "CUDA out of memory" in shown(screen)
        await pilot.press("backspace", *"x")
        await until(lambda: not screen.state.rows, "none fits")
        assert "no launch fits" in shown(screen)
        await pilot.press("escape")
        await until(lambda: len(screen.state.rows) == 40, "all again")
        await pilot.press("end")
        assert screen.chosen is not None
        assert screen.chosen.launch_id == "M37"
        assert "▸" in shown(screen)
        await pilot.press("escape")
        await until(lambda: app.screen is app.screen_of_all)


async def test_an_answer_that_a_newer_question_overtook_is_dropped() -> None:
    history = FakeHistory()
    app = app_with(history)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot)
        first, second = asyncio.Event(), asyncio.Event()
        history.slow = first
        await pilot.press("slash", *"tree")
        history.slow = second
        await pilot.press(*"-16")
        second.set()
        await until(lambda: [one.launch_id for one in screen.state.rows] == ["L3"])
        history.all_rows = rows()[:1]
        first.set()
        await pilot.pause()
        assert [one.launch_id for one in screen.state.rows] == ["L3"]


async def test_enter_opens_the_log_in_a_tab() -> None:
    history = FakeHistory()
    app = app_with(history)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(app, pilot)
        await pilot.press("j", "enter")
        await until(lambda: app.desk.launch_id == "L3" and "L3" in app.desk.tabs)
        assert app.screen is app.screen_of_all
        assert history.calls == [("open", "L3")]
        assert app.screen_of_all.pane == "log"


async def test_two_are_marked_and_compared() -> None:
    history = FakeHistory()
    app = app_with(history)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot)
        await pilot.press("d")
        assert "◆" in shown(screen)
        await pilot.press("j", "d")
        await until(lambda: isinstance(app.screen, DifferenceScreen), "the difference")
        assert history.calls == [("difference", ("20261129-140211-3f9a2c", "L3"))]
        assert isinstance(app.screen, DifferenceScreen)
        lines = [line.plain.rstrip() for line in app.screen.rows._lines]
        assert any(line.startswith("≠ --speculative-eagle-topk") and line.endswith("4") for line in lines)
        assert any(line.startswith("? mem_fraction_static") and line.endswith("unknown") for line in lines)
        assert not any("--tp-size" in line for line in lines)
        assert any("1.80 times, better" in line for line in lines)
        await pilot.press("a")
        assert any("--tp-size" in line.plain for line in app.screen.rows._lines)
        await pilot.press("escape")
        assert app.screen is screen


async def test_notes_tags_and_undo() -> None:
    history = FakeHistory(why_not="gpu-a is not open here")
    app = app_with(history)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(app, pilot)
        await pilot.press("n", *"warm GPU", "enter")
        await pilot.press("t", *"best -old", "enter")
        await pilot.press("u")
        await until(lambda: len(history.calls) == 3)
        mine = "20261129-140211-3f9a2c"
        assert history.calls == [("note", (mine, "warm GPU")), ("tags", (mine, "best -old")), ("undo", mine)]
        assert any("kept here; the launch's folder gets it later" in text for text in toasts(app))
        await pilot.press("n", "enter")
        assert len(history.calls) == 3, "an empty note is none"


async def test_read_only_and_missing_history_say_so() -> None:
    app = app_with(FakeHistory(), read_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(app, pilot)
        await pilot.press("n")
        assert screen._writing == ""
        assert any("read-only" in text for text in toasts(app))
    app = make_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("h")
        assert "no history is kept here" in toasts(app)
        choose(app, "L2")
        await pilot.press("d", "enter")
        await until(lambda: type(app.screen).__name__ == "SettingsDiff")


async def test_relaunch_goes_through_the_same_question_and_an_unreachable_host_is_named() -> None:
    history = FakeHistory()
    app = app_with(history)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(app, pilot)
        await pilot.press("j", "R")
        await until(lambda: type(app.screen).__name__ == "Confirm", "it asks first")
        assert app.desk.launch_id == "L3"
        await pilot.press("y")
        fake = app.desk.commands
        assert isinstance(fake, FakeCommands)
        await until(lambda: ("relaunch", ("L3", {"mem_fraction_static": 0.85})) in fake.calls)
        history.why_not = "gpu-a is not watched here"
        app.errands.cancel("history")
        await until(lambda: app.screen is app.screen_of_all)
        fake.calls.clear()
        await opened(app, pilot)
        await pilot.press("j", "R")
        await until(lambda: any("gpu-a is not watched here" in text for text in toasts(app)), "why not")
        assert fake.calls == []


async def test_trouble_with_the_store_is_said() -> None:
    history = FakeHistory()
    app = app_with(history)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(app, pilot)
        assert "eagle3-topk1" in shown(screen)
        history.error = SpecconsoleError("the disk is full: nothing was stored", where="/s", try_="free some space")
        screen.look()
        await until(lambda: any("disk is full" in text for text in toasts(app)))
        history.error, history.all_rows = None, ()
        screen.look()
        await until(lambda: not screen.state.rows)
        await pilot.press("j", "enter", "d", "space", "n", "R")
        assert isinstance(app.screen, HistoryScreen), "nothing is chosen, nothing is done"
        assert HistoryPage(()).rows == ()


def test_every_line_is_as_wide_as_the_screen() -> None:
    for width in (40, 62, 76, 80, 99, 117, 130, 158, 240):
        _lines_are_as_wide_as(width)


def _lines_are_as_wide_as(width: int) -> None:
    odd = replace(
        rows()[0],
        profile="模型-" * 12,
        host="h" * 80,
        cause_line="x\n\x1b[31my",
        annotations=Annotations(tagged=("t" * 40,)),
    )
    for one in (*rows(3), odd):
        assert table_line(one, width, chosen=True, marked=False).cell_length == width
        lines = detail_lines(one, width)
        assert [len(lines), {line.cell_length for line in lines}] == [DETAIL_LINES, {width}]
        assert not any(c in line.plain for line in lines for c in "\n\x1b")
    assert head_line(width).cell_length == width
    for everything in (True, False):
        assert {line.cell_length for line in difference_lines(found(), width, everything=everything)} == {width}


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_on_a_small_screen_and_a_large_one_all_of_it_is_there(size: tuple[int, int]) -> None:
    app = app_with(FakeHistory())
    async with app.run_test(size=size) as pilot:
        screen = await opened(app, pilot)
        text = shown(screen)
        for word in ("asked for", "profile", "outcome", "best tok/s", "eagle3-topk1", "1,234 C=32", "command"):
            assert word in text
        assert ("answered" in text.splitlines()[0]) is (size[0] > 80)
        keys = screen.query_one("#history-keys")
        assert keys.region.bottom < size[1]
        assert screen.table.region.height >= 12
        await pilot.press("d", "j", "d")
        await until(lambda: isinstance(app.screen, DifferenceScreen))
        assert app.screen.query_one("#difference-keys").region.bottom < size[1]
        if size[1] == 24:
            top = app.screen.rows._lines[0].plain  # type: ignore[attr-defined]  # a DifferenceScreen
            await pilot.press("end")
            assert app.screen.rows._lines[0].plain != top  # type: ignore[attr-defined]


async def test_the_list_of_the_window_stays_short() -> None:
    app = app_with(FakeHistory())
    for n in range(30):
        app.desk.board.publish_launch(replace(stopped(), launch_id=f"old-{n:02d}", started_at_s=1000.0 - n))
    app.desk.tabs.append("old-29")
    async with app.run_test(size=(160, 48)) as pilot:
        await until(lambda: app.screen_of_all.launches._lines)
        listed = [view.launch_id for view in app.desk.launches()]
        assert len(listed) == 2 + 12 + 1, "two that run, twelve that ended, one that is kept in a tab"
        assert listed[-1] == "old-29"
        text = "\n".join(line.plain for line in app.screen_of_all.launches._lines)
        assert "h shows 19 earlier" in text
        choose(app, "old-20")
        assert "old-20" in [view.launch_id for view in app.desk.launches()]
        await pilot.press("h")
        await until(lambda: isinstance(app.screen, HistoryScreen))


async def test_notes_and_tags_from_the_list_of_launches() -> None:
    history = FakeHistory()
    app = app_with(history)
    async with app.run_test(size=(120, 40)) as pilot:
        choose(app, "L2")
        await pilot.press("2", "n", *"cold start", "enter")
        await until(lambda: history.calls == [("note", ("L2", "cold start"))])
        await pilot.press("t", *"best", "enter")
        await until(lambda: history.calls[1:] == [("tags", ("L2", "best"))])
        await until(lambda: any("kept; h shows it" in text for text in toasts(app)))
        await pilot.press("n", "escape", "n", "enter")
        assert app.screen is app.screen_of_all
        assert len(history.calls) == 2
    app = app_with(FakeHistory(), read_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        choose(app, "L2")
        await pilot.press("2", "n")
        assert any("read-only" in text for text in toasts(app))
