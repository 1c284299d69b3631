"""The form by keys and by mouse, over real profile files and a real list of flags; the host is scripted.

Witnesses: the files on disk as `tomllib` reads them, and what the commands were asked.
"""

from __future__ import annotations

import asyncio
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from specconsole.core.launching.form_command import plain_command
from specconsole.core.launching.form_model import LastLaunch
from specconsole.ui.app import ConsoleApp
from specconsole.ui.screens.profile_form import ProfileForm
from specconsole.ui.screens.profile_form_actions import ACTIONS
from tests.ui.conftest import until
from tests.ui.form_fakes import FakeForm
from tests.ui.form_window import STEPS, TOKENS, fake_form, opened, press, text_of, toasts, value
from tests.ui.test_keys import burst


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeForm:
    return fake_form(tmp_path / "profiles", monkeypatch)


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
    async with opened(fake, "slash", "=e metrics", "enter") as (pilot, form):
        assert form.list.path == ("args", "enable_metrics")
        await pilot.press("space")
        assert value(form, "args", "enable_metrics") is True
        await pilot.press("space")
        assert value(form, "args", "enable_metrics") is None
        await press(pilot, "slash", "=sched po", "enter", "=fc", "enter")
        assert value(form, "args", "schedule_policy") == "fcfs"
        await pilot.press("right")
        assert value(form, "args", "schedule_policy") == "dfs-weight"
        await press(pilot, "enter", "=zz", "enter")
        assert "the server takes lpm" in text_of(pilot)
        await pilot.press("escape", "enter", "down", "down", "enter")
        assert value(form, "args", "schedule_policy") == "random"


async def test_any_flag_of_the_server_and_any_variable_is_added_by_part_of_its_name(fake: FakeForm) -> None:
    async with opened(fake, "slash", "=lora ra", "enter") as (pilot, form):
        assert form.list.section == "raw flags"
        await press(pilot, "=64", "enter")
        assert value(form, "args", "max_lora_rank") == 64
        await press(pilot, "slash", "=enable_lo", "enter")
        assert value(form, "args", "enable_lora") is True
        await press(pilot, "slash", "=EAGLE3_", "enter", "1", "enter")
        assert value(form, "env", "EAGLE3_PROFILE") == "1"
        await press(pilot, "slash", "=MY_TOKEN", "enter", "=s3cr3t", "enter")
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
        await press(pilot, "=baseline", "enter")
        await until(lambda: "did not write" in text_of(pilot))
        await press(pilot, "=mine", "enter")
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
        await press(pilot, "=/data/models/d")
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
