"""The form by keys and by mouse, over real profile files and a real list of flags; the host is scripted.

Witnesses: the files on disk as `tomllib` reads them, and what the commands were asked.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from specconsole.core.launching.form_command import plain_command
from specconsole.core.launching.form_model import LastLaunch
from specconsole.core.launching.preflight import Finding
from specconsole.errors import RefusedError
from specconsole.services.form_desk import FormOrder
from specconsole.ui.app import ConsoleApp
from specconsole.ui.screens import profile_form_looks
from specconsole.ui.screens.profile_form import ProfileForm
from specconsole.ui.screens.profile_form_actions import ACTIONS
from tests.ui.conftest import make_app, until
from tests.ui.fakes import FakeCommands
from tests.ui.form_fakes import FakeForm, flags_of
from tests.ui.test_keys import burst


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeForm:
    monkeypatch.setattr(profile_form_looks, "QUIET_S", 0.0)
    flags_of("sglang")  # read before the loop is watched
    return FakeForm(tmp_path / "profiles")


@asynccontextmanager
async def opened(
    fake: FakeForm, *keys: str, size: tuple[int, int] = (120, 36), open_by: tuple[str, ...] = ("l", "tab")
) -> AsyncIterator[tuple[Pilot[None], ProfileForm]]:
    """The window with the form of `eagle3-topk1` in it, after some keys."""
    app = make_app()
    commands = app.desk.commands
    assert isinstance(commands, FakeCommands)
    commands.form = fake
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.press(*open_by)
        await until(lambda: isinstance(app.screen, ProfileForm) and app.screen.list.size.width, "the form", 20.0)
        form = app.screen
        assert isinstance(form, ProfileForm)
        if keys:
            await pilot.press(*keys)
        yield pilot, form


def text_of(pilot: Pilot[None]) -> str:
    """What stands on the screen, line by line."""
    return "\n".join(strip.text for strip in pilot.app.screen._compositor.render_strips())


def toasts(pilot: Pilot[None]) -> list[str]:
    return [note.message for note in pilot.app._notifications]


def value(form: ProfileForm, *path: str) -> object:
    view = form.model.view.by_path.get(path)
    return None if view is None else view.value


def order_of(fake: FakeForm) -> FormOrder:
    """The last start that was asked for."""
    order = [call for call in fake.calls if call[0] == "launch"][-1][1]
    assert isinstance(order, FormOrder)
    return order


STEPS = ("args", "speculative_num_steps")
TOKENS = ("args", "speculative_num_draft_tokens")


async def test_a_value_is_typed_in_place_judged_with_every_letter_and_mended_by_a_key(fake: FakeForm) -> None:
    async with opened(fake, "2", "j", "j") as (pilot, form):
        assert form.list.path == STEPS
        await pilot.press("enter", "x")
        assert "a whole number is wanted" in text_of(pilot)
        await pilot.press("enter")
        assert form.typing.field is not None, "what can't be taken stays open"
        await pilot.press("backspace", "5")
        # Not taken yet, and what it would do is shown.
        assert value(form, *STEPS) == 3
        assert "--speculative-num-steps 5" in text_of(pilot)
        await pilot.press("enter")
        assert value(form, *STEPS) == 5
        assert form.model.view.by_path[TOKENS].becomes == "6"
        assert "becomes 6" in text_of(pilot)
        await pilot.press("f")
        assert value(form, *TOKENS) == 6
        await pilot.press("u")
        assert (value(form, *STEPS), value(form, *TOKENS)) == (5, 4)
        await pilot.press("U", "x")
        assert (value(form, *STEPS), value(form, *TOKENS)) == (3, 6)
        await pilot.press("right", "right", "left")
        assert value(form, *STEPS) == 4
        await pilot.press("enter", "9", "escape")
        assert value(form, *STEPS) == 4


async def test_switches_turn_and_choices_go_round_and_are_completed(fake: FakeForm) -> None:
    async with opened(fake, "slash", *"e metrics", "enter") as (pilot, form):
        assert form.list.path == ("args", "enable_metrics")
        await pilot.press("space")
        assert value(form, "args", "enable_metrics") is True
        await pilot.press("space")
        assert value(form, "args", "enable_metrics") is None
        await pilot.press("slash", *"sched po", "enter", *"fc", "enter")
        assert value(form, "args", "schedule_policy") == "fcfs"
        await pilot.press("right")
        assert value(form, "args", "schedule_policy") == "dfs-weight"
        await pilot.press("enter", *"zz", "enter")
        assert "the server takes lpm" in text_of(pilot)
        await pilot.press("escape", "enter", "down", "down", "enter")
        assert value(form, "args", "schedule_policy") == "random"


async def test_any_flag_of_the_server_and_any_variable_is_added_by_part_of_its_name(fake: FakeForm) -> None:
    async with opened(fake, "slash", *"lora ra", "enter") as (pilot, form):
        assert form.list.section == "raw flags"
        await pilot.press(*"64", "enter")
        assert value(form, "args", "max_lora_rank") == 64
        await pilot.press("slash", *"enable_lo", "enter")
        assert value(form, "args", "enable_lora") is True
        await pilot.press("slash", *"EAGLE3_", "enter", "1", "enter")
        assert value(form, "env", "EAGLE3_PROFILE") == "1"
        await pilot.press("slash", *"MY_TOKEN", "enter", *"s3cr3t", "enter")
        assert "looks like a secret" in text_of(pilot)
        await pilot.press("escape")
        assert "s3cr3t" not in str(form.model.own)
        assert "EAGLE3_PROFILE=1" in text_of(pilot)
        command = plain_command(form.model.view.units)
        assert "--max-lora-rank 64 --enable-lora" in command


async def test_it_is_saved_to_a_file_of_its_own_and_only_that_is_written_again(fake: FakeForm) -> None:
    before = (fake.folder / "eagle3-topk1.toml").read_bytes()
    async with opened(fake, "2", "j", "j", "right", "s") as (pilot, form):
        await until(lambda: "save as a profile of its own" in text_of(pilot))
        await pilot.press(*"baseline", "enter")
        await until(lambda: "did not write" in text_of(pilot))
        await pilot.press(*["backspace"] * 8, *"mine", "enter")
        await until(lambda: ("save", "mine") in fake.calls)
        saved = fake.folder / "mine.toml"
        assert tomllib.loads(saved.read_text()) == {"extends": "eagle3-topk1", "args": {"speculative_num_steps": 4}}
        await until(lambda: not form.model.unsaved)
        await pilot.press("right", "s")
        await until(lambda: fake.calls.count(("save", "mine")) == 2)
        assert tomllib.loads(saved.read_text())["args"] == {"speculative_num_steps": 5}
        # A person edits it: from now on it is a person's.
        saved.write_text(saved.read_text() + "# mine\n")
        await pilot.press("right", "s")
        await until(lambda: any("did not write" in toast for toast in toasts(pilot)))
        assert saved.read_text().endswith("speculative_num_steps = 5\n# mine\n")
        assert form.model.unsaved
    assert (fake.folder / "eagle3-topk1.toml").read_bytes() == before


async def test_a_start_gets_what_is_shown_and_the_form_stays_when_it_fails(fake: FakeForm) -> None:
    fake.launch_error = RefusedError("port 30000 is held by bob", where="gpu-b", try_="another port")
    async with opened(fake, "2", "j", "j", "enter", *"4", "ctrl+l") as (pilot, form):
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


async def test_leaving_asks_when_something_would_be_lost(fake: FakeForm) -> None:
    async with opened(fake, "2", "j", "j", "right", "escape") as (pilot, form):
        await until(lambda: pilot.app.screen is not form)
        assert "speculative_num_steps: 3 → 4" in text_of(pilot)
        await pilot.press("n")
        assert pilot.app.screen is form
        await pilot.press("u", "escape")
        await until(lambda: not isinstance(pilot.app.screen, ProfileForm))


async def test_the_host_is_looked_at_in_the_background_and_again_after_a_change(fake: FakeForm) -> None:
    fake.gate = asyncio.Event()
    async with opened(fake) as (pilot, form):
        await until(lambda: fake.looks >= 1 and form.looks.findings)
        # The first finding is there while the others are still looked for, and keys work.
        assert "sglang 0.5.17, commit" in text_of(pilot)
        assert "looking at gpu-b" in text_of(pilot)
        await pilot.press("p")
        await until(lambda: not form.looks.under_way)
        assert "looking at gpu-b" not in text_of(pilot)
        fake.gate.set()
        looks = fake.looks
        await pilot.press("2", "j", "j", "right")
        await until(lambda: fake.looks > looks and not form.looks.under_way)
        asked = fake.calls[-1][1]
        assert getattr(asked, "args", {}).get("speculative_num_steps") == 4
        await until(lambda: "held by pid 8121" in text_of(pilot))


async def test_paths_are_completed_from_the_host(fake: FakeForm) -> None:
    fake.paths = {
        "/data/models": ("/data/models/draft-eagle3/", "/data/models/draft-mtp/", "/data/models/target-32b/"),
        "/data/models/draft-mtp": ("/data/models/draft-mtp/config.json",),
    }
    async with opened(fake, "2", "enter") as (pilot, form):
        assert form.list.path == ("draft_model",)
        await pilot.press(*"/data/models/d")
        await until(lambda: len(form.suggestions.values) == 2)
        await pilot.press("tab")
        assert form.editor.value == "/data/models/draft-"
        await until(lambda: len(form.suggestions.values) == 2)
        await pilot.press("down", "down", "tab")
        assert form.editor.value == "/data/models/draft-mtp/"
        await until(lambda: form.suggestions.values == ("/data/models/draft-mtp/config.json",))
        await pilot.press("enter")
        assert value(form, "draft_model") == "/data/models/draft-mtp/"


async def test_findings_lead_to_their_settings(fake: FakeForm) -> None:
    async with opened(fake, "2", "j", "j", "right", "g") as (pilot, form):
        await until(lambda: not form.looks.under_way)
        await pilot.press("n")
        assert form.list.path == STEPS
        assert form.found[form.selected].level == "overridden"
        await pilot.press("n", "n")
        assert form.selected == 2
        await pilot.press("N", "N", "f")
        assert value(form, *TOKENS) == 5
        # Another host has its own part of the profile.
        assert value(form, "args", "tp_size") == 2
        await pilot.press("h", "k", "enter")
        assert form.host == "gpu-a"
        assert value(form, "args", "tp_size") == 4


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_every_size_shows_sections_command_and_findings(fake: FakeForm, size: tuple[int, int]) -> None:
    profile = fake.profile
    was = replace(profile, args={**profile.args, "mem_fraction_static": 0.88})
    fake.last = LastLaunch("L1", was, "gpu-b", None, {"page_size": 1, "chunked_prefill_size": 8192})
    async with opened(fake, "2", "j", "j", "right", size=size) as (pilot, form):
        await until(lambda: not form.looks.under_way)
        screen = text_of(pilot)
        assert "to eagle3-topk1: speculative_num_steps 3 → 4" in screen
        assert "to its last launch on gpu-b:" in screen
        assert "--speculative-num-steps 4" in screen
        assert "becomes 5" in screen
        small = size[0] < 110
        assert "1 model" in screen
        assert "7 raw" in screen
        assert ("parallelism ─" in screen) != small
        assert "with topk 1 the server sets draft tokens" in screen
        await pilot.press("4", "j", "j", "j")
        assert "1 the last time" in text_of(pilot)
        await pilot.press("tab", "shift+tab")
        assert form.list.section == "memory"
        if small:
            await pilot.press("c")
            await until(lambda: pilot.app.screen is not form)
            assert "held by pid 8121" in text_of(pilot)
            await pilot.press("enter")
            assert form.list.path == STEPS
        await pilot.press("v")
        await until(lambda: form.command.size.height > 12 and not form.list.size.height)
        await pilot.press("v", "question_mark")
        await until(lambda: pilot.app.screen is not form)
        assert "find or add" in text_of(pilot) or "Go to a setting by any part" in text_of(pilot)


async def test_the_mouse_does_what_keys_do(fake: FakeForm) -> None:
    async with opened(fake, "2") as (pilot, form):
        await pilot.click("#form-list", offset=(10, 3))
        assert form.list.path == STEPS
        await pilot.click("#form-list", offset=(10, 3))
        assert form.typing.field is not None
        await pilot.press("escape")
        await pilot.click("#form-tabs", offset=(form.tabs._spots[3][0] + 2, 0))
        assert form.list.section == "memory"
        await until(lambda: not form.looks.under_way)
        await pilot.press("2", "j", "j", "right", "g")
        await pilot.click("#form-checks", offset=(4, 1))
        assert form.list.path == STEPS
        spot = next(start for start, _, name in form.footer._spots if name == "undo")
        await pilot.click("#footer", offset=(spot + 1, 0))
        assert value(form, *STEPS) == 3


async def test_a_burst_of_keys_arrives_in_order(fake: FakeForm) -> None:
    async with opened(fake) as (pilot, form):
        app = pilot.app
        assert isinstance(app, ConsoleApp)
        burst(app, "2", "j", "j", "enter", "7", "enter", "j", "j", "enter", "8", "enter", "c")
        await until(lambda: "what stands against a start" in text_of(pilot))
        assert (value(form, *STEPS), value(form, *TOKENS)) == (7, 8)


def test_every_action_has_a_deed_and_a_key_of_its_own() -> None:
    from specconsole.ui.screens import profile_form_deeds

    taken: dict[str, str] = {}
    for action in ACTIONS:
        if not action.action_id.startswith("section-"):
            assert callable(getattr(profile_form_deeds, action.action_id.replace("-", "_")))
        for key in action.keys.split(","):
            assert key not in taken, (key, action.action_id, taken[key])
            taken[key] = action.action_id
