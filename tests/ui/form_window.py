"""The window with the form in it, for the form's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from specconsole.services.form_desk import FormOrder
from specconsole.ui.screens import profile_form_looks
from specconsole.ui.screens.profile_form import ProfileForm
from tests.ui.conftest import make_app, until
from tests.ui.fakes import FakeCommands
from tests.ui.form_fakes import FakeForm, flags_of

STEPS = ("args", "speculative_num_steps")
TOKENS = ("args", "speculative_num_draft_tokens")


def fake_form(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeForm:
    """A scripted host behind real profiles in `folder`, looked at as soon as something changed."""
    monkeypatch.setattr(profile_form_looks, "QUIET_S", 0.0)
    flags_of("sglang")  # read before the loop is watched
    return FakeForm(folder)


@asynccontextmanager
async def opened(
    fake: FakeForm, *keys: str, size: tuple[int, int] = (120, 36), open_by: tuple[str, ...] = ()
) -> AsyncIterator[tuple[Pilot[None], ProfileForm]]:
    """The window with the form of `eagle3-topk1` in it, after some keys; `open_by`: keys that open it."""
    app = make_app()
    commands = app.desk.commands
    assert isinstance(commands, FakeCommands)
    commands.form = fake
    async with app.run_test(size=size, notifications=True) as pilot:
        if open_by:
            await pilot.press(*open_by)
        else:
            opening = await fake.open_profile("eagle3-topk1", "gpu-b")
            await app.push_screen(ProfileForm(app.desk, fake, opening, flags_of("sglang")))
        await until(lambda: isinstance(app.screen, ProfileForm) and app.screen.list.size.width, "the form", 20.0)
        form = app.screen
        assert isinstance(form, ProfileForm)
        await press(pilot, *keys)
        yield pilot, form


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Keys by name; `=text` stands in the field in focus at once, as a paste does."""
    for key in keys:
        if key.startswith("="):
            await until(lambda: isinstance(pilot.app.focused, Input), "a field in focus")
            field = pilot.app.focused
            assert isinstance(field, Input)
            field.value = key[1:]
            await pilot.pause()
        else:
            await pilot.press(key)


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
