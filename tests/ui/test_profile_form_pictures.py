"""Pictures of the form, as those of every other screen: `SPECCONSOLE_UPDATE_PICTURES=1` writes them anew, to be looked
at before they are committed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import textual

from specconsole.core.launching.form_model import LastLaunch
from specconsole.ui.screens.profile_form import ProfileForm
from tests.ui.conftest import make_app, until
from tests.ui.fakes import FakeCommands
from tests.ui.form_window import fake_form, press
from tests.ui.test_pictures import MADE_WITH, Album, settle

pytestmark = pytest.mark.skipif(textual.__version__ != MADE_WITH, reason=f"pictures were made with Textual {MADE_WITH}")


@pytest.mark.may_block("reads and writes pictures")
@pytest.mark.parametrize("size", [(80, 24), (160, 48)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_form(size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    album, app = Album(tmp_path), make_app()
    fake = fake_form(tmp_path / "profiles", monkeypatch)
    was = replace(fake.profile, args={**fake.profile.args, "mem_fraction_static": 0.88, "speculative_num_steps": 5})
    fake.last = LastLaunch("L1", was, "gpu-b", None, {"page_size": 1, "chunked_prefill_size": 8192})
    commands = app.desk.commands
    assert isinstance(commands, FakeCommands)
    commands.form = fake
    suffix = f"{size[0]}x{size[1]}"
    async with app.run_test(size=size) as pilot:
        await pilot.press("l", "tab")
        await until(lambda: isinstance(app.screen, ProfileForm) and app.screen.list.size.width)
        form = app.screen
        assert isinstance(form, ProfileForm)
        await pilot.press("2", "j", "j", "right")
        await until(lambda: not form.looks.under_way and form.looks.findings)
        for theme in ("night", "paper"):
            app.theme = theme
            await settle(pilot)
            album.add(f"form-{suffix}-{theme}", app)
        await press(pilot, "5", "slash", "=sched", "enter")
        await settle(pilot)
        album.add(f"form-typing-{suffix}", app)
        await press(pilot, "escape", "slash", "=lora")
        await settle(pilot)
        album.add(f"form-find-{suffix}", app)
    assert not album.differ, f"differ, see {tmp_path}"
