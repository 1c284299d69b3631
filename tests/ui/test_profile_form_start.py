"""Starting from the form: what is asked before, what is launched, and what a read-only console says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from specconsole.core.launching.preflight import Finding
from specconsole.errors import RefusedError
from specconsole.services.form_desk import FormOrder
from specconsole.ui.app import ConsoleApp
from specconsole.ui.screens.profile_form import ProfileForm
from tests.ui.conftest import make_app, until
from tests.ui.fakes import FakeCommands
from tests.ui.form_fakes import FakeForm
from tests.ui.form_window import STEPS, fake_form, opened, order_of, text_of, toasts, value


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeForm:
    return fake_form(tmp_path / "profiles", monkeypatch)


async def test_a_start_gets_what_is_shown_and_the_form_stays_when_it_fails(fake: FakeForm) -> None:
    fake.launch_error = RefusedError("port 30000 is held by bob", where="gpu-b", try_="another port")
    async with opened(fake, "2", "j", "j", "enter", "4", "ctrl+l", open_by=("l", "tab")) as (pilot, form):
        await until(lambda: any("held by bob" in toast for toast in toasts(pilot)))
        assert pilot.app.screen is form
        [(_, order)] = [call for call in fake.calls if call[0] == "launch"]
        assert isinstance(order, FormOrder)
        assert order == FormOrder(form.model.view.profile or order.profile, "gpu-b")
        assert order.profile.args["speculative_num_steps"] == 4
        assert order.profile.args["tp_size"] == 2, "as the profile is on that host"
        fake.launch_error = None
        await pilot.press("L")
        await until(lambda: pilot.app.screen is not form)
        app = pilot.app
        assert isinstance(app, ConsoleApp)
        assert app.desk.launch_id == "L2"


async def test_a_start_that_is_under_way_is_called_off_by_escape(fake: FakeForm) -> None:
    fake.launch_gate = asyncio.Event()
    async with opened(fake, "L") as (pilot, form):
        await until(lambda: form.launching)
        await pilot.press("L")
        assert "a start is under way" in toasts(pilot)
        await pilot.press("escape")
        await until(lambda: not form.launching)
        assert pilot.app.screen is form
        assert len([call for call in fake.calls if call[0] == "launch"]) == 1


async def test_what_forbids_a_start_is_asked_about_and_then_not_looked_for_again(fake: FakeForm) -> None:
    fake.findings = (Finding("port", "stop", "port 30000 is held by pid 7 (bob)", "another port"),)
    async with opened(fake) as (pilot, form):
        await until(lambda: "held by pid 7" in text_of(pilot))
        await pilot.press("L")
        await until(lambda: pilot.app.screen is not form)
        assert "start eagle3-topk1 all the same?" in text_of(pilot)
        await pilot.press("n")
        assert not [call for call in fake.calls if call[0] == "launch"]
        fake.launch_error = RefusedError("no", where="gpu-b")
        await pilot.press("L", "y")
        await until(lambda: [call for call in fake.calls if call[0] == "launch"])
        assert not order_of(fake).preflight
        # What is held now may be free later: to wait for it is asked about by nobody.
        fake.launch_error = None
        await until(lambda: not form.launching)
        await pilot.press("w")
        await until(lambda: len([call for call in fake.calls if call[0] == "launch"]) == 2)
        assert (order_of(fake).when_free, order_of(fake).preflight) == (True, True)


async def test_a_running_launch_is_stopped_first_only_when_that_is_said(fake: FakeForm) -> None:
    async with opened(fake, open_by=("e",)) as (pilot, form):
        assert form.opening.launch_id == "L1"
        await pilot.press("L")
        await until(lambda: "runs on gpu-a" in text_of(pilot))
        await pilot.press("down", "down", "enter")
        assert not [call for call in fake.calls if call[0] == "launch"]
        await pilot.press("L")
        await until(lambda: pilot.app.screen is not form)
        await pilot.press("enter")
        await until(lambda: [call for call in fake.calls if call[0] == "launch"])
        order = fake.calls[-1][1]
        assert isinstance(order, FormOrder)
        assert (order.stop_first, order.profile.args["mem_fraction_static"]) == ("L1", 0.83)


async def test_the_cards_change_is_in_the_form_and_can_be_taken_back(fake: FakeForm) -> None:
    app = make_app()
    commands = app.desk.commands
    assert isinstance(commands, FakeCommands)
    commands.form = fake
    async with app.run_test(size=(120, 36)) as pilot:
        app.desk.select("L3")
        app.screen_of_all.refresh_facts()
        await pilot.press("e")
        await until(lambda: isinstance(app.screen, ProfileForm) and app.screen.list.size.width)
        form = app.screen
        assert isinstance(form, ProfileForm)
        assert value(form, "args", "mem_fraction_static") == 0.85
        assert form.model.unsaved
        await pilot.press("u")
        assert value(form, "args", "mem_fraction_static") == 0.83
        assert not form.model.unsaved


async def test_a_read_only_console_says_why_and_writes_nothing(fake: FakeForm) -> None:
    fake.why = "this console is read-only"
    async with opened(fake, "2", "j", "j", "right") as (pilot, form):
        assert value(form, *STEPS) == 4, "looking at what would be is no change"
        for key in ("L", "s", "S", "w"):
            await pilot.press(key)
        assert toasts(pilot).count("this console is read-only") == 4
        assert [call for call in fake.calls if call[0] != "look"] == []
        assert sorted(path.name for path in fake.folder.iterdir()) == ["baseline.toml", "eagle3-topk1.toml"]
