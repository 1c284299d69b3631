"""The screen that shows who holds ports and GPUs: real processes, the rest of the window scripted."""

from __future__ import annotations

from pathlib import Path

import pytest

from specconsole.adapters.hardware_tools import HostHardware
from specconsole.adapters.local import LocalTransport
from specconsole.core.hardware.holders import Holder, HoldersPicture
from specconsole.core.launching.preflight import Finding
from specconsole.services.holders import Evicted, HostHolders
from specconsole.ui.screens import profile_form_looks
from specconsole.ui.screens.holders import HoldersScreen
from specconsole.ui.screens.profile_form import ProfileForm
from tests.support.fixtures_gpus import FakeGpus
from tests.support.fixtures_processes import StartVictim
from tests.support.waiting import is_alive
from tests.ui.conftest import make_app, until
from tests.ui.fakes import FakeCommands
from tests.ui.form_fakes import FakeForm, flags_of


class LocalHolders:
    """`HolderCommands` for this machine whatever the host is called."""

    def __init__(self) -> None:
        async def nobody(ids: object) -> dict[str, tuple[str, str, bool]]:
            return {}

        self._of = HostHolders(LocalTransport(), HostHardware(), nobody)

    async def look(self, host: str, *, port: int | None = None, gpu: int | None = None) -> HoldersPicture:
        return await self._of.look(port=port, gpu=gpu)

    async def evict(self, host: str, picked: Holder, typed: str, told: object, *, grace_s: float = 10.0) -> Evicted:
        return await self._of.evict(picked, typed, told, grace_s=grace_s)  # type: ignore[arg-type]  # a callable


async def test_picked_typed_and_ended(start_victim: StartVictim, fake_gpus: FakeGpus) -> None:
    victim = start_victim()
    other = start_victim()
    apps = [["GPU-fake-0", victim.pid, 9000], ["GPU-fake-0", other.pid, 100]]
    fake_gpus.set(gpus=[{"index": 0, "memory.used": 9000}], apps=apps)  # the GPU tool is a simulated one
    app = make_app()
    assert isinstance(app.desk.commands, FakeCommands)
    app.desk.commands.holders = LocalHolders()  # type: ignore[assignment]  # as much of it as the screen asks
    async with app.run_test(size=(120, 30)) as pilot:
        # From one GPU in full.
        await pilot.press("4", "enter", "w")
        await until(lambda: isinstance(app.screen, HoldersScreen) and app.screen.picture is not None)
        screen = app.screen
        assert isinstance(screen, HoldersScreen)
        assert screen.selected is not None
        assert screen.selected.pid == victim.pid  # who holds most stands first
        await pilot.press("K", *"yes", "enter")
        await pilot.pause()
        assert is_alive(victim.pid)
        await pilot.press("escape", "j", "k", "K", *str(victim.pid), "enter")
        await until(lambda: not is_alive(victim.pid))
        fake_gpus.set(gpus=[{"index": 0}], apps=apps[1:])
        await pilot.press("r")
        await until(lambda: [one.pid for one in screen.picture.holders] == [other.pid] if screen.picture else False)
        assert is_alive(other.pid)


async def test_a_read_only_host_shows_them_and_ends_nobody(start_victim: StartVictim) -> None:
    victim = start_victim("--port", "0")
    app = make_app()
    assert isinstance(app.desk.commands, FakeCommands)
    app.desk.commands.holders = LocalHolders()  # type: ignore[assignment]  # as much of it as the screen asks
    app.desk.commands.cannot["evict"] = "this console is read-only"
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.press("4", "w")
        await until(lambda: isinstance(app.screen, HoldersScreen) and app.screen.picture is not None)
        screen = app.screen
        assert isinstance(screen, HoldersScreen)
        assert screen.picture is not None
        assert victim.pid in {one.pid for one in screen.picture.holders}
        assert "end it" not in str(screen.query_one("#holders-keys").render())
        await pilot.press("K")
        await pilot.pause()
        assert app.screen is screen
    assert is_alive(victim.pid)


@pytest.fixture
def form_of_fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeForm:
    monkeypatch.setattr(profile_form_looks, "QUIET_S", 0.0)
    flags_of("sglang")  # read before the loop is watched
    return FakeForm(tmp_path / "profiles")


async def test_from_a_finding_of_the_form_to_who_holds_the_port(
    start_victim: StartVictim, form_of_fakes: FakeForm
) -> None:
    victim = start_victim("--port", "0")
    form_of_fakes.findings = (Finding("port", "stop", f"port {victim.port} is held by pid {victim.pid}", "another"),)
    app = make_app()
    assert isinstance(app.desk.commands, FakeCommands)
    app.desk.commands.form = form_of_fakes
    app.desk.commands.holders = LocalHolders()  # type: ignore[assignment]  # as much of it as the screen asks
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("l", "tab")
        await until(lambda: isinstance(app.screen, ProfileForm) and bool(app.screen.looks.findings))
        form = app.screen
        assert isinstance(form, ProfileForm)
        place = next(n for n, one in enumerate(form.found) if "is held by" in one.text)
        form.go_to_finding(place)
        await pilot.press("o")
        await until(lambda: isinstance(app.screen, HoldersScreen) and app.screen.picture is not None)
        screen = app.screen
        assert isinstance(screen, HoldersScreen)
        assert screen.picture is not None
        assert [one.pid for one in screen.picture.holders] == [victim.pid]
        assert screen.what == f"port {victim.port}"
